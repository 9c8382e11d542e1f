//! Load balancers of SKU Basic: each serves one set of machines.

use azure_types::ResourceId;

use super::placement_cases::PlacementWorld;
use super::*;
use crate::machines::MachineSets;
use crate::machines::backend_pool::pools_to_fill;
use crate::model::Flavor;
use crate::outcome::{Refusal, Stop, Wait};
use crate::placement::nodes_of_sets;

const MODE: &str = "azure-load-balancer-mode";

/// A cluster whose primary set is `alpha`.
fn basic() -> Cluster {
    cluster_with(json!({"loadBalancerSku": "basic", "primaryScaleSetName": "alpha"}))
}

fn web() -> Svc {
    svc("web").tcp(80)
}

/// LB-011.
#[test]
fn lb_011_load_balancers_are_named_after_sets_and_the_primary_one_after_the_cluster() {
    let cluster = basic();
    let name = |set: &str, flavor| cluster.balancer_of_set(set, flavor).name;
    assert_eq!(name("alpha", Flavor::External), "testCluster");
    assert_eq!(name("Alpha", Flavor::Internal), "testCluster-internal");
    assert_eq!(name("beta", Flavor::External), "beta");
    assert_eq!(name("beta", Flavor::Internal), "beta-internal");
    let named = cluster_with(json!({
        "loadBalancerSku": "basic", "primaryAvailabilitySetName": "alpha", "vmType": "standard", "loadBalancerName": "own",
    }));
    assert_eq!(named.balancer_of_set("alpha", Flavor::Internal).name, "own-internal");
}

/// LB-014, LB-015, LB-016, LB-017: the annotation names a set, or selects the one with the fewest rules.
#[test]
fn lb_014_to_017_the_annotation_chooses_a_set() {
    let cluster = cluster_with(json!({
        "loadBalancerSku": "basic", "primaryScaleSetName": "alpha", "maximumLoadBalancerRuleCount": 3,
    }));
    let place = |load_balancers: &[(&str, &[(&str, usize)])], mode: Option<&str>| {
        let mut known = PlacementWorld::of(&cluster, load_balancers);
        known.nodes = nodes([node("alpha", 0), node("beta", 0), node("beta", 1)]);
        let service = mode.into_iter().fold(web(), |service, mode| service.annotate(MODE, mode));
        known.place(&cluster, &service)
    };
    let both: &[(&str, &[(&str, usize)])] = &[("testCluster", &[("x", 2)]), ("beta", &[("y", 1)])];
    let full: &[(&str, &[(&str, usize)])] = &[("testCluster", &[("x", 3)]), ("beta", &[("y", 4)])];
    assert_eq!(place(both, Some("__Auto__")).unwrap(), "beta", "LB-014: it has fewer rules");
    assert_eq!(place(&both[..1], Some(" __auto__ ")).unwrap(), "beta", "LB-015: to be created");
    assert_eq!(place(&both[1..], Some("__auto__")).unwrap(), "testCluster", "LB-015: to be created");
    assert_eq!(place(both, None).unwrap(), "testCluster", "the primary one");
    assert_eq!(place(both, Some("BETA")).unwrap(), "beta");
    for mode in [None, Some("__auto__"), Some("alpha")] {
        let Err(Refusal::RuleLimitReached { rules: 3, limit: 3, sets }) = place(full, mode) else {
            panic!("LB-016: {mode:?}");
        };
        assert_eq!(sets.len(), if mode == Some("__auto__") { 2 } else { 1 });
    }
    assert_eq!(
        place(both, Some("delta")),
        Err(Refusal::MachineSetNotFound { named: "delta".into(), sets: vec!["alpha".into(), "beta".into()] }),
        "LB-017"
    );
    let mut known = PlacementWorld::of(&cluster, both);
    let mut fresh = node("beta", 0);
    fresh.spec.provider_id.clear();
    known.nodes = nodes([node("alpha", 0), fresh]);
    let waits = known.try_place(&cluster, &web().annotate(MODE, "beta")).unwrap_err();
    assert!(matches!(waits, Stop::NotYet(Wait::MachineSetUnknown { .. })), "a node may be of it: {waits:?}");
    assert_eq!(
        known.place(&cluster, &web().annotate(MODE, "__auto__")).unwrap(),
        "testCluster",
        "one is known"
    );
    known.nodes.remove(0);
    let waits = known.try_place(&cluster, &web().annotate(MODE, "__auto__")).unwrap_err();
    assert!(matches!(waits, Stop::NotYet(Wait::MachineSetUnknown { .. })), "no set is known: {waits:?}");
    // A Service that is on a load balancer stays there, unless it names another set.
    let here: &[(&str, &[(&str, usize)])] = &[("testCluster", &[("x", 1)]), ("beta", &[("web", 4)])];
    assert_eq!(place(here, Some("__auto__")).unwrap(), "beta");
    assert_eq!(place(here, None).unwrap(), "beta");
    assert_eq!(place(here, Some("beta")).unwrap(), "beta");
    assert_eq!(place(here, Some("alpha")).unwrap(), "testCluster");
    // Also if the set has no nodes, if the load balancer is full, and however Azure spells the set.
    let here: &[(&str, &[(&str, usize)])] = &[("delta", &[("web", 4)])];
    assert_eq!(place(here, Some("Delta")).unwrap(), "delta");
    let spelled: &[(&str, &[(&str, usize)])] = &[("BETA", &[("web", 1)])];
    assert_eq!(place(spelled, Some("beta")).unwrap(), "BETA", "the one that exists");
    assert_eq!(place(&[("BETA", &[("x", 1)])], Some("beta")).unwrap(), "BETA");
}

/// A Service that shares the frontend of another Service stays with it, even if the load balancer is full or belongs to
/// another set. The Service whose frontend others use does not move.
#[test]
fn services_that_share_a_frontend_stay_together() {
    let cluster = cluster_with(json!({
        "loadBalancerSku": "basic", "primaryScaleSetName": "alpha", "maximumLoadBalancerRuleCount": 2,
    }));
    let nodes = nodes([node("alpha", 0), node("beta", 0)]);
    let mut azure = Azure::of(cluster);
    let first = svc("first").tcp(80).annotate(MODE, "beta");
    azure.converge(&[first.clone().arc()], &nodes);
    let address = azure.observed.public_ips[0].properties.as_ref().unwrap().ip_address.clone().unwrap();
    let second = svc("second").tcp(443).annotate("azure-load-balancer-ipv4", &address).arc();
    let planned = azure.plan(&[first.clone().arc(), second.clone()], &nodes);
    assert_eq!(planned.refused, [], "{planned}");
    azure.converge(&[first.clone().arc(), second.clone()], &nodes);
    let names = |azure: &Azure| -> Vec<String> {
        azure.observed.load_balancers.iter().map(|one| one.name.clone().unwrap()).collect()
    };
    assert_eq!(names(&azure), ["beta"]);
    assert_eq!(rule_names(&azure.observed.load_balancers[0]).len(), 2);
    let moved = first.annotate(MODE, "alpha").arc();
    let planned = azure.plan(&[moved, second], &nodes);
    assert!(matches!(&planned.refused[..], [(_, Refusal::CannotMove { .. })]), "{planned}");
    assert!(planned.plan.is_empty(), "{planned}");
}

/// LB-182 for one set: nodes of another set are no reason to remove the last members.
#[test]
fn exclusions_do_not_empty_the_pool_of_a_set() {
    let all = [node("alpha", 0), node("beta", 0)];
    let mut azure = Azure::of(basic());
    let service = web().annotate(MODE, "beta").arc();
    azure.converge(std::slice::from_ref(&service), &nodes(all.clone()));
    let [alpha, beta] = all;
    let excluded =
        nodes([alpha, labelled(beta, "node.kubernetes.io/exclude-from-external-load-balancers", "true")]);
    azure.converge(&[service], &excluded);
    assert_eq!(members(&azure, "beta"), ["beta/0"]);
}

/// The instances that are in a load balancer's pool.
fn members(azure: &Azure, load_balancer: &str) -> Vec<String> {
    let is_in = |document: &Value| document.to_string().contains(&format!("loadBalancers/{load_balancer}/"));
    let sets = azure.observed.machines.scale_sets.iter();
    let instances = sets.flat_map(|(_, instances)| instances);
    let documents = instances.map(|instance| serde_json::to_value(&**instance).unwrap());
    let found = documents.filter(is_in);
    found
        .map(|one| one["id"].as_str().unwrap().parse::<ResourceId>().unwrap())
        .map(|id| {
            let set = id.parent().unwrap();
            format!("{}/{}", set.name(), id.name())
        })
        .collect()
}

/// LB-019: a Service that names another set moves there; the load balancer that it leaves is deleted with its last
/// frontend. Each load balancer has the machines of its set.
#[test]
fn lb_019_a_service_moves_to_the_load_balancer_of_another_set() {
    let nodes = nodes([node("alpha", 0), node("alpha", 1), node("beta", 0)]);
    let mut azure = Azure::of(basic());
    let start = web();
    azure.converge(&[start.clone().arc()], &nodes);
    let names = |azure: &Azure| -> Vec<String> {
        azure.observed.load_balancers.iter().map(|one| one.name.clone().unwrap()).collect()
    };
    let sku = |azure: &Azure| azure.observed.load_balancers[0].sku.as_ref().unwrap().name.clone();
    assert_eq!((names(&azure), sku(&azure)), (vec!["testCluster".to_owned()], Some("Basic".to_owned())));
    assert_eq!(members(&azure, "testCluster"), ["alpha/0", "alpha/1"]);
    let public_ip = azure.observed.public_ips[0].clone();
    assert_eq!(public_ip.sku.as_ref().unwrap().name.as_deref(), Some("Basic"));
    assert_eq!(public_ip.zones, None);
    let rule = &rules(&azure.observed.load_balancers[0])[0];
    assert_ne!(rule.properties.as_ref().unwrap().enable_tcp_reset, Some(true), "only SKU Standard knows it");

    let moved = start.annotate(MODE, "beta").arc();
    azure.converge(std::slice::from_ref(&moved), &nodes);
    assert_eq!(names(&azure), ["beta"]);
    assert_eq!(members(&azure, "beta"), ["beta/0"]);
    assert_eq!(members(&azure, "testCluster"), Vec::<String>::new());
    let inside = svc("db").tcp(5432).internal().annotate(MODE, "beta").arc();
    azure.converge(&[moved, inside], &nodes);
    assert_eq!(names(&azure), ["beta", "beta-internal"]);
}

/// Without a primary set the cluster's load balancer has all machines; others have their sets.
#[test]
fn without_a_primary_set_the_clusters_load_balancer_has_all_machines() {
    let cluster = cluster_with(json!({"loadBalancerSku": "basic"}));
    let nodes = nodes([node("alpha", 0), node("beta", 0), machine_node("alone")]);
    let sets = nodes_of_sets(&cluster, &nodes, &MachineSets::new([&*virtual_machine("alone", None)]));
    assert_eq!(sets.on(&cluster.placement(Flavor::Internal)).count(), 3);
    assert_eq!(sets.on(&cluster.balancer_of_set("beta", Flavor::External)).count(), 1);
    let mut azure = Azure::of(cluster);
    azure.converge(&[web().arc()], &nodes[..1]);
    let document = &azure.observed.load_balancers[0];
    let pools = pools_to_fill(
        &azure.cluster,
        &azure.cluster.placement(Flavor::External),
        Some(&sets),
        None,
        document,
    );
    assert!(pools[0].is_for(&nodes[1]));
}

/// LB-439: a node for whose machine Azure has not reported the set yet is unknown and in no set. Nodes that are behind
/// no load balancer anyway are not checked.
#[test]
fn lb_439_nodes_whose_sets_are_not_known_are_reported() {
    let control_plane = labelled(machine_node("cp"), "node-role.kubernetes.io/control-plane", "");
    let nodes = nodes([node("alpha", 0), machine_node("new"), machine_node("alone"), control_plane]);
    let known = virtual_machine("alone", None);
    let sets = nodes_of_sets(&basic(), &nodes, &MachineSets::new([&*known]));
    assert_eq!(sets.unknown().collect::<Vec<_>>(), ["new"]);
    let known = [virtual_machine("alone", None), virtual_machine("new", Some("alpha"))];
    let sets = nodes_of_sets(&basic(), &nodes, &MachineSets::new(known.iter().map(|one| &**one)));
    assert_eq!(sets.unknown().count(), 0);
    assert_eq!(sets.on(&basic().placement(Flavor::External)).collect::<Vec<_>>(), ["alpha000000", "new"]);
}

/// HTTPS probes require SKU Standard.
#[test]
fn basic_load_balancers_probe_by_connection_where_https_is_asked_for() {
    let service = web().annotate("azure-load-balancer-health-probe-protocol", "https");
    let mut azure = Azure::of(basic());
    azure.converge(&[service.arc()], &nodes([node("alpha", 0)]));
    let probe = probes(&azure.observed.load_balancers[0])[0].properties.as_ref().unwrap();
    assert!(probe.protocol.as_ref().unwrap().is("Tcp"));
    assert_eq!(probe.request_path, None);
}
