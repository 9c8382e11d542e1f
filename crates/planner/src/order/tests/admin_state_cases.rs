//! Cases of `docs/rules/draining.md`.

use azure_types::LoadBalancer;
use k8s::Taint;
use k8s::names::*;
use serde_json::{Value, json};

use super::*;
use crate::machines::admin_state::{entries, nodes_in_pools};
use crate::model::Flavor;
use crate::resources::load_balancer::{Known, LoadBalancerPlan, plan};

fn draining() -> Cluster {
    cluster_with(json!({
        "loadBalancerBackendPoolConfigurationType": "nodeIP", "enableLoadBalancerAdminState": true,
    }))
}

fn tainted(number: u32, taints: &[(&str, &str)]) -> Node {
    let mut node = node("alpha", number);
    let taint = |(key, value): &(&str, &str)| Taint {
        key: (*key).to_owned(),
        value: (*value).to_owned(),
        effect: "NoSchedule".into(),
        time_added: None,
    };
    node.spec.taints = taints.iter().map(taint).collect();
    node
}

/// Both pools of the external load balancer with these entries: number of the node and state.
fn document(cluster: &Cluster, states: &[(u32, Option<&str>)]) -> LoadBalancer {
    let network = cluster.virtual_network_id();
    let pool = |name: &str, prefix: &str| {
        let entry = |(number, state): &(u32, Option<&str>)| {
            let mut entry = json!({"name": format!("alpha{number:06}"),
                "properties": {"ipAddress": format!("{prefix}{}", number + 10)}});
            if let Some(state) = state {
                entry["properties"]["adminState"] = (*state).into();
            }
            entry
        };
        let entries: Vec<Value> = states.iter().map(entry).collect();
        json!({"name": name, "properties": {
            "loadBalancerBackendAddresses": entries, "virtualNetwork": {"id": network},
        }})
    };
    serde_json::from_value(json!({
        "id": cluster.load_balancer_id(&cluster.placement(Flavor::External)), "name": "testCluster", "etag": "1",
        "sku": {"name": "Standard"},
        "properties": {
            "frontendIPConfigurations": [{"name": "somebodys", "properties": {}}],
            "backendAddressPools": [pool("testCluster", "10.0.1."), pool("testCluster-IPv6", "fd00:1::")],
        },
    }))
    .unwrap()
}

fn run(cluster: &Cluster, document: &LoadBalancer, nodes: &[Arc<Node>]) -> LoadBalancerPlan {
    let known = Known { nodes: Some(nodes), ..Known::default() };
    plan(cluster, &cluster.placement(Flavor::External), Some(document), &[], known)
}

/// The states of the pool's entries, where they are not the default.
fn states(document: &LoadBalancer) -> Vec<String> {
    let found = entries(document).into_iter().filter(|(_, state)| state.as_str() != "None");
    found.map(|((_, member), state)| format!("{member} {}", state.as_str())).collect()
}

fn written(planned: &LoadBalancerPlan) -> &LoadBalancer {
    load_balancer_of(planned.step.as_ref().expect("a write"))
}

const OUT: (&str, &str) = (TAINT_OUT_OF_SERVICE, "");
const SPOT: (&str, &str) = (TAINT_DRAINING, DRAINING_SPOT_EVICTION);
const SHUTDOWN: (&str, &str) = (TAINT_SHUTDOWN, "");

/// LB-350, LB-351, LB-357: draining nodes are down in the pools of both families, all of them in one write; when they
/// are back, they are not.
#[test]
fn lb_350_lb_351_lb_357_nodes_that_drain_are_down_in_all_pools_in_one_write() {
    let cluster = draining();
    let quiet = document(&cluster, &[(0, None), (1, None), (2, Some("None"))]);
    for taint in [OUT, SPOT, SHUTDOWN] {
        let all = nodes([tainted(0, &[taint]), tainted(1, &[taint]), node("alpha", 2)]);
        let planned = run(&cluster, &quiet, &all);
        let down = ["10.0.1.10 Down", "10.0.1.11 Down", "fd00:1::10 Down", "fd00:1::11 Down"];
        assert_eq!(states(written(&planned)), down, "{taint:?}");
        assert_eq!(
            planned.step.as_ref().unwrap().changes[0],
            Change::AdminState {
                pool: "testCluster".to_owned(),
                state: crate::model::AdminState::Down,
                nodes: vec!["alpha000000".to_owned(), "alpha000001".to_owned()],
            }
        );
        // LB-356: an entry that is down stays down without another write.
        assert_eq!(run(&cluster, written(&planned), &all).step, None);
        let back = run(&cluster, written(&planned), &alpha(&[0, 1, 2]));
        assert_eq!(states(written(&back)), [""; 0]);
        assert_eq!(run(&cluster, written(&back), &alpha(&[0, 1, 2])).step, None);
    }
    let known = nodes_in_pools([&quiet], &alpha(&[0, 1]), &[]);
    assert_eq!(known.into_iter().collect::<Vec<_>>().len(), 2);
}

fn alpha(numbers: &[u32]) -> Vec<Arc<Node>> {
    nodes(numbers.iter().map(|number| node("alpha", *number)))
}

/// LB-352, LB-361: either of two reasons is enough; a cordon and other values are not.
#[test]
fn lb_352_lb_361_what_makes_a_node_drain() {
    let cluster = draining();
    let down = document(&cluster, &[(0, Some("Down"))]);
    for taints in [&[OUT, SPOT][..], &[OUT], &[SPOT]] {
        assert_eq!(run(&cluster, &down, &nodes([tainted(0, taints)])).step, None);
    }
    let quiet = document(&cluster, &[(0, None)]);
    for taint in [("node.kubernetes.io/unschedulable", ""), (TAINT_DRAINING, "freeze")] {
        assert_eq!(run(&cluster, &quiet, &nodes([tainted(0, &[taint])])).step, None, "{taint:?}");
    }
}

/// LB-355: a node that joins while it drains is down from its first write.
#[test]
fn lb_355_a_node_joins_down_while_it_drains() {
    let cluster = draining();
    let planned =
        run(&cluster, &document(&cluster, &[(0, None)]), &nodes([node("alpha", 0), tainted(1, &[OUT])]));
    assert_eq!(states(written(&planned)), ["10.0.1.11 Down", "fd00:1::11 Down"]);
}

/// LB-360: an entry that an operator set to up is up again afterwards.
#[test]
fn lb_360_what_was_up_is_up_again() {
    let cluster = draining();
    let up = document(&cluster, &[(0, Some("Up")), (1, None)]);
    assert_eq!(run(&cluster, &up, &alpha(&[0, 1])).step, None);
    let down = run(&cluster, &up, &nodes([tainted(0, &[OUT]), tainted(1, &[OUT])]));
    let was_up =
        entries(&up).into_iter().filter(|(_, state)| state.as_str() == "Up").map(|(key, _)| key).collect();
    let known = Known { nodes: Some(&alpha(&[0, 1])), was_up: Some(&was_up), ..Known::default() };
    let back = plan(&cluster, &cluster.placement(Flavor::External), Some(written(&down)), &[], known);
    assert_eq!(states(written(&back)), ["10.0.1.10 Up", "fd00:1::10 Up"]);
}

/// LB-363: without the key nothing changes, and an entry without a node stays as it is.
#[test]
fn lb_363_states_are_left_alone_where_nobody_asked() {
    let off = cluster_with(json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"}));
    let document_off = document(&off, &[(0, Some("Down")), (1, None)]);
    assert_eq!(run(&off, &document_off, &nodes([node("alpha", 0), tainted(1, &[OUT])])).step, None);
    // Interfaces of machines that are not nodes.
    let by_interface = cluster_with(json!({"enableLoadBalancerAdminState": true}));
    let id = |number: u32| {
        let machine = scale_set_id("alpha").child("virtualMachines", &number.to_string());
        machine.child("networkInterfaces", "nic").child("ipConfigurations", "v4")
    };
    let mut with_interfaces = document(&by_interface, &[]);
    let entry = |number: u32| json!({"name": "x", "properties": {"networkInterfaceIPConfiguration": {"id": id(number)}, "adminState": "Down"}});
    let pool = &mut with_interfaces.properties.as_mut().unwrap().backend_address_pools.as_mut().unwrap()[0];
    pool.properties =
        serde_json::from_value(json!({"loadBalancerBackendAddresses": [entry(0), entry(7)]})).unwrap();
    let planned = run(&by_interface, &with_interfaces, &alpha(&[0]));
    assert_eq!(states(written(&planned)), [format!("{} Down", id(7).to_lower())]);
}
