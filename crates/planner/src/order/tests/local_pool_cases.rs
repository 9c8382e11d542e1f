//! Cases of `docs/rules/backend-pools.md` where Services have pools of their own.

use std::collections::BTreeSet;

use azure_types::{BackendAddressPool, BackendAddresses};
use k8s::ObjectKey;
use serde_json::json;

use super::*;
use crate::model::{AdminState, Flavor};
use crate::outcome::Action;
use crate::service::local_pool;

/// A cluster whose Services share several load balancers.
fn several(extra: serde_json::Value) -> Cluster {
    let mut keys = json!({
        "loadBalancerBackendPoolConfigurationType": "nodeIP",
        "multipleStandardLoadBalancerConfigurations": [{"name": "testCluster", "primaryVMSet": "alpha"}],
    });
    keys.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    cluster_with(keys)
}

/// Its Azure, and the endpoints that Services have on instances of scale set alpha.
fn azure(endpoints: &[(&str, &[u32])]) -> Azure {
    let mut azure = Azure::of(several(json!({})));
    move_endpoints(&mut azure, endpoints);
    azure
}

fn move_endpoints(azure: &mut Azure, endpoints: &[(&str, &[u32])]) {
    let on = |numbers: &&[u32]| -> BTreeSet<String> {
        numbers.iter().map(|number| node("alpha", *number).name().to_owned()).collect()
    };
    let all = endpoints.iter().map(|(name, numbers)| (ObjectKey::new("default", *name), on(numbers)));
    azure.observed.endpoints = Some(all.collect());
}

fn web() -> Svc {
    svc("web").tcp(80).local(30_000)
}

fn alpha(numbers: std::ops::Range<u32>) -> Vec<Arc<Node>> {
    nodes(numbers.map(|number| node("alpha", number)))
}

fn pools(azure: &Azure) -> Vec<&BackendAddressPool> {
    let document = azure.load_balancer(Flavor::External).expect("a load balancer");
    document.properties.as_ref().unwrap().backend_address_pools.iter().flatten().collect()
}

/// The pools by name, each with its members' addresses in order.
fn members(azure: &Azure) -> Vec<(String, Vec<String>)> {
    let of = |pool: &&BackendAddressPool| {
        let entries = pool.properties.iter().flat_map(|p| p.load_balancer_backend_addresses.iter());
        let entries = entries.flat_map(BackendAddresses::iter);
        let mut all: Vec<String> = entries.filter_map(|entry| entry.properties?.ip_address).collect();
        all.sort();
        (pool.name.clone().unwrap(), all)
    };
    let mut all: Vec<_> = pools(azure).iter().map(of).collect();
    all.sort();
    all
}

fn texts(all: &[(String, Vec<String>)]) -> Vec<(&str, Vec<&str>)> {
    all.iter().map(|(name, members)| (name.as_str(), members.iter().map(String::as_str).collect())).collect()
}

/// LB-250: only the nodes with endpoints, for each family; others use the cluster's pool. LB-258: of all slices.
#[test]
fn lb_250_lb_258_a_local_service_has_a_pool_of_the_nodes_with_its_endpoints() {
    let mut azure = azure(&[("web", &[0, 2]), ("other", &[1])]);
    let services = [web().dual().arc(), svc("other").tcp(443).arc()];
    let planned = azure.converge(&services, &alpha(0..3));
    assert_eq!(planned.refused, []);
    let found = members(&azure);
    let found = texts(&found);
    assert!(found.contains(&("default-web", vec!["10.0.1.10", "10.0.1.12"])), "{found:?}");
    assert!(found.contains(&("default-web-ipv6", vec!["fd00:1::10", "fd00:1::12"])), "{found:?}");
    let cluster = &azure.cluster;
    for rule in rules(azure.load_balancer(Flavor::External).unwrap()) {
        let pool =
            rule.properties.as_ref().unwrap().backend_address_pool.as_ref().unwrap().id.as_ref().unwrap();
        let name = rule.name.as_deref().unwrap();
        let expected = match name {
            "aweb-TCP-80" => "default-web".to_owned(),
            "aweb-TCP-80-IPv6" => "default-web-ipv6".to_owned(),
            _ => cluster.pool_name(crate::model::Family::V4),
        };
        assert_eq!(pool.name(), expected, "{name}");
    }
    // The pools hold addresses of the cluster's network.
    let own = pools(&azure).into_iter().find(|pool| pool.name.as_deref() == Some("default-web")).unwrap();
    let network = own.properties.as_ref().unwrap().virtual_network.as_ref().unwrap();
    assert_eq!(network.id, Some(cluster.virtual_network_id()));
}

/// LB-250: with one load balancer of a flavor a Service shares the pool, whatever it holds.
#[test]
fn lb_250_one_load_balancer_has_one_pool() {
    for extra in [json!({}), json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"})] {
        let mut azure = Azure::of(cluster_with(extra));
        move_endpoints(&mut azure, &[("web", &[0])]);
        azure.converge(&[web().arc()], &alpha(0..3));
        assert_eq!(pools(&azure).len(), 1);
    }
}

/// LB-251: moved endpoints are one write of the load balancer, with the added and removed members. A Service without
/// endpoints has an empty pool, and nothing is written for a pool that is up to date.
#[test]
fn lb_251_moved_endpoints_are_one_write() {
    let mut azure = azure(&[("web", &[0])]);
    let (services, nodes) = ([web().arc()], alpha(0..3));
    azure.converge(&services, &nodes);
    for (on, expected) in
        [(vec![1], vec!["10.0.1.11"]), (vec![], vec![]), (vec![2, 1], vec!["10.0.1.11", "10.0.1.12"])]
    {
        move_endpoints(&mut azure, &[("web", &on)]);
        let planned = azure.plan(&services, &nodes);
        assert_eq!(planned.plan.steps.len(), 1, "{}", planned.plan);
        assert_eq!(planned.plan.steps[0].action, Action::Update);
        azure.apply(&planned.plan);
        assert_eq!(texts(&members(&azure)).last().unwrap(), &("default-web", expected));
        assert!(azure.plan(&services, &nodes).plan.is_empty());
    }
}

/// Unknown is not absent: without endpoints or nodes the members stay. A node that does not exist is not a member.
#[test]
fn members_of_a_pool_of_its_own_stay_where_endpoints_are_not_known() {
    let mut azure = azure(&[("web", &[0, 9])]);
    let (services, nodes) = ([web().arc()], alpha(0..3));
    azure.converge(&services, &nodes);
    assert_eq!(texts(&members(&azure)).last().unwrap().1, ["10.0.1.10"]);
    azure.observed.endpoints = None;
    assert!(azure.plan(&services, &nodes).plan.is_empty());
}

/// LB-257: a Service that changes to Cluster uses the cluster's pool, and back; its own pool is removed and added in
/// the same write as its rules.
#[test]
fn lb_257_a_service_that_turns_to_cluster_gives_up_its_pool() {
    let mut azure = azure(&[("web", &[1])]);
    let nodes = alpha(0..3);
    let turned = svc("web").tcp(80).arc();
    azure.converge(&[web().arc()], &nodes);
    for service in [turned, web().arc()] {
        let planned = azure.plan(std::slice::from_ref(&service), &nodes);
        let own = planned.plan.steps.iter().filter(|step| step.on_behalf_of.contains(&service.key()));
        let own = own.filter(|step| matches!(step.document, Some(Document::LoadBalancer(_))));
        assert_eq!(own.count(), 1, "{}", planned.plan);
        azure.apply(&planned.plan);
        let has_own = pools(&azure).iter().any(|pool| pool.name.as_deref() == Some("default-web"));
        assert_eq!(has_own, service.is_local());
        assert!(azure.plan(&[service], &nodes).plan.is_empty());
    }
}

/// LB-259: the pool is removed with the Service, although the load balancer stays; and a family's pool with the family.
#[test]
fn lb_259_pools_go_with_their_service_and_their_family() {
    let mut azure = azure(&[("web", &[1]), ("stays", &[0])]);
    let (stays, nodes) = (svc("stays").tcp(443).local(30_001).arc(), alpha(0..3));
    azure.converge(&[web().dual().arc(), stays.clone()], &nodes);
    azure.converge(&[web().arc(), stays.clone()], &nodes);
    assert_eq!(
        texts(&members(&azure)),
        [("default-stays", vec!["10.0.1.10"]), ("default-web", vec!["10.0.1.11"])]
    );
    azure.converge(&[web().deleting().arc(), stays.clone()], &nodes);
    assert_eq!(texts(&members(&azure)), [("default-stays", vec!["10.0.1.10"])]);
    azure.converge(&[Svc((*stays).clone()).deleting().arc()], &nodes);
    assert!(azure.load_balancer(Flavor::External).is_none());
}

/// LB-257: if several load balancers become one, no pools of single Services remain, whichever load balancer a Service
/// is on.
#[test]
fn one_load_balancer_after_several_has_no_pools_of_services() {
    let mut before = azure(&[("web", &[1])]);
    let nodes = alpha(0..3);
    before.converge(&[web().arc()], &nodes);
    let mut after = Azure::of(cluster_with(json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"})));
    after.observed = before.observed;
    after.converge(&[web().arc()], &nodes);
    assert_eq!(texts(&members(&after)), [("testCluster", vec!["10.0.1.10", "10.0.1.11", "10.0.1.12"])]);
}

/// LB-257: a pool that only has the name of a Service's pool stays: it contains interfaces, or something else uses it.
#[test]
fn a_pool_of_somebody_elses_is_not_removed() {
    let nodes = alpha(0..3);
    let theirs = [
        json!({"name": "default-web", "properties": {"backendIPConfigurations": [{"id": "/subscriptions/s"}]}}),
        json!({"name": "default-web", "properties": {}}),
    ];
    for (number, pool) in theirs.into_iter().enumerate() {
        let mut azure = Azure::new();
        azure.converge(&[svc("web").tcp(80).arc()], &nodes);
        let id = azure.cluster.load_balancer_id(&azure.cluster.placement(Flavor::External));
        let document =
            azure.observed.load_balancers.iter_mut().find(|one| one.id.as_ref() == Some(&id)).unwrap();
        let properties = Arc::make_mut(document).properties.as_mut().unwrap();
        properties.backend_address_pools.as_mut().unwrap().push(serde_json::from_value(pool).unwrap());
        if number == 1 {
            let reference = json!({"id": id.child("backendAddressPools", "default-web")});
            let rule = json!({"name": "out", "properties": {"backendAddressPool": reference}});
            properties.outbound_rules = Some(vec![serde_json::from_value(rule).unwrap()]);
        }
        assert!(azure.plan(&[svc("web").tcp(80).arc()], &nodes).plan.is_empty());
    }
}

/// LB-445: two Services whose namespaces and names result in one pool name compete for one pool: the first keeps it.
#[test]
fn lb_445_a_pool_belongs_to_one_service() {
    let in_namespace = |namespace: &str, name: &str, uid: &str, port: i32| {
        let service = svc(uid).tcp(port).local(30_000 + port);
        service.change(|s| {
            s.metadata.namespace = Some(namespace.to_owned());
            s.metadata.name = Some(name.to_owned());
        })
    };
    let first = in_namespace("a-b", "c", "second-by-key", 80);
    let second = in_namespace("a", "b-c", "first-by-key", 81);
    let mut azure = azure(&[]);
    let endpoints = azure.observed.endpoints.as_mut().unwrap();
    endpoints.insert(first.arc().key(), BTreeSet::from([node("alpha", 0).name().to_owned()]));
    endpoints.insert(second.arc().key(), BTreeSet::from([node("alpha", 1).name().to_owned()]));
    let nodes = alpha(0..3);
    azure.converge(&[first.arc()], &nodes);
    let planned = azure.plan(&[second.arc(), first.arc()], &nodes);
    let refused: Vec<_> = planned.refused.iter().map(|(key, refusal)| (key.to_string(), refusal)).collect();
    assert!(
        matches!(refused.as_slice(), [(key, Refusal::PoolNameTaken { pool, .. })] if key == "a/b-c" && pool == "a-b-c"),
        "{refused:?}"
    );
    azure.apply(&planned.plan);
    assert_eq!(texts(&members(&azure)).last().unwrap(), &("a-b-c", vec!["10.0.1.10"]));
    // Names that Azure would not accept, and the cluster's own, are reported before anything is created.
    let cluster = several(json!({}));
    let own = in_namespace("testcluster", "ipv6", "own", 80);
    let own = crate::service::ServiceIntent::from_service(&cluster, &own.arc());
    assert!(matches!(own, Err(Refusal::PoolNameTaken { .. })), "{own:?}");
    let long = in_namespace(&"n".repeat(40), &"s".repeat(40), "long", 80);
    let refusal = crate::service::ServiceIntent::from_service(&cluster, &long.arc()).unwrap_err();
    assert!(matches!(refusal, Refusal::PoolNameTooLong { limit: 80, .. }), "{refusal}");
    assert!(refusal.is_terminal());
    crate::service::ServiceIntent::from_service(&cluster_with(json!({})), &long.arc()).unwrap();
}

/// LB-350: a draining node takes no new connections in pools of single Services either, from the moment it joins.
#[test]
fn a_node_that_drains_is_down_in_pools_of_services() {
    let mut azure = Azure::of(several(json!({"enableLoadBalancerAdminState": true})));
    move_endpoints(&mut azure, &[("web", &[0, 1])]);
    let mut drains = node("alpha", 1);
    drains.spec.taints = serde_json::from_value(json!([
        {"key": k8s::names::TAINT_OUT_OF_SERVICE, "effect": "NoExecute"}
    ]))
    .unwrap();
    azure.converge(&[web().arc()], &nodes([node("alpha", 0), drains]));
    let own = pools(&azure).into_iter().find(|pool| pool.name.as_deref() == Some("default-web")).unwrap();
    let entries = own.properties.as_ref().unwrap().load_balancer_backend_addresses.as_ref().unwrap();
    let states: Vec<_> =
        entries.iter().map(|entry| (entry.name.clone().unwrap(), AdminState::of(&entry))).collect();
    let expected = [("alpha000000", AdminState::None), ("alpha000001", AdminState::Down)];
    assert_eq!(states, expected.map(|(name, state)| (name.to_owned(), state)));
}

#[test]
fn names_of_pools_are_a_contract() {
    let key = ObjectKey::new("Shop", "Web");
    assert_eq!(local_pool::name(&key, crate::model::Family::V4), "shop-web");
    assert_eq!(local_pool::name(&key, crate::model::Family::V6), "shop-web-ipv6");
}
