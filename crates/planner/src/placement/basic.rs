//! Load balancers of SKU Basic: each serves one set of machines, an availability set or a scale set, and is named after
//! it. The one of the primary set is named after the cluster (3.1, 3.5).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s::Node;

use super::candidates::{check_move, document_of, rules_in};
use super::observed::Seen;
use crate::machines::backend_pool;
use crate::machines::machine_set::{MachineSet, MachineSets};
use crate::machines::node_places::NodePlaces;
use crate::model::{Balancer, Cluster, Flavor};
use crate::outcome::{Refusal, Stop, Wait};
use crate::resources::load_balancer::frontend::frontends_of;
use crate::resources::public_ip;
use crate::service::{Mode, ServiceIntent};

impl Cluster {
    /// The load balancer of a set of machines (LB-011). Azure spells names of sets in more than one way; a new load
    /// balancer gets the set's name in lower case.
    pub fn balancer_of_set(&self, set: &str, flavor: Flavor) -> Balancer {
        if set.eq_ignore_ascii_case(self.config.primary_machine_set()) {
            self.placement(flavor)
        } else {
            self.balancer(&set.to_ascii_lowercase(), flavor)
        }
    }
}

/// The sets of the nodes that may be backends.
struct Sets<'a> {
    /// Sorted by name.
    names: Vec<String>,
    /// A node whose set is not known yet.
    unknown: Option<&'a str>,
}

impl<'a> Sets<'a> {
    fn of(cluster: &Cluster, seen: &Seen<'a>) -> Self {
        let none = MachineSets::default();
        let machines = seen.machine_sets.unwrap_or(&none);
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        let mut unknown = None;
        for node in seen.nodes.iter().filter(|node| is_backend(cluster, node)) {
            match machines.of(node) {
                MachineSet::Named(set) => drop(names.entry(set.to_ascii_lowercase()).or_insert(set)),
                // A node that is not initialised may be of any set.
                MachineSet::Alone if !node.spec.provider_id.is_empty() => {}
                MachineSet::Alone | MachineSet::Unknown => unknown = Some(node.name()),
            }
        }
        Self { names: names.into_values().collect(), unknown }
    }

    /// The set of this name, in any case.
    ///
    /// # Errors
    ///
    /// If no node belongs to it, or if that is not known yet.
    fn named(&self, name: &str, intent: &ServiceIntent) -> Result<String, Stop> {
        match (self.names.iter().find(|set| set.eq_ignore_ascii_case(name)), self.unknown) {
            (Some(set), _) => Ok(set.clone()),
            (None, Some(node)) => Err(unknown(node, intent)),
            (None, None) => {
                Err(Refusal::MachineSetNotFound { named: name.to_owned(), sets: self.names.clone() }.into())
            }
        }
    }

    /// All sets.
    fn any(self, intent: &ServiceIntent) -> Result<Vec<String>, Stop> {
        match self.unknown {
            Some(node) if self.names.is_empty() => Err(unknown(node, intent)),
            _ => Ok(self.names),
        }
    }
}

fn unknown(node: &str, intent: &ServiceIntent) -> Stop {
    Stop::NotYet(Wait::MachineSetUnknown { node: node.to_owned(), service: intent.key.clone() })
}

/// Whether a node may be a backend of a load balancer of SKU Basic: control-plane nodes have no load balancer of their
/// own.
fn is_backend(cluster: &Cluster, node: &Node) -> bool {
    backend_pool::is_eligible(cluster, node) && !node.is_control_plane()
}

/// The load balancer that a Service is placed on.
///
/// # Errors
///
/// If the Service names a set that no node belongs to, or if the load balancer has no room for more rules.
pub(super) fn place(cluster: &Cluster, intent: &ServiceIntent, seen: &Seen<'_>) -> Result<Balancer, Stop> {
    let owner = intent.removal();
    let claimed = public_ip::claimed(cluster, owner, seen.public_ips);
    let of_kind = seen.load_balancers.iter().filter(|(balancer, _)| balancer.flavor == intent.flavor);
    // A Service that shares another's frontend is there, too.
    let mut here = of_kind
        .filter(|(one, document)| !frontends_of(cluster, one, document, owner, &claimed).is_empty())
        .map(|(balancer, _)| balancer);
    let (current, candidates) = match &intent.placement.mode {
        Mode::Primary => (here.next(), vec![cluster.config.primary_machine_set().to_owned()]),
        Mode::Any => match here.next() {
            Some(current) => (Some(current), Vec::new()),
            None => (None, Sets::of(cluster, seen).any(intent)?),
        },
        // A Service that is on its desired load balancer stays, although the set may be without nodes for a while.
        Mode::Set(named) => {
            let wanted = existing(seen, cluster.balancer_of_set(named, intent.flavor));
            match here.find(|balancer| **balancer == wanted) {
                Some(current) => (Some(current), Vec::new()),
                None => (None, vec![Sets::of(cluster, seen).named(named, intent)?]),
            }
        }
    };
    if let Some(current) = current {
        return Ok(current.clone());
    }
    let balancer = choose(cluster, intent, seen, &candidates)?;
    check_move(cluster, intent, seen, &balancer)?;
    Ok(balancer)
}

/// The load balancer in the spelling of the existing one: Azure spells names of sets in more than one way.
fn existing(seen: &Seen<'_>, balancer: Balancer) -> Balancer {
    let is_it =
        |one: &&Balancer| one.flavor == balancer.flavor && one.name.eq_ignore_ascii_case(&balancer.name);
    let found = seen.load_balancers.iter().map(|(one, _)| one).find(is_it);
    found.cloned().unwrap_or(balancer)
}

/// The load balancer of the first set without one, and otherwise the one with the fewest rules (3.5).
fn choose(
    cluster: &Cluster,
    intent: &ServiceIntent,
    seen: &Seen<'_>,
    sets: &[String],
) -> Result<Balancer, Stop> {
    let all = sets.iter().map(|set| {
        let balancer = existing(seen, cluster.balancer_of_set(set, intent.flavor));
        let document = document_of(seen, &balancer).map(|document| &**document);
        (document.is_some(), rules_in(document), balancer)
    });
    // On a tie the first counts.
    let best = all.min_by_key(|(exists, rules, _)| (*exists, *rules));
    let Some((_, rules, balancer)) = best else { return Ok(cluster.placement(intent.flavor)) };
    let limit = cluster.config.maximum_load_balancer_rule_count;
    if rules >= limit {
        return Err(Refusal::RuleLimitReached { sets: sets.to_vec(), rules, limit }.into());
    }
    Ok(balancer)
}

/// The nodes of each load balancer: the ones of its set. The primary load balancer has all nodes if no primary set is
/// configured. Nodes that may be backends and whose sets Azure does not report yet are [unknown](NodePlaces::unknown).
pub fn nodes_of_sets(cluster: &Cluster, nodes: &[Arc<Node>], machines: &MachineSets) -> NodePlaces {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut unknown = BTreeSet::new();
    let primary = cluster.config.primary_machine_set();
    for node in nodes {
        let set = match machines.of(node) {
            MachineSet::Named(set) => set,
            MachineSet::Alone => String::new(),
            MachineSet::Unknown => {
                if is_backend(cluster, node) {
                    unknown.insert(node.name().to_owned());
                }
                String::new()
            }
        };
        let own = cluster.balancer_of_set(&set, Flavor::External).name.to_ascii_lowercase();
        let of_all =
            primary.is_empty().then(|| cluster.placement(Flavor::External).name.to_ascii_lowercase());
        for place in BTreeSet::from_iter(of_all.into_iter().chain((!set.is_empty()).then_some(own))) {
            places.entry(place).or_default().insert(node.name().to_owned());
        }
    }
    NodePlaces { by_entry: places, nowhere: BTreeSet::new(), unknown }
}
