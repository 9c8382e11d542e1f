//! Removes what Services of a batch had, and keeps what other Services share.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s::ObjectKey;

use super::edit::SecurityGroupEdit;
use super::entry::RuleEntry;
use super::rule::{self, family_of};
use super::usage::{ClusterUsage, Footprint};
use crate::model::Family;
use crate::service::WantedRule;

/// A Service and what it needs of the group.
type OtherService<'a> = (&'a ObjectKey, &'a Footprint);

/// How packets arrive at a node: family, protocol and port.
type NodeArrival = (Family, &'static str, i32);

/// The needs of the Services outside of the batch.
struct OtherServices<'a> {
    by_address: BTreeMap<String, Vec<OtherService<'a>>>,
    nodes: &'a BTreeSet<IpAddr>,
    /// The Services whose packets arrive at nodes, by the ports at which they do.
    at_nodes: BTreeMap<NodeArrival, Vec<OtherService<'a>>>,
}

/// What happens to a destination in a rule.
enum Verdict {
    Keep,
    /// It is removed, and these rules are added for others that depended on it.
    Take(Vec<WantedRule>),
}

impl<'a> OtherServices<'a> {
    fn new(usage: &'a ClusterUsage, batch: &BTreeSet<&ObjectKey>) -> Self {
        let mut others =
            Self { by_address: BTreeMap::new(), nodes: &usage.node_addresses, at_nodes: BTreeMap::new() };
        for (key, footprint) in usage.footprints.iter().filter(|(key, _)| !batch.contains(key)) {
            for address in &footprint.addresses {
                others.by_address.entry(address.to_string()).or_default().push((key, footprint));
            }
            for family in &footprint.needs.at_nodes {
                for (protocol, port) in footprint.needs.ports.of_family(*family) {
                    others.at_nodes.entry((*family, protocol, port)).or_default().push((key, footprint));
                }
            }
        }
        others
    }

    fn is_node(&self, destination: &str) -> bool {
        destination.parse().is_ok_and(|address| self.nodes.contains(&address))
    }

    /// Whether others need a destination in a rule, judged by their own demand: a rule of the batch must not allow
    /// traffic for them that they did not ask for.
    fn judge(&self, draft: &SecurityGroupEdit<'_>, entry: &RuleEntry, destination: &str) -> Verdict {
        let family = family_of(destination);
        let is_node = self.is_node(destination);
        let here = self.by_address.get(destination).map(Vec::as_slice).unwrap_or_default();
        let ports = entry.document.properties.as_ref().and_then(rule::destination_ports);
        // A Service's own address does not count as a node's: Azure may have assigned the address of a deleted machine
        // to a frontend before the node was deleted (LB-461).
        let mut concerned: BTreeMap<(&ObjectKey, bool), &Footprint> =
            here.iter().map(|(key, footprint)| ((*key, false), *footprint)).collect();
        let protocol = rule::known_protocol(entry.protocol());
        if let (Some(ports), Some(protocol), true) = (&ports, protocol, is_node) {
            let at_port = |port: &i32| self.at_nodes.get(&(family, protocol, *port)).into_iter().flatten();
            let of_nodes = ports.iter().flat_map(at_port);
            concerned.extend(of_nodes.map(|(key, footprint)| ((*key, true), *footprint)));
        }
        if concerned.values().any(|footprint| footprint.holds_on) {
            return Verdict::Keep;
        }
        if entry.is_deny() {
            let mut wanted = concerned
                .iter()
                .flat_map(|((_, at_node), footprint)| footprint.needs.demand.at(family, *at_node));
            let is_wanted = wanted.any(|rule| entry.is_named(&rule.name));
            return if is_wanted { Verdict::Keep } else { Verdict::Take(Vec::new()) };
        }
        let (Some(ports), Some(protocol)) = (ports, protocol) else { return Verdict::Keep };
        let mut served = BTreeSet::new();
        let mut missing = Vec::new();
        for ((_, at_node), footprint) in &concerned {
            let theirs = footprint.needs.ports.of(family, protocol);
            if theirs.is_disjoint(&ports) {
                continue;
            }
            let wanted = footprint.needs.demand.at(family, *at_node);
            let wanted: Vec<&WantedRule> =
                wanted.filter(|rule| !rule.is_deny() && rule.is_for(protocol)).collect();
            if wanted.iter().any(|rule| entry.is_named(&rule.name)) {
                return Verdict::Keep;
            }
            let has = |rule: &&WantedRule| {
                draft.find(&rule.name).is_some_and(|entry| entry.destinations.contains(destination))
            };
            if !wanted.iter().all(has) {
                served.extend(theirs.intersection(&ports).copied());
                let here = || BTreeSet::from([destination.to_owned()]);
                missing.extend(wanted.into_iter().map(|rule| rule.to(here())));
            }
        }
        if !missing.is_empty() && served == ports { Verdict::Keep } else { Verdict::Take(missing) }
    }
}

/// Removes the destinations of the batch (`owners` by address) from all managed rules, and node addresses that are no
/// longer needed. What others need at the same address stays.
///
/// An address that only others have is removed from rules that none of them needs: the address of a deleted node may
/// have been assigned to a frontend since.
pub(super) fn clean(
    draft: &mut SecurityGroupEdit<'_>,
    owners: &BTreeMap<String, ObjectKey>,
    batch: &BTreeSet<&ObjectKey>,
) {
    let usage = draft.usage;
    let others = OtherServices::new(usage, batch);
    let mut taken = Vec::new();
    let mut replacements = Vec::new();
    for (index, entry) in draft.entries.iter().enumerate().filter(|(_, entry)| entry.managed) {
        for destination in entry.destinations.iter().filter(|one| !usage.is_of_others(one)) {
            let is_judged = owners.contains_key(destination) || others.is_node(destination);
            // A tag alone may name a Service of another cluster with the same namespace and name.
            let is_theirs =
                || others.by_address.contains_key(destination) && usage.proven.contains_key(destination);
            if !is_judged && !is_theirs() {
                continue;
            }
            match others.judge(draft, entry, destination) {
                // The rules that take its place are written by the Services that own the address.
                Verdict::Take(instead) if is_judged || instead.is_empty() => {
                    taken.push((index, destination.clone()));
                    replacements.extend(instead);
                }
                Verdict::Take(_) | Verdict::Keep => {}
            }
        }
    }
    for (index, destination) in taken {
        if let Some(entry) = draft.entries.get_mut(index) {
            entry.take(&destination, owners.get(&destination));
        }
    }
    for replacement in &replacements {
        draft.add(replacement, None);
    }
}
