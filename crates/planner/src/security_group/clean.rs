//! Taking back what Services of a batch had, without taking it from those who share it (8.4 step 3).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use k8s::{Node, ObjectKey, Service};

use super::draft::{Draft, Entry};
use super::may_deny_all;
use super::rule::{self, Allow, WantedRule, family_of};
use crate::access::Access;
use crate::cluster::{Cluster, Family, Flavor};
use crate::intent::ServiceRemoval;

/// Ports by the protocol's name in security rules.
pub(super) type Ports = BTreeMap<&'static str, BTreeSet<i32>>;

/// What one Service needs of the security group, as far as its object tells without validation.
#[derive(Debug, Clone)]
struct Footprint {
    /// The ports at which packets of each family arrive.
    ports: BTreeMap<Family, Ports>,
    /// The families whose packets arrive at nodes' own addresses.
    at_nodes: BTreeSet<Family>,
    access: Access,
    flavor: Flavor,
    /// The addresses at which packets arrive, but not those of nodes.
    addresses: BTreeSet<IpAddr>,
}

impl Footprint {
    /// The allow rules that the Service wants of one family and protocol, at one destination.
    fn wanted(&self, family: Family, protocol: &str, destination: &str) -> Vec<WantedRule> {
        let Some(ports) = self.ports.get(&family).and_then(|ports| ports.get(protocol)) else {
            return Vec::new();
        };
        let sources =
            if self.access.disabled { Vec::new() } else { self.access.sources(self.flavor, family) };
        let rule = |sources: Vec<String>| {
            let sources = sources.into_iter().collect();
            let allow = Allow { protocol: protocol.to_owned(), family, sources, ports: ports.clone() };
            WantedRule::allow(allow, BTreeSet::from([destination.to_owned()]))
        };
        sources.into_iter().map(rule).collect()
    }
}

/// What all Services and Nodes of the cluster need of the security group.
#[derive(Debug, Clone, Default)]
pub struct Everybody {
    /// Whether all Services and Nodes have been listed. While they have not, nothing is taken away:
    /// it might belong to somebody who is not known yet.
    pub known: bool,
    /// The addresses of all Services.
    pub service_addresses: BTreeSet<IpAddr>,
    /// The internal addresses of all nodes that Azure manages.
    pub node_addresses: BTreeSet<IpAddr>,
    footprints: BTreeMap<ObjectKey, Footprint>,
}

impl Everybody {
    /// Sums up all Services and Nodes. `recently_programmed` are addresses that Services were given and
    /// that their status may not show yet.
    pub fn new(
        cluster: &Cluster,
        services: &[Arc<Service>],
        nodes: &[Arc<Node>],
        recently_programmed: &[(ObjectKey, IpAddr)],
        known: bool,
    ) -> Self {
        let mut everybody = Self { known, ..Self::default() };
        for service in services {
            let owner = ServiceRemoval::of(cluster, service);
            let mut addresses: BTreeSet<IpAddr> = owner.published_addresses.iter().copied().collect();
            let recent = recently_programmed.iter().filter(|(key, _)| *key == owner.key);
            addresses.extend(recent.map(|(_, address)| *address));
            addresses.extend(&owner.additional_addresses);
            everybody.service_addresses.extend(&addresses);
            // Who is on the way out needs no rule any more: none is made again for it.
            if !service.is_to_be_served() {
                continue;
            }
            let mut ports: BTreeMap<Family, Ports> = BTreeMap::new();
            for port in &service.spec.ports {
                let protocol = match port.protocol.as_str() {
                    "" | "TCP" => "Tcp",
                    "UDP" => "Udp",
                    _ => "*",
                };
                for family in Family::BOTH {
                    let number = owner.arrival(family).port(port.port, port.node_port);
                    ports.entry(family).or_default().entry(protocol).or_default().insert(number);
                }
            }
            let at_nodes =
                owner.families.iter().copied().filter(|family| !owner.arrival(*family).is_floating());
            let at_nodes = at_nodes.collect();
            let (access, flavor) = (Access::read(service), owner.flavor);
            let additional = owner.additional_addresses.iter().copied();
            addresses.retain(|address| owner.arrival(Family::of(*address)).is_floating());
            addresses.extend(additional);
            let footprint = Footprint { ports, at_nodes, access, flavor, addresses };
            everybody.footprints.insert(owner.key, footprint);
        }
        for (_, address) in recently_programmed {
            everybody.service_addresses.insert(*address);
        }
        for node in nodes.iter().filter(|node| node.is_managed()) {
            let internal = node.status.addresses.iter().filter(|address| address.kind == "InternalIP");
            everybody.node_addresses.extend(internal.filter_map(|a| a.address.parse::<IpAddr>().ok()));
        }
        everybody
    }
}

/// A Service and what it needs of the group.
type Tenant<'a> = (&'a ObjectKey, &'a Footprint);

/// Where packets arrive at a node: family, protocol and port.
type NodeArrival = (Family, &'static str, i32);

/// What those who are not in the batch need.
struct Others<'a> {
    by_address: BTreeMap<String, Vec<Tenant<'a>>>,
    nodes: BTreeSet<String>,
    /// Those whose packets arrive at nodes, by the ports at which they do.
    at_nodes: BTreeMap<NodeArrival, Vec<Tenant<'a>>>,
    /// The families for which one of those denies all else.
    denied_at_nodes: BTreeSet<Family>,
}

/// What becomes of a destination in a rule.
enum Verdict {
    Keep,
    /// It goes, and these rules take its place for others who lived on it.
    Take(Vec<WantedRule>),
}

impl<'a> Others<'a> {
    fn new(everybody: &'a Everybody, batch: &BTreeSet<&ObjectKey>) -> Self {
        let mut others = Self {
            by_address: BTreeMap::new(),
            nodes: everybody.node_addresses.iter().map(ToString::to_string).collect(),
            at_nodes: BTreeMap::new(),
            denied_at_nodes: BTreeSet::new(),
        };
        for (key, footprint) in everybody.footprints.iter().filter(|(key, _)| !batch.contains(key)) {
            for address in &footprint.addresses {
                others.by_address.entry(address.to_string()).or_default().push((key, footprint));
            }
            for family in &footprint.at_nodes {
                for (protocol, ports) in footprint.ports.get(family).into_iter().flatten() {
                    for port in ports {
                        others
                            .at_nodes
                            .entry((*family, *protocol, *port))
                            .or_default()
                            .push((key, footprint));
                    }
                }
                if footprint.access.denies_all_else() && may_deny_all(footprint.flavor, *family) {
                    others.denied_at_nodes.insert(*family);
                }
            }
        }
        others
    }

    /// Whether others need a destination in a rule, by what they want themselves: a rule of the batch must
    /// not let in for them what they did not ask for.
    fn judge(&self, draft: &Draft<'_>, entry: &Entry, destination: &str) -> Verdict {
        let family = family_of(destination);
        let is_node = self.nodes.contains(destination);
        let here = self.by_address.get(destination).map(Vec::as_slice).unwrap_or_default();
        if entry.is_deny() {
            let denied = here.iter().any(|(_, footprint)| footprint.access.denies_all_else())
                || (is_node && self.denied_at_nodes.contains(&family));
            return if denied { Verdict::Keep } else { Verdict::Take(Vec::new()) };
        }
        let ports = entry.document.properties.as_ref().and_then(rule::destination_ports);
        let (Some(ports), Some(protocol)) = (ports, rule::known_protocol(entry.protocol())) else {
            return Verdict::Keep;
        };
        let mut concerned: BTreeMap<&ObjectKey, &Footprint> = here.iter().copied().collect();
        for port in ports.iter().filter(|_| is_node) {
            concerned.extend(self.at_nodes.get(&(family, protocol, *port)).into_iter().flatten().copied());
        }
        let mut served = BTreeSet::new();
        let mut missing = Vec::new();
        for footprint in concerned.values() {
            let theirs = footprint.ports.get(&family).and_then(|of| of.get(protocol));
            let Some(theirs) = theirs.filter(|theirs| !theirs.is_disjoint(&ports)) else { continue };
            let wanted = footprint.wanted(family, protocol, destination);
            if wanted.iter().any(|rule| entry.is_named(&rule.name)) {
                return Verdict::Keep;
            }
            let has = |rule: &WantedRule| {
                draft.find(&rule.name).is_some_and(|entry| entry.destinations.contains(destination))
            };
            if !wanted.iter().all(has) {
                served.extend(theirs.intersection(&ports).copied());
                missing.extend(wanted);
            }
        }
        if !missing.is_empty() && served == ports { Verdict::Keep } else { Verdict::Take(missing) }
    }
}

/// Removes the destinations of the batch (`owners` by address) from all managed rules, and node addresses
/// that nobody needs. What others need at the same address stays.
pub(super) fn clean(
    draft: &mut Draft<'_>,
    owners: &BTreeMap<String, ObjectKey>,
    batch: &BTreeSet<&ObjectKey>,
) {
    let others = Others::new(draft.everybody, batch);
    let mut taken = Vec::new();
    let mut replacements = Vec::new();
    for (index, entry) in draft.entries.iter().enumerate().filter(|(_, entry)| entry.managed) {
        for destination in &entry.destinations {
            if !owners.contains_key(destination) && !others.nodes.contains(destination) {
                continue;
            }
            if let Verdict::Take(instead) = others.judge(draft, entry, destination) {
                taken.push((index, destination.clone()));
                replacements.extend(instead);
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
