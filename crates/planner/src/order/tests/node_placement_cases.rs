//! Several load balancers: the nodes of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s::Node;
use serde_json::{Value, json};

use super::azure::Azure;
use super::placement_cases::several;
use super::{labelled, machine_node, node, nodes, svc, virtual_machine};
use crate::machines::machine_set::MachineSets;
use crate::machines::node_places::NodePlaces;
use crate::model::{Balancer, Cluster, Flavor};
use crate::placement::{Holdings, place_nodes};

type Pools<'a> = &'a [(&'a str, &'a [&'a Node])];

/// The load balancers that exist, each with these nodes in its pool.
fn existing(
    cluster: &Cluster,
    pools: Pools<'_>,
) -> Vec<(Balancer, crate::resources::load_balancer::ListedLoadBalancer)> {
    let one = |(name, members): &(&str, &[&Node])| {
        let flavor = if name.ends_with("-internal") { Flavor::Internal } else { Flavor::External };
        let balancer = Balancer { name: (*name).to_owned(), flavor };
        let entry = |node: &&Node| {
            let address = node.internal_addresses().next().unwrap();
            json!({"name": node.name(), "properties": {"ipAddress": address}})
        };
        let entries: Vec<Value> = members.iter().map(entry).collect();
        let document = json!({
            "id": cluster.load_balancer_id(&balancer), "name": name, "etag": "1",
            "properties": {"backendAddressPools": [
                {"name": cluster.name, "properties": {"loadBalancerBackendAddresses": entries}},
            ]},
        });
        (balancer, Arc::<azure_types::LoadBalancer>::new(serde_json::from_value(document).unwrap()).into())
    };
    pools.iter().map(one).collect()
}

fn placed(cluster: &Cluster, all: &[&Node], pools: Pools<'_>) -> NodePlaces {
    let all = nodes(all.iter().map(|node| (*node).clone()));
    place_nodes(cluster, &all, &MachineSets::default(), &existing(cluster, pools))
}

fn on(places: &NodePlaces, name: &str) -> Vec<String> {
    let balancer = Balancer { name: name.to_owned(), flavor: Flavor::External };
    places.on(&balancer).map(str::to_owned).collect()
}

fn names(nodes: &[&Node]) -> Vec<String> {
    nodes.iter().map(|node| node.name().to_owned()).collect()
}

/// Instance `number` of a set, with an address that no instance of another set has.
fn instance(set: &str, number: u32) -> Node {
    let mut node = node(set, number);
    let third = set.bytes().map(u32::from).sum::<u32>() % 250;
    node.status.addresses.truncate(1);
    node.status.addresses[0].address = format!("10.0.{third}.{number}");
    node
}

fn plain(names: &[&str]) -> Cluster {
    let entries: Vec<(&str, Value)> = names.iter().map(|name| (*name, json!({}))).collect();
    several(&entries)
}

/// LB-242: nodes of primary sets. LB-243: without a load balancer for the set, its nodes are treated like all others.
#[test]
fn lb_242_lb_243_nodes_of_a_primary_set_belong_to_its_load_balancer() {
    let cluster = plain(&["lb1", "lb2"]);
    let [a, b, c] = [instance("set-lb1", 1), instance("SET-LB2", 1), instance("set-lb2", 2)];
    let both = placed(&cluster, &[&a, &b, &c], &[("lb1", &[]), ("LB2", &[])]);
    assert_eq!((on(&both, "lb1"), on(&both, "lb2")), (names(&[&a]), names(&[&b, &c])));
    let alone = placed(&cluster, &[&a, &b, &c], &[("lb1", &[])]);
    assert_eq!(on(&alone, "lb1").len(), 3, "LB-243");
    // The internal load balancer of an entry has the nodes of the external one.
    let internal = placed(&cluster, &[&a, &b, &c], &[("lb1", &[]), ("lb2-internal", &[])]);
    let balancer = Balancer { name: "lb2-internal".to_owned(), flavor: Flavor::Internal };
    assert_eq!(internal.on(&balancer).count(), 2);
    assert_eq!(on(&internal, "lb2"), names(&[&b, &c]));
    // As soon as there is a load balancer for the set, its nodes move there.
    let moved = placed(&cluster, &[&a, &b, &c], &[("lb1", &[&a, &b, &c]), ("lb2", &[])]);
    assert_eq!(on(&moved, "lb2"), names(&[&b, &c]));
}

/// LB-244: a selector takes its nodes; the others go to load balancers without one, to the one with the fewest nodes.
#[test]
fn lb_244_nodes_are_selected_or_go_where_the_fewest_are() {
    let selector = json!({"nodeSelector": {"matchLabels": {"pool": "gpu"}}});
    let cluster = several(&[("lb1", json!({})), ("lb2", json!({"nodeSelector": {}})), ("lb3", selector)]);
    let gpu = labelled(instance("any", 9), "pool", "gpu");
    let primary = instance("set-lb1", 1);
    let [a, b, c] = [instance("any", 1), instance("any", 2), instance("any", 3)];
    let all = [&primary, &a, &b, &c, &gpu];
    let places = placed(&cluster, &all, &[("lb1", &[]), ("lb2", &[]), ("lb3", &[])]);
    assert_eq!(on(&places, "lb3"), names(&[&gpu]));
    assert_eq!(on(&places, "lb2"), names(&[&a, &c]), "lb1 has a node of its own from the start");
    assert_eq!(on(&places, "lb1"), names(&[&b, &primary]));
    let mut reversed = all;
    reversed.reverse();
    assert_eq!(
        placed(&cluster, &reversed, &[("lb3", &[]), ("lb2", &[]), ("lb1", &[])]),
        places,
        "in any order"
    );
}

/// LB-245: a node without an eligible load balancer is reported, and the others are placed.
#[test]
fn lb_245_a_node_that_no_load_balancer_takes_is_told() {
    let selector = |pool: &str| json!({"nodeSelector": {"matchLabels": {"pool": pool}}});
    let cluster = several(&[("lb1", selector("web")), ("lb2", selector("gpu"))]);
    let [web, none] = [labelled(instance("any", 1), "pool", "web"), instance("any", 2)];
    let places = placed(&cluster, &[&web, &none], &[("lb1", &[]), ("lb2", &[])]);
    assert_eq!(on(&places, "lb1"), names(&[&web]));
    let notice = places.notice(&svc("web").0.key()).unwrap();
    assert_eq!(notice.reason, "FailedToFindLoadBalancerForNode");
    assert!(
        notice.message.contains(none.name()) && !notice.message.contains(web.name()),
        "{}",
        notice.message
    );
    let placed = placed(&cluster, &[&web], &[("lb1", &[])]);
    assert_eq!(placed.notice(&svc("web").0.key()), None);
}

/// LB-246: nodes stay where pools have them. LB-247: a deleted node has no place.
#[test]
fn lb_246_lb_247_nodes_stay_where_they_are() {
    let cluster = plain(&["lb1", "lb2"]);
    let all: Vec<Node> = (1..7).map(|number| instance("any", number)).collect();
    let [one, two, three, _, five, six] = &all[..] else { unreachable!() };
    let pools: Pools<'_> = &[("lb1", &[one, six]), ("lb2", &[two, three, five])];
    let places = placed(&cluster, &[one, two, three, five, six], pools);
    assert_eq!((on(&places, "lb1"), on(&places, "lb2")), (names(&[one, six]), names(&[two, three, five])));
    let places = placed(&cluster, &[one, two, three, six], pools);
    assert_eq!(on(&places, "lb2"), names(&[two, three]), "LB-247");
}

/// LB-248: the nodes of a deleted load balancer are divided among the others. LB-249: a node that was excluded comes
/// back to the load balancer of its primary set.
#[test]
fn lb_248_lb_249_nothing_is_remembered() {
    let cluster = plain(&["lb1", "lb2"]);
    let [a, b] = [instance("any", 1), instance("set-lb2", 2)];
    let gone = placed(&cluster, &[&a, &b], &[("lb1", &[])]);
    assert_eq!(on(&gone, "lb1"), names(&[&a, &b]), "LB-248");
    let excluded = labelled(b.clone(), "node.kubernetes.io/exclude-from-external-load-balancers", "");
    let without = placed(&cluster, &[&a, &excluded], &[("lb1", &[&a]), ("lb2", &[&b])]);
    assert_eq!(on(&without, "lb2"), [""; 0]);
    let back = placed(&cluster, &[&a, &b], &[("lb1", &[&a]), ("lb2", &[])]);
    assert_eq!(on(&back, "lb2"), names(&[&b]), "LB-249");
}

/// LB-433: the set of a virtual machine comes only from its document. Until that is known the node stays where it is.
#[test]
fn lb_433_the_set_of_a_virtual_machine_is_read_from_its_document() {
    let cluster = plain(&["lb1", "lb2"]);
    let node = machine_node("vm1");
    let all = nodes([node.clone()]);
    let pools = existing(&cluster, &[("lb1", &[&node]), ("lb2", &[])]);
    let place = |sets: &MachineSets| on(&place_nodes(&cluster, &all, sets, &pools), "lb2");
    assert_eq!(place(&MachineSets::default()), [""; 0]);
    let unknown = |sets: &MachineSets| -> Vec<String> {
        place_nodes(&cluster, &all, sets, &[]).unknown().map(str::to_owned).collect()
    };
    assert_eq!(unknown(&MachineSets::default()), names(&[&node]), "a node without a place is named");
    assert_eq!(unknown(&MachineSets::new([&*virtual_machine("vm1", None)])), [""; 0]);
    assert_eq!(place(&MachineSets::new([&*virtual_machine("vm1", None)])), [""; 0]);
    assert_eq!(place(&MachineSets::new([&*virtual_machine("vm1", Some("Set-LB2"))])), names(&[&node]));
    let mut of_availability_set = (*virtual_machine("vm1", None)).clone();
    let set = cluster.network_group("rg").resource("Microsoft.Compute", "availabilitySets", "SET-LB2");
    of_availability_set.properties.as_mut().unwrap().availability_set =
        Some(azure_types::SubResource::to(set));
    assert_eq!(place(&MachineSets::new([&of_availability_set])), names(&[&node]));
}

/// NODE-072: in an availability set, or in none. NODE-076: in flexible scale sets; a machine that Azure has not
/// reported does not block the placement of others.
#[test]
fn node_072_node_076_virtual_machines_say_of_which_set_they_are() {
    let cluster = plain(&["lb1", "lb2"]);
    let mut of_availability_set = (*virtual_machine("vm1", None)).clone();
    let set = cluster.network_group("rg").resource("Microsoft.Compute", "availabilitySets", "SET-lb1");
    of_availability_set.properties.as_mut().unwrap().availability_set =
        Some(azure_types::SubResource::to(set));
    let of_flexible_sets =
        [("vm2", "set-lb1"), ("vm3", "set-lb2")].map(|(name, set)| virtual_machine(name, Some(set)));
    let alone = virtual_machine("vm4", None);
    let documents = of_flexible_sets.iter().map(|one| &**one).chain([&of_availability_set, &*alone]);
    let sets = MachineSets::new(documents);
    let nodes_of = ["vm1", "vm2", "vm3", "vm4", "vm5"].into_iter().enumerate().map(|(number, name)| {
        let mut node = machine_node(name);
        node.status.addresses.truncate(1);
        node.status.addresses[0].address = format!("10.0.2.{number}");
        node
    });
    let all = nodes(nodes_of);
    let places = place_nodes(&cluster, &all, &sets, &existing(&cluster, &[("lb1", &[]), ("lb2", &[])]));
    assert_eq!(on(&places, "lb1"), ["vm1", "vm2"]);
    assert_eq!(on(&places, "lb2"), ["vm3", "vm4"], "who is of no set is where the fewest are");
    assert_eq!(places.unknown().collect::<Vec<_>>(), ["vm5"]);
}

/// LB-248: the members of all pools, in a whole cluster: each node is on one load balancer, and a second plan is empty.
#[test]
fn lb_248_each_node_is_a_member_of_one_load_balancers_pools() {
    let cluster = plain(&["lb1", "lb2"]);
    let mut azure = Azure::of(cluster.clone());
    let all: Vec<Node> =
        vec![instance("set-lb1", 1), instance("set-lb2", 2), instance("any", 3), instance("any", 4)];
    let all = nodes(all);
    let on =
        |name: &str, target: &str| svc(name).tcp(80).annotate("azure-load-balancer-configurations", target);
    let [first, second] = [on("a", "lb1"), on("b", "lb2")];
    azure.converge(&[first.arc()], &all);
    let members = |azure: &Azure| -> BTreeMap<String, usize> {
        let count = |lb: &azure_types::LoadBalancer| {
            let pool =
                crate::resources::load_balancer::pool_in(lb, "lb1").unwrap().properties.clone().unwrap();
            (lb.name.clone().unwrap(), pool.load_balancer_backend_addresses.unwrap_or_default().len())
        };
        azure.observed.load_balancers.iter().map(|lb| count(lb)).collect()
    };
    assert_eq!(members(&azure), [("lb1".to_owned(), 4)].into());
    azure.converge(&[first.arc(), second.arc()], &all);
    assert_eq!(members(&azure), [("lb1".to_owned(), 3), ("lb2".to_owned(), 1)].into());
    azure.converge(&[first.deleting().arc(), second.arc()], &all);
    assert_eq!(members(&azure), [("lb2".to_owned(), 4)].into(), "LB-248");
}

/// LB-434: a load balancer may now have the nodes that belong to it and that no other of its flavor has. Nodes that it
/// already has are not removed for others.
#[test]
fn lb_434_a_node_is_free_when_no_other_load_balancer_of_the_kind_has_it() {
    let cluster = plain(&["lb1", "lb2"]);
    let [a, b, c] = [instance("set-lb1", 1), instance("set-lb2", 2), instance("set-lb2", 3)];
    let all = nodes([a.clone(), b.clone(), c.clone()]);
    let pools: Pools<'_> = &[("lb1", &[&b]), ("lb2", &[&a]), ("lb2-internal", &[&a])];
    let existing = existing(&cluster, pools);
    let places = place_nodes(&cluster, &all, &MachineSets::default(), &existing);
    let balancer = |name: &str, flavor| Balancer { name: name.to_owned(), flavor };
    let [one, two] = ["lb1", "lb2"].map(|name| balancer(name, Flavor::External));
    let inside = balancer("lb2-internal", Flavor::Internal);
    let has = |held: &Holdings, balancer: &Balancer| {
        let share = held.share(&places, balancer);
        [&a, &b, &c].map(|node| share.has(node.name()))
    };
    let mut held = Holdings::of(&cluster, &all, &existing);
    assert_eq!(has(&held, &one), [false; 3], "a is on lb2 yet");
    assert_eq!(has(&held, &two), [false, false, true], "b is still on lb1, and no load balancer has c");
    assert_eq!(has(&held, &inside), [false, true, true], "public load balancers are nothing to it");
    assert!(held.is_short(&places, &one) && held.is_short(&places, &two) && !held.is_short(&places, &inside));
    // The write is done.
    held.see(&cluster, &all, [(&two, &*self::existing(&cluster, &[("lb2", &[&c])])[0].1)]);
    assert_eq!(has(&held, &one), [true, false, false]);
    held.claim(&one, &held.share(&places, &one));
    assert_eq!(has(&held, &two), [false, false, true], "what lb1 is about to get, it has");
    held.retain(|balancer| *balancer != one);
    assert_eq!(has(&held, &two), [false, true, true]);
}

/// LB-434: two load balancers swap their machine sets, and no step of the plan makes a node a member of both. The plan
/// is done in four writes: two that remove and two that add.
#[test]
fn lb_434_load_balancers_swap_nodes_without_having_one_twice() {
    let cluster = plain(&["lb1", "lb2"]);
    let all: Vec<Node> =
        ["set-lb1", "set-lb2"].into_iter().flat_map(|set| (1..4).map(|n| instance(set, n))).collect();
    let all = nodes(all);
    let on =
        |name: &str, target: &str| svc(name).tcp(80).annotate("azure-load-balancer-configurations", target);
    let services = [on("a", "lb1").arc(), on("b", "lb2").arc()];
    let mut azure = Azure::of(cluster);
    azure.converge(&services, &all);
    azure.cluster =
        several(&[("lb1", json!({"primaryVMSet": "set-lb2"})), ("lb2", json!({"primaryVMSet": "set-lb1"}))]);
    let members = |azure: &Azure| -> Vec<Vec<String>> {
        let of = |lb: &azure_types::LoadBalancer| {
            let pool =
                crate::resources::load_balancer::pool_in(lb, "lb1").unwrap().properties.clone().unwrap();
            let entries = pool.load_balancer_backend_addresses.unwrap_or_default();
            entries.iter().map(|entry| entry.name.unwrap()).collect()
        };
        azure.observed.load_balancers.iter().map(|lb| of(lb)).collect()
    };
    let before = members(&azure);
    // A plan reports on nodes after it has planned a Service.
    let services = [services[0].clone(), on("b", "lb2").tcp(81).arc()];
    let planned = azure.plan(&services, &all).plan;
    let mut writes = 0;
    for step in &planned.steps {
        let mut step = step.clone();
        let current = azure.observed.load_balancers.iter().find(|lb| lb.id.as_ref() == Some(&step.target));
        if let Some(current) = current {
            step.if_match.clone_from(&current.etag);
            writes += 1;
        }
        azure.take(&step);
        let now = members(&azure);
        assert!(now[0].iter().all(|node| !now[1].contains(node)), "after {step:?}: {now:?}");
    }
    assert_eq!(writes, 5, "four for the nodes, one for the Service: {planned}");
    let mut after = members(&azure);
    after.reverse();
    after.iter_mut().for_each(|names| names.sort());
    let mut before = before;
    before.iter_mut().for_each(|names| names.sort());
    assert_eq!(after, before);
    assert!(azure.plan(&services, &all).plan.is_empty());
}
