//! Cases of `docs/rules/backend-pools.md` where pools hold addresses.

use azure_types::{BackendAddressPool, BackendAddresses};
use k8s::names::*;
use serde_json::json;

use super::*;
use crate::model::Flavor;
use crate::resources::load_balancer::{Known, LoadBalancerPlan, plan};

fn by_address() -> Cluster {
    cluster_with(json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"}))
}

/// Fills the pools of a load balancer with one rule with the nodes of scale set alpha that have these numbers.
fn fill(cluster: &Cluster, pools: serde_json::Value, nodes: &[Arc<Node>]) -> LoadBalancerPlan {
    let balancer = cluster.placement(Flavor::External);
    let document = load_balancer(cluster, pools);
    plan(cluster, &balancer, Some(&document), &[], Known { nodes: Some(nodes), ..Known::default() })
}

fn load_balancer(cluster: &Cluster, pools: serde_json::Value) -> azure_types::LoadBalancer {
    let id = cluster.load_balancer_id(&cluster.placement(Flavor::External));
    serde_json::from_value(json!({
        "id": id, "name": "testCluster", "etag": "1",
        "properties": {
            "frontendIPConfigurations": [{"name": "somebodys", "properties": {}}],
            "backendAddressPools": pools,
        },
    }))
    .unwrap()
}

/// A pool of these entries, each a name and an address.
fn pool(name: &str, entries: &[(&str, &str)]) -> serde_json::Value {
    let entry = |(name, address): &(&str, &str)| json!({"name": name, "properties": {"ipAddress": address}});
    let entries: Vec<_> = entries.iter().map(entry).collect();
    let network = by_address().virtual_network_id();
    json!({"name": name, "properties": {"loadBalancerBackendAddresses": entries, "virtualNetwork": {"id": network}}})
}

fn written(planned: &LoadBalancerPlan) -> Vec<BackendAddressPool> {
    let document = load_balancer_of(planned.step.as_ref().expect("a write"));
    document.properties.as_ref().unwrap().backend_address_pools.clone().unwrap()
}

/// The members as `name address`.
fn members(pool: &BackendAddressPool) -> Vec<String> {
    let entries = pool.properties.as_ref().unwrap().load_balancer_backend_addresses.iter();
    entries
        .flat_map(BackendAddresses::iter)
        .map(|entry| format!("{} {}", entry.name.unwrap(), entry.properties.unwrap().ip_address.unwrap()))
        .collect()
}

fn alpha(numbers: &[u32]) -> Vec<Arc<Node>> {
    nodes(numbers.iter().map(|number| node("alpha", *number)))
}

/// LB-187: one write brings a pool to the nodes' addresses.
#[test]
fn lb_187_a_pool_of_addresses_follows_the_nodes_with_one_write() {
    let cluster = by_address();
    let before = pool("testCluster", &[("alpha000001", "10.0.1.11"), ("gone", "10.0.1.99")]);
    let planned = fill(&cluster, json!([before]), &alpha(&[0, 1, 2]));
    let pools = written(&planned);
    let all = ["alpha000001 10.0.1.11", "alpha000000 10.0.1.10", "alpha000002 10.0.1.12"];
    assert_eq!(members(&pools[0]), all);
    let properties = pools[0].properties.as_ref().unwrap();
    assert_eq!(properties.virtual_network.as_ref().unwrap().id, Some(cluster.virtual_network_id()));
    let step = planned.step.unwrap();
    assert_eq!(step.if_match.as_deref(), Some("1"));
    assert_eq!(
        step.changes,
        [Change::PoolMembers {
            pool: "testCluster".to_owned(),
            come: [("alpha000000", "10.0.1.10"), ("alpha000002", "10.0.1.12")]
                .map(|(node, address)| (node.to_owned(), address.parse().unwrap()))
                .to_vec(),
            gone: vec!["10.0.1.99".to_owned()],
        }]
    );
    assert_eq!(planned.empty_first, []);
}

/// LB-188: a pool is not emptied, and nothing is written for that.
#[test]
fn lb_188_the_last_addresses_stay() {
    let before = pool("testCluster", &[("gone", "10.0.1.99")]);
    assert_eq!(fill(&by_address(), json!([before]), &[]).step, None);
    // Unknown is not absent.
    let cluster = by_address();
    let document = load_balancer(&cluster, json!([before]));
    let balancer = cluster.placement(Flavor::External);
    assert_eq!(plan(&cluster, &balancer, Some(&document), &[], Known::default()).step, None);
}

/// LB-189: a network that only the members name becomes the pool's.
#[test]
fn lb_189_the_virtual_network_moves_from_the_members_to_the_pool() {
    let cluster = by_address();
    let network = cluster.virtual_network_id();
    let entry = json!({"name": "alpha000000", "properties": {"ipAddress": "10.0.1.10", "virtualNetwork": {"id": network}}});
    let before = json!({"name": "testcluster", "properties": {"loadBalancerBackendAddresses": [entry]}});
    let pools = written(&fill(&cluster, json!([before]), &alpha(&[0])));
    let properties = pools[0].properties.as_ref().unwrap();
    assert_eq!(properties.virtual_network.as_ref().unwrap().id, Some(network));
    let entry = &properties.load_balancer_backend_addresses.as_ref().unwrap().to_vec()[0];
    assert_eq!(entry.properties.as_ref().unwrap().virtual_network, None);
    // Azure may return it in both places: that is no difference.
    let mut shown = document(pools);
    shown["properties"]["loadBalancerBackendAddresses"][0]["properties"]["virtualNetwork"] =
        shown["properties"]["virtualNetwork"].clone();
    assert_eq!(fill(&cluster, json!([shown]), &alpha(&[0])).step, None);
}

fn document(pools: Vec<BackendAddressPool>) -> serde_json::Value {
    serde_json::to_value(&pools[0]).unwrap()
}

/// LB-190, LB-192: eligibility for membership by address: no control-plane nodes, but a node whose label says `false`,
/// and one in another resource group.
#[test]
fn lb_190_lb_192_members_by_address_are_chosen_by_one_test() {
    let before = pool("testCluster", &[("alpha000000", "10.0.1.10")]);
    let kept = [
        node("alpha", 0),
        labelled(node("alpha", 0), LABEL_EXCLUDE_FROM_LOAD_BALANCERS, "false"),
        labelled(node("alpha", 0), LABEL_RESOURCE_GROUP, "elsewhere"),
    ];
    for node in kept {
        assert_eq!(fill(&by_address(), json!([before]), &nodes([node])).step, None);
    }
    let with_another = |node: Node| nodes([crate::order::tests::node("alpha", 1), node]);
    for (label, value) in [
        (LABEL_CONTROL_PLANE, ""),
        (LABEL_EXCLUDE_FROM_LOAD_BALANCERS, "true"),
        (LABEL_EXCLUDE_FROM_LOAD_BALANCERS, ""),
        (LABEL_MANAGED, "false"),
    ] {
        let planned =
            fill(&by_address(), json!([before]), &with_another(labelled(node("alpha", 0), label, value)));
        assert_eq!(members(&written(&planned)[0]), ["alpha000001 10.0.1.11"], "{label}={value}");
    }
}

/// LB-191: a node without an address of the pool's family is no reason to write.
#[test]
fn lb_191_a_node_without_an_address_of_the_family_changes_nothing() {
    let mut node = node("alpha", 0);
    node.status.addresses.truncate(1);
    let before = [pool("testCluster", &[("alpha000000", "10.0.1.10")]), pool("testCluster-IPv6", &[])];
    assert_eq!(fill(&by_address(), json!(before), &nodes([node])).step, None);
}

/// LB-193: one address is one member.
#[test]
fn lb_193_an_address_is_a_member_once() {
    let twice = pool("testCluster", &[("a", "10.0.1.10"), ("b", "10.0.1.10")]);
    assert_eq!(members(&written(&fill(&by_address(), json!([twice]), &alpha(&[0])))[0]), ["a 10.0.1.10"]);
    let mut twin = node("alpha", 0);
    twin.metadata.name = Some("twin".to_owned());
    let empty = pool("testCluster", &[("gone", "10.0.1.99")]);
    let planned = fill(&by_address(), json!([empty]), &nodes([node("alpha", 0), twin]));
    assert_eq!(members(&written(&planned)[0]), ["alpha000000 10.0.1.10"]);
}

/// LB-184: addresses of an earlier configuration are removed with one write; then interfaces join.
#[test]
fn lb_184_addresses_are_cleared_before_interfaces_join() {
    let before =
        [pool("testCluster", &[("alpha000000", "10.0.1.10")]), pool("aks", &[("others", "10.9.9.9")])];
    let planned = fill(&cluster(), json!(before), &alpha(&[0]));
    let pools = written(&planned);
    assert_eq!(members(&pools[0]), [""; 0]);
    assert_eq!(pools[0].properties.as_ref().unwrap().virtual_network, None);
    assert_eq!(members(&pools[1]), ["others 10.9.9.9"]);
    let balancer = cluster().placement(Flavor::External);
    let after = load_balancer_of(planned.step.as_ref().unwrap());
    assert_eq!(
        crate::machines::backend_pool::pools_to_fill(&cluster(), &balancer, None, None, after).len(),
        1
    );
}

/// LB-185: interfaces leave before addresses become the members; so do scale sets without an instance.
#[test]
fn lb_185_interfaces_leave_before_addresses_are_members() {
    let by_interface = json!([{"id": scale_set_id("alpha").child("virtualMachines", "0").child("networkInterfaces", "nic")
        .child("ipConfigurations", "v4")}]);
    let mirror =
        json!([{"name": "x", "properties": {"networkInterfaceIPConfiguration": by_interface[0].clone()}}]);
    for properties in [
        json!({"backendIPConfigurations": by_interface, "loadBalancerBackendAddresses": mirror}),
        json!({"backendIPConfigurations": [], "loadBalancerBackendAddresses": []}),
        json!({}),
    ] {
        let pools = json!([{"name": "testCluster", "properties": properties}]);
        let planned = fill(&by_address(), pools, &alpha(&[0]));
        assert_eq!(planned.empty_first.len(), 1, "{properties}");
        assert_eq!(members(&written(&planned)[0]), ["alpha000000 10.0.1.10"]);
    }
    let document = json!([pool("testCluster", &[("alpha000000", "10.0.1.10")])]);
    assert_eq!(fill(&by_address(), document, &alpha(&[0, 1])).empty_first, []);
}

/// LB-187: members are part of the load balancer's first write, and nothing else is written for them. A second plan is
/// empty, and the result is the same whatever the pools held before.
#[test]
fn a_load_balancer_is_created_with_its_members() {
    let all = alpha(&[0, 1, 2]);
    let services = [svc("test1").tcp(80).dual().arc(), svc("test2").tcp(81).internal().arc()];
    let mut azure = Azure::of(by_address());
    let steps = azure.plan(&services, &all).plan.steps;
    let kinds: Vec<String> = steps.iter().map(|step| step.target.resource_type()).collect();
    assert!(!kinds.iter().any(|kind| kind.contains("virtualMachine")), "{kinds:?}");
    azure.converge(&services, &all);
    let pools = |azure: &Azure, flavor| {
        let document = azure.load_balancer(flavor).unwrap().properties.clone().unwrap();
        document.backend_address_pools.unwrap().iter().map(|pool| members(pool).len()).collect::<Vec<_>>()
    };
    assert_eq!(pools(&azure, Flavor::External), [3, 3]);
    assert_eq!(pools(&azure, Flavor::Internal), [3]);
    // One node joins: one write for each load balancer.
    let more = alpha(&[0, 1, 2, 3]);
    assert_eq!(azure.plan(&services, &more).plan.steps.len(), 2);
    azure.converge(&services, &more);
    // From addresses to interfaces and back.
    for kind in ["nodeIPConfiguration", "nodeIP", "nodeIPConfiguration"] {
        azure.cluster = cluster_with(json!({"loadBalancerBackendPoolConfigurationType": kind}));
        azure.converge(&services, &all);
    }
}
