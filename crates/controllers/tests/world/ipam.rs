//! The node IPAM controller: pod ranges for nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use cloud::{Existence, LogicalTime, MaskSizes, NodeRanges};
use controllers::{Controllers, Options, RangeOptions};
use k8s::Node;
use kubernetes_simulator::Fault;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::world::{World, merge, seconds};

fn options(cluster: &[&str], masks: Option<(u8, u8)>) -> Options {
    let ranges = RangeOptions {
        cluster: cluster.iter().map(|range| range.parse().unwrap()).collect(),
        reserved: vec!["10.0.0.0/16".parse().unwrap(), "10.244.0.0/24".parse().unwrap()],
        masks: masks.map(|(v4, v6)| MaskSizes { v4, v6 }),
    };
    Options {
        controllers: Controllers { node_ipam: true, ..Controllers::NONE },
        ranges: Some(ranges),
        ..Options::default()
    }
}

fn with_ranges(ranges: &[&str]) -> Value {
    json!({"spec": {"podCIDR": ranges[0], "podCIDRs": ranges}})
}

impl World {
    fn ranges(&self, name: &str) -> Vec<String> {
        let spec = &self.get_node(name)["spec"];
        let all: Vec<String> = serde_json::from_value(spec["podCIDRs"].clone()).unwrap_or_default();
        assert_eq!(spec["podCIDR"].as_str(), all.first().map(String::as_str), "the first of them");
        all
    }
}

/// NODE-113: new nodes get ranges of both families that no other node has and that are not reserved.
#[tokio::test(start_paused = true)]
async fn node_113_nodes_get_ranges_that_nobody_has() {
    let mut world = World::new();
    world.node("old", with_ranges(&["10.244.1.0/24", "fd00:10:244::/64"]));
    world.start(options(&["10.244.0.0/16", "fd00:10:244::/56"], Some((24, 64)))).await;
    seconds(1).await;
    assert_eq!(world.ranges("n1"), ["10.244.2.0/24", "fd00:10:244:1::/64"]);
    world.node("n2", json!({}));
    seconds(1).await;
    assert_eq!(world.ranges("n2"), ["10.244.3.0/24", "fd00:10:244:2::/64"]);
    assert_eq!(world.ranges("old"), ["10.244.1.0/24", "fd00:10:244::/64"], "as they were");
    assert_eq!(world.get_node("n2")["status"]["conditions"].as_array().unwrap().len(), 1, "none is added");
    assert_eq!(world.events("n2").len(), 0);
    // A restarted controller knows the assigned ranges.
    world.restart(options(&["10.244.0.0/16", "fd00:10:244::/56"], Some((24, 64)))).await;
    world.node("n3", json!({}));
    seconds(1).await;
    assert_eq!(world.ranges("n3"), ["10.244.4.0/24", "fd00:10:244:3::/64"]);
    let patches = world.kubernetes.requests("patch", "nodes");
    seconds(600).await;
    assert_eq!(world.kubernetes.requests("patch", "nodes"), patches, "at rest nothing is written");
}

/// NODE-109, NODE-114: a full range is reported once, and assigned again when a node is deleted.
#[tokio::test(start_paused = true)]
async fn node_109_node_114_a_full_range_is_told_and_given_on() {
    let mut world = World::new();
    world.start(options(&["10.244.0.0/23", "fd00:10:244::/64"], Some((24, 64)))).await;
    seconds(1).await;
    assert_eq!(world.ranges("n1"), ["10.244.1.0/24", "fd00:10:244::/64"]);
    world.node("n2", json!({}));
    seconds(300).await;
    assert_eq!(world.ranges("n2"), [""; 0]);
    let events = world.events("n2");
    let told = "cidrAllocator Normal CIDRNotAvailable: Node n2 status is now: CIDRNotAvailable: CIDR allocation failed; ";
    assert!(events.len() == 1 && events[0].starts_with(told), "{events:?}");
    world.kubernetes.delete("Node", "", "n1").unwrap();
    seconds(1).await;
    assert_eq!(world.ranges("n2"), ["10.244.1.0/24", "fd00:10:244::/64"]);
}

/// NODE-257: a failed write is reported after three attempts, and loses no range.
#[tokio::test(start_paused = true)]
async fn node_257_ranges_that_cannot_be_written_are_not_lost() {
    let mut world = World::new();
    world.kubernetes.inject(Fault::status(403).verb("patch").resource("nodes").times(1));
    world.start(options(&["10.244.0.0/22"], Some((24, 64)))).await;
    seconds(5).await;
    assert_eq!(world.reasons("n1"), ["CIDRAssignmentFailed"]);
    assert_eq!(world.ranges("n1").len(), 1);
    world.kubernetes.inject(Fault::status(500).verb("patch").resource("nodes").times(4));
    world.node("n2", json!({}));
    seconds(10).await;
    world.node("n3", json!({}));
    seconds(10).await;
    let mut all: Vec<String> = ["n1", "n2", "n3"].iter().flat_map(|name| world.ranges(name)).collect();
    all.sort();
    assert_eq!(all, ["10.244.1.0/24", "10.244.2.0/24", "10.244.3.0/24"], "every one is given once");
}

/// NODE-255: two nodes have the same range: the younger gets an event, and the range is assigned to no third node.
#[tokio::test(start_paused = true)]
async fn node_255_a_range_that_two_nodes_have_is_told() {
    let mut world = World::new();
    world.start(options(&["10.244.0.0/16"], Some((24, 64)))).await;
    seconds(1).await;
    let taken = world.ranges("n1").remove(0);
    world.node("n2", with_ranges(&[&taken]));
    seconds(1).await;
    assert_eq!((world.reasons("n1"), world.reasons("n2")), (vec![], vec!["CIDRNotUnique".to_owned()]));
    let told = |node: &str| world.events(node).pop().unwrap_or_default();
    assert!(
        told("n2").contains(&format!("{taken} overlaps {taken} of n1: delete one of the two")),
        "{}",
        told("n2")
    );
    // The first node that is seen after a start need not be the older one.
    let mut world = World::new();
    for (name, range) in [("z-old", "10.244.9.0/24"), ("a-new", "10.244.9.0/25")] {
        world.node(name, with_ranges(&[range]));
        seconds(2).await;
    }
    world.start(options(&["10.244.0.0/16"], Some((24, 64)))).await;
    seconds(1).await;
    assert_eq!(world.reasons("z-old"), [""; 0]);
    let told = world.events("a-new").pop().unwrap_or_default();
    assert!(told.contains("10.244.9.0/25 overlaps 10.244.9.0/24 of z-old"), "{told}");
}

/// NODE-256: nodes that the label selector hides keep their ranges, too.
#[tokio::test(start_paused = true)]
async fn node_256_ranges_of_nodes_that_are_not_watched_are_theirs() {
    let mut world = World::new();
    world.node("hidden", with_ranges(&["10.244.1.0/24"]));
    let mut watched = json!({});
    merge(&mut watched, &json!({"metadata": {"labels": {"watched": "yes"}}}));
    let options =
        Options { node_selector: Some("watched=yes".into()), ..options(&["10.244.0.0/16"], Some((24, 64))) };
    world.start(options).await;
    world.node("seen", watched);
    seconds(1).await;
    assert_eq!(world.ranges("seen"), ["10.244.2.0/24"]);
    assert_eq!(world.ranges("n1"), [""; 0]);
}

/// Scale sets that define the sizes of ranges.
#[derive(Clone, Default)]
struct Sets(Arc<Mutex<BTreeMap<String, Existence<MaskSizes>>>>);

#[async_trait]
impl NodeRanges for Sets {
    async fn mask_sizes(&self, node: &Node, _newer_than: LogicalTime) -> Existence<MaskSizes> {
        let unknown = || Existence::Unknown("429 from Azure".to_owned());
        self.0.lock().get(node.name()).cloned().unwrap_or_else(unknown)
    }
}

/// NODE-112: sizes come from the scale sets, and no node gets a range before they are known.
#[tokio::test(start_paused = true)]
async fn node_112_sizes_come_from_the_sets_of_machines() {
    let mut world = World::new();
    let sets = Sets::default();
    let set =
        |name: &str, v4, v6| sets.0.lock().insert(name.into(), Existence::Present(MaskSizes { v4, v6 }));
    set("n1", 25, 65);
    set("large", 15, 64);
    set("late", 24, 64);
    world.node("large", json!({}));
    world.node("late", json!({"spec": {"providerID": ""}}));
    world.node("unknown", json!({}));
    let cloud = world.cloud.ports().with_node_ranges(sets.clone());
    world.start_in(cloud, options(&["10.244.0.0/16", "fd00:10:244::/56"], None)).await;
    seconds(60).await;
    assert_eq!(world.ranges("n1"), ["10.244.1.0/25", "fd00:10:244::/65"]);
    assert!(
        world.events("large")[0].contains("invalid ipv4 mask size 15 of node large"),
        "{:?}",
        world.events("large")
    );
    for name in ["large", "late", "unknown"] {
        assert_eq!(world.ranges(name), [""; 0], "{name}");
    }
    set("unknown", 24, 64);
    set("large", 26, 64);
    world.kubernetes.merge("Node", "", "late", &json!({"spec": {"providerID": "azure:///late"}})).unwrap();
    seconds(61).await;
    assert_eq!(world.ranges("unknown").len(), 2);
    assert_eq!(world.ranges("late").len(), 2);
    assert_eq!(world.ranges("large").len(), 2, "its tag was corrected");
}
