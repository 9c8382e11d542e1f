//! Which of several load balancers have to be written so that each gets the nodes that belong to it (LB-434 to LB-438).
//!
//! ```text
//!  divide ──▶ start_writes ──▶ claim ──▶ (the write) ──▶ finish_write | fail_write
//!    ▲         each that is     the nodes that it may                    │
//!    └──────── due, once        have, assumed to be there ◀──────────────┘
//! ```
//!
//! Load balancers are written in parallel. A node leaves one of them before another may claim it, so it takes several
//! rounds until all have their nodes; a load balancer that cannot be written keeps its nodes, and delays only those
//! that wait for them. The caller writes and keeps the time; what is decided here depends on nothing else.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use azure_types::LoadBalancer;
use k8s::Node;

use super::{NodesInPools, place_nodes};
use crate::machines::machine_set::MachineSets;
use crate::machines::node_places::{NodePlaces, NodeShare};
use crate::model::{Balancer, Cluster};
use crate::resources::load_balancer::{self, ClusterFacts, ListedLoadBalancer};

/// What a division of the nodes depends on.
#[derive(Debug, Clone)]
pub struct SharingInputs<'a> {
    /// The version of `nodes`: equal for equal nodes.
    pub version: u64,
    /// All nodes.
    pub nodes: &'a [Arc<Node>],
    /// The sets of their machines.
    pub sets: MachineSets,
    /// The existing load balancers.
    pub load_balancers: &'a [(Balancer, ListedLoadBalancer)],
}

/// Divides the nodes among several load balancers, one write after the other.
#[derive(Debug, Clone, Default)]
pub struct NodeSharing {
    places: Option<Arc<NodePlaces>>,
    holdings: NodesInPools,
    division: Option<Division>,
    /// Fingerprint of the desired members of each load balancer that is being written.
    in_flight: BTreeMap<Balancer, u64>,
    /// Fingerprint of the members that the latest write of a load balancer was planned with. Nodes may come and go
    /// during a write.
    claimed: BTreeMap<Balancer, u64>,
    /// Fingerprint of the desired members of each load balancer whose latest write failed.
    failed: BTreeMap<Balancer, u64>,
    /// Desired members that a write has found to be reached.
    reached: BTreeMap<Balancer, DesiredMembers>,
}

/// A division, and what it was made of.
#[derive(Debug, Clone)]
struct Division {
    version: u64,
    sets: MachineSets,
    /// The load balancers with their versions.
    load_balancers: Vec<(Balancer, Option<String>)>,
    in_flight: Vec<Balancer>,
    /// The load balancers whose pools differ from their desired members.
    due: BTreeMap<Balancer, u64>,
    /// Whether a load balancer waits for nodes that another one has.
    is_short: bool,
}

/// The desired members of a version of a load balancer.
#[derive(Debug, Clone, PartialEq)]
struct DesiredMembers {
    fingerprint: u64,
    version: Option<String>,
}

/// Fingerprint of the desired pools of a load balancer: equal if the same would be written.
fn fingerprint(nodes: &[Arc<Node>], share: &NodeShare) -> u64 {
    let mut hasher = DefaultHasher::new();
    for node in nodes.iter().filter(|node| share.has(node.name())) {
        (node.name(), node.is_draining()).hash(&mut hasher);
        node.internal_addresses().for_each(|address| address.hash(&mut hasher));
    }
    hasher.finish()
}

impl NodeSharing {
    /// Divides the nodes. Costs little if nothing changed since the last division.
    pub fn divide(&mut self, cluster: &Cluster, inputs: SharingInputs<'_>) -> Arc<NodePlaces> {
        let SharingInputs { version, nodes, sets, load_balancers } = inputs;
        let versions = load_balancers.iter().map(|(one, document)| (one.clone(), document.etag.clone()));
        let mut division = Division {
            version,
            sets,
            load_balancers: versions.collect(),
            in_flight: self.in_flight.keys().cloned().collect(),
            due: BTreeMap::new(),
            is_short: false,
        };
        if let (Some(last), Some(places)) = (&self.division, &self.places)
            && last.is_of_same(&division)
        {
            return Arc::clone(places);
        }
        let places = Arc::new(place_nodes(cluster, nodes, &division.sets, load_balancers));
        self.places = Some(Arc::clone(&places));
        let in_flight = &self.in_flight;
        self.holdings.retain(|one| {
            in_flight.contains_key(one) || load_balancers.iter().any(|(there, _)| there == one)
        });
        // The result of a write in flight may be visible already, and may not be complete.
        let settled = load_balancers.iter().filter(|(balancer, _)| !in_flight.contains_key(balancer));
        self.holdings.see(cluster, nodes, settled.map(|(balancer, document)| (balancer, &**document)));
        let configured = cluster.balancers();
        for (balancer, document) in load_balancers.iter().filter(|(one, _)| configured.contains(one)) {
            division.is_short |= self.holdings.is_short(&places, balancer);
            let share = self.holdings.share(&places, balancer);
            let desired =
                DesiredMembers { fingerprint: fingerprint(nodes, &share), version: document.etag.clone() };
            let is_reached = desired.version.is_some() && self.reached.get(balancer) == Some(&desired);
            let known = ClusterFacts { nodes: Some(nodes), share: Some(&share), ..ClusterFacts::default() };
            if !is_reached
                && load_balancer::plan(cluster, balancer, Some(document), &[], known).step.is_some()
            {
                division.due.insert(balancer.clone(), desired.fingerprint);
            }
        }
        self.failed.retain(|balancer, _| division.due.contains_key(balancer));
        self.division = Some(division);
        places
    }

    /// The load balancers whose writes have to start now; from now on they are in flight. What failed is only repeated
    /// if its desired members differ, or if it `may_be_retried`.
    pub fn start_writes(&mut self, may_be_retried: impl Fn(&Balancer) -> bool) -> Vec<Balancer> {
        let due = self.division.iter().flat_map(|division| &division.due);
        let may_start = |balancer: &Balancer, desired: &u64| {
            !self.in_flight.contains_key(balancer)
                && (self.failed.get(balancer) != Some(desired) || may_be_retried(balancer))
        };
        let due = due.filter(|(balancer, desired)| may_start(balancer, desired));
        let due: BTreeMap<Balancer, u64> =
            due.map(|(balancer, desired)| (balancer.clone(), *desired)).collect();
        let starting = due.keys().cloned().collect();
        for (balancer, desired) in due {
            // Earlier writes say nothing about the members that this write is planned with.
            self.claimed.remove(&balancer);
            self.in_flight.insert(balancer, desired);
        }
        starting
    }

    /// The nodes that a load balancer may have in its pools now, for a write that is about to be made; `None` before
    /// the first division. Until the load balancer is read again, these nodes are assumed to be there.
    pub fn claim(
        &mut self,
        cluster: &Cluster,
        nodes: &[Arc<Node>],
        balancer: &Balancer,
        document: Option<&LoadBalancer>,
    ) -> Option<NodeShare> {
        let places = self.places.clone()?;
        self.holdings.retain(|one| one != balancer);
        self.holdings.see(cluster, nodes, document.map(|document| (balancer, document)));
        let share = self.holdings.share(&places, balancer);
        self.holdings.claim(balancer, &share);
        self.claimed.insert(balancer.clone(), fingerprint(nodes, &share));
        Some(share)
    }

    /// Records that a write has ended well, with the version of the load balancer since then.
    pub fn finish_write(&mut self, balancer: &Balancer, version: Option<String>) {
        self.end_write(balancer);
        self.failed.remove(balancer);
        match self.claimed.remove(balancer) {
            Some(fingerprint) => {
                self.reached.insert(balancer.clone(), DesiredMembers { fingerprint, version });
            }
            None => drop(self.reached.remove(balancer)),
        }
    }

    /// Records that a write has failed.
    pub fn fail_write(&mut self, balancer: &Balancer) {
        if let Some(desired) = self.end_write(balancer) {
            self.failed.insert(balancer.clone(), desired);
        }
        self.claimed.remove(balancer);
    }

    /// The next division compares the load balancer once more.
    fn end_write(&mut self, balancer: &Balancer) -> Option<u64> {
        self.division = None;
        self.in_flight.remove(balancer)
    }

    /// Whether a load balancer is being written.
    pub fn is_in_flight(&self, balancer: &Balancer) -> bool {
        self.in_flight.contains_key(balancer)
    }

    /// The load balancers that are being written.
    pub fn in_flight(&self) -> impl Iterator<Item = &Balancer> {
        self.in_flight.keys()
    }

    /// Whether the latest write of a load balancer failed, and is still due.
    pub fn has_failed(&self, balancer: &Balancer) -> bool {
        self.failed.contains_key(balancer)
    }

    /// Whether all nodes are where they belong, as far as known.
    pub fn is_settled(&self) -> bool {
        let has_unknown = self.places.as_ref().is_some_and(|places| places.unknown().next().is_some());
        let is_open = match &self.division {
            Some(division) => division.is_short || !division.due.is_empty(),
            // The end of a write is yet to be compared.
            None => self.places.is_some(),
        };
        !has_unknown && !is_open && self.in_flight.is_empty()
    }

    /// The load balancers that hold the nodes of one that has none at all, each with the number of nodes.
    pub fn holders_of_all(&self, balancer: &Balancer) -> Vec<(Balancer, usize)> {
        match &self.places {
            Some(places) if self.holdings.share(places, balancer).is_empty() => {
                self.holdings.holders(places, balancer)
            }
            _ => Vec::new(),
        }
    }
}

impl Division {
    /// Whether two divisions have the same inputs, and so the same result.
    fn is_of_same(&self, other: &Self) -> bool {
        (self.version, &self.sets, &self.load_balancers, &self.in_flight)
            == (other.version, &other.sets, &other.load_balancers, &other.in_flight)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::model::Flavor;
    use crate::order::tests::properties::cases;
    use crate::order::tests::{cluster_with, node, nodes};
    use crate::outcome::Document;

    const SETS: [&str; 4] = ["set-a", "set-b", "set-c", "any"];

    /// A cluster of three entries, each with a primary set.
    fn cluster() -> Cluster {
        let entries =
            ["a", "b", "c"].map(|name| json!({"name": name, "primaryVMSet": format!("set-{name}")}));
        let cluster = cluster_with(json!({
            "loadBalancerBackendPoolConfigurationType": "nodeIP",
            "multipleStandardLoadBalancerConfigurations": entries,
        }));
        Cluster { name: "a".to_owned(), ..cluster }
    }

    /// The nodes in each load balancer's pool, and the versions of the documents.
    #[derive(Debug, Clone)]
    struct World {
        cluster: Cluster,
        nodes: Vec<Arc<Node>>,
        version: u64,
        load_balancers: BTreeMap<Balancer, (u64, Arc<LoadBalancer>)>,
        sharing: NodeSharing,
    }

    impl World {
        /// Load balancers of both flavors with these nodes in their pools: for each node its set, and the entry that has
        /// it, if any.
        fn new(places: &[(usize, Option<usize>)]) -> Self {
            let cluster = cluster();
            let all = nodes(places.iter().zip(1..).map(|((set, _), number)| node(SETS[*set], number)));
            let names: BTreeSet<&str> = all.iter().map(|node| node.name()).collect();
            assert_eq!(names.len(), all.len());
            let mut load_balancers = BTreeMap::new();
            for (at, balancer) in cluster.balancers().into_iter().enumerate() {
                let entries: Vec<_> = (all.iter().zip(places))
                    .filter(|(_, (_, entry))| *entry == Some(at % 3))
                    .map(|(node, _)| {
                        let address = node.internal_addresses().next().unwrap();
                        json!({"name": node.name(), "properties": {"ipAddress": address}})
                    })
                    .collect();
                let document = json!({
                    "id": cluster.load_balancer_id(&balancer), "name": balancer.name, "etag": "0",
                    "properties": {
                        "frontendIPConfigurations": [{"name": "theirs", "properties": {}}],
                        "backendAddressPools": [
                            {"name": cluster.name, "properties": {"loadBalancerBackendAddresses": entries}},
                        ],
                    },
                });
                load_balancers.insert(balancer, (0, Arc::new(serde_json::from_value(document).unwrap())));
            }
            Self { cluster, nodes: all, version: 0, load_balancers, sharing: NodeSharing::default() }
        }

        fn documents(&self) -> Vec<(Balancer, ListedLoadBalancer)> {
            let all = self.load_balancers.iter();
            all.map(|(balancer, (_, document))| (balancer.clone(), Arc::clone(document).into())).collect()
        }

        fn divide(&mut self) -> Arc<NodePlaces> {
            let load_balancers = self.documents();
            let inputs = SharingInputs {
                version: self.version,
                nodes: &self.nodes,
                sets: MachineSets::default(),
                load_balancers: &load_balancers,
            };
            self.sharing.divide(&self.cluster, inputs)
        }

        fn start(&mut self) -> Vec<Balancer> {
            self.divide();
            self.sharing.start_writes(|_| false)
        }

        fn claim(&mut self, balancer: &Balancer) -> NodeShare {
            let document = Arc::clone(&self.load_balancers[balancer].1);
            self.sharing.claim(&self.cluster, &self.nodes, balancer, Some(&document)).unwrap()
        }

        /// Makes the planned write of what was claimed.
        fn write(&mut self, balancer: &Balancer, share: &NodeShare) {
            let (version, document) = self.load_balancers.get_mut(balancer).unwrap();
            let known =
                ClusterFacts { nodes: Some(&self.nodes), share: Some(share), ..ClusterFacts::default() };
            let plan = load_balancer::plan(&self.cluster, balancer, Some(document), &[], known);
            if let Some(Document::LoadBalancer(written)) = plan.step.and_then(|step| step.document) {
                *version += 1;
                *document = Arc::new(LoadBalancer { etag: Some(version.to_string()), ..*written });
            }
            let etag = document.etag.clone();
            self.sharing.finish_write(balancer, etag);
        }

        /// The nodes of each load balancer, by its document.
        fn held(&self) -> BTreeMap<Balancer, BTreeSet<String>> {
            let documents = self.documents();
            let all = NodesInPools::of(&self.cluster, &self.nodes, &documents);
            let on = |(balancer, _): &(Balancer, ListedLoadBalancer)| {
                let held = self.nodes.iter().filter(|node| all.has(balancer, node.name()));
                (balancer.clone(), held.map(|node| node.name().to_owned()).collect())
            };
            documents.iter().map(on).collect()
        }

        fn assert_no_node_is_on_two(&self) {
            let held = self.held();
            for (one, mine) in &held {
                for (_, theirs) in
                    held.iter().filter(|(other, _)| *other != one && other.flavor == one.flavor)
                {
                    assert!(mine.is_disjoint(theirs), "{held:?}");
                }
            }
        }

        /// Writes until nothing is due, in the order that `pick` chooses.
        fn settle(&mut self, mut pick: impl FnMut(usize) -> usize) {
            let mut open: Vec<(Balancer, Option<NodeShare>)> = Vec::new();
            for _ in 0..200 {
                open.extend(self.start().into_iter().map(|balancer| (balancer, None)));
                if open.is_empty() {
                    return;
                }
                let at = pick(open.len()) % open.len();
                match open.swap_remove(at) {
                    (balancer, None) => {
                        let share = self.claim(&balancer);
                        open.push((balancer, Some(share)));
                    }
                    (balancer, Some(share)) => self.write(&balancer, &share),
                }
                self.assert_no_node_is_on_two();
            }
            panic!("it never settles: {self:?}");
        }
    }

    #[test]
    fn a_load_balancer_without_nodes_names_the_holders_of_its_own() {
        let mut world = World::new(&[(0, Some(1)), (0, Some(1)), (1, Some(1)), (2, None)]);
        // The external load balancer that has the nodes: they are divided over both flavors in turn.
        let on = |name: &str| Balancer { name: name.to_owned(), flavor: Flavor::External };
        assert_eq!(world.sharing.holders_of_all(&on("a")), Vec::new(), "nothing is divided yet");
        world.divide();
        assert!(!world.sharing.is_settled(), "writes are due");
        let started = world.start();
        for (name, expected) in [("a", vec![(on("c"), 2)]), ("b", vec![(on("c"), 1)]), ("c", Vec::new())] {
            assert_eq!(world.sharing.holders_of_all(&on(name)), expected, "{name}");
        }
        assert!(!started.is_empty());
        assert_eq!(world.sharing.in_flight().collect::<BTreeSet<_>>(), started.iter().collect());
    }

    fn places() -> impl Strategy<Value = Vec<(usize, Option<usize>)>> {
        prop::collection::vec((0..SETS.len(), prop::option::of(0..3_usize)), 1..10)
    }

    proptest! {
        #![proptest_config(cases(64))]

        /// LB-434: from any division, in any order of writes, each load balancer gets its nodes, no node is ever on two
        /// of a flavor, and after that nothing is written.
        #[test]
        fn all_nodes_get_where_they_belong(places in places(), picks in prop::collection::vec(0..6_usize, 1..40)) {
            let mut world = World::new(&places);
            let mut picks = picks.into_iter().cycle();
            world.settle(|_| picks.next().unwrap_or_default());
            prop_assert!(world.sharing.is_settled());
            let wanted = world.divide();
            for (balancer, held) in world.held() {
                prop_assert_eq!(held, wanted.names_on(&balancer), "{}", balancer);
            }
            prop_assert_eq!(world.start(), Vec::new());
        }

        /// A division that is repeated changes nothing, and no write starts twice.
        #[test]
        fn a_repeated_division_starts_nothing(places in places()) {
            let mut world = World::new(&places);
            let first = world.divide();
            let started = world.sharing.start_writes(|_| false);
            prop_assert_eq!(world.divide(), first);
            prop_assert_eq!(world.sharing.start_writes(|_| true), Vec::new());
            prop_assert!(started.iter().all(|balancer| world.sharing.is_in_flight(balancer)));
        }

        /// The order of nodes and of load balancers does not matter.
        #[test]
        fn the_order_of_inputs_does_not_matter(places in places()) {
            let mut world = World::new(&places);
            let mut turned = world.clone();
            turned.nodes.reverse();
            let mut load_balancers = turned.documents();
            load_balancers.reverse();
            let inputs = SharingInputs {
                version: 0, nodes: &turned.nodes, sets: MachineSets::default(), load_balancers: &load_balancers,
            };
            let divided = turned.sharing.divide(&turned.cluster, inputs);
            prop_assert_eq!(divided, world.divide());
            prop_assert_eq!(turned.sharing.start_writes(|_| false), world.sharing.start_writes(|_| false));
        }

        /// A claimed node stays claimed while its load balancer is written, whatever the documents show meanwhile.
        #[test]
        fn a_claimed_node_is_claimed_by_no_other(places in places(), gone in 0..10_usize) {
            let mut world = World::new(&places);
            let started = world.start();
            let mut claims: Vec<(Balancer, NodeShare)> = Vec::new();
            for (number, balancer) in started.into_iter().enumerate() {
                if number == 1 && gone < world.nodes.len() {
                    world.nodes.remove(gone);
                    world.version += 1;
                    world.divide();
                }
                let share = world.claim(&balancer);
                let same = claims.iter().filter(|(other, _)| other.flavor == balancer.flavor);
                for (other, claimed) in same {
                    let twice = world.nodes.iter().find(|node| share.has(node.name()) && claimed.has(node.name()));
                    prop_assert!(twice.is_none(), "{balancer} and {other}: {:?}", twice.map(|node| node.name()));
                }
                claims.push((balancer, share));
            }
        }

        /// LB-436: a write that failed is not repeated for the same members until it may be, and at once for others.
        #[test]
        fn a_failed_write_waits_or_differs(places in places()) {
            let mut world = World::new(&places);
            for balancer in world.start() {
                world.claim(&balancer);
                world.sharing.fail_write(&balancer);
                prop_assert!(!world.sharing.is_settled());
                let before = world.clone();
                prop_assert!(!world.start().contains(&balancer));
                world = before;
                world.divide();
                prop_assert!(world.sharing.has_failed(&balancer));
                prop_assert!(world.sharing.start_writes(|one| *one == balancer).contains(&balancer));
                world.sharing.fail_write(&balancer);
                // One of its nodes drains: its desired members differ.
                let share = world.claim(&balancer);
                if let Some(at) = world.nodes.iter().position(|node| share.has(node.name())) {
                    let mut changed = Node::clone(&world.nodes[at]);
                    changed.status.addresses[0].address = "10.0.9.9".to_owned();
                    world.nodes[at] = Arc::new(changed);
                    world.version += 1;
                    prop_assert!(world.start().contains(&balancer));
                    break;
                }
            }
        }
    }
}
