//! Taking back what Services of a batch had, without taking it from those who share it (8.4 step 3).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use k8s::{Node, ObjectKey, Service};

use super::Draft;
use super::rule::{self, Allow, family_of};
use crate::access::Access;
use crate::annotations::{self as keys, Annotations};
use crate::cluster::Cluster;
use crate::intent::ServiceRemoval;

/// Ports by the protocol's name in security rules.
pub(super) type Ports = BTreeMap<&'static str, BTreeSet<i32>>;

/// What one Service needs of the security group, as far as its object tells without validation.
#[derive(Debug, Clone, Default)]
struct Footprint {
    ports: Ports,
    /// Whether traffic arrives at nodes with their own address as destination.
    at_nodes: bool,
    denies: bool,
    addresses: BTreeSet<IpAddr>,
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
            if !service.wants_load_balancer() {
                continue;
            }
            let at_nodes = Annotations(service).flag(keys::DISABLE_FLOATING_IP);
            let mut ports = Ports::new();
            for port in &service.spec.ports {
                let protocol = match port.protocol.as_str() {
                    "" | "TCP" => "Tcp",
                    "UDP" => "Udp",
                    _ => "*",
                };
                ports.entry(protocol).or_default().insert(if at_nodes { port.node_port } else { port.port });
            }
            let denies = Access::read(service).denies_all_else();
            everybody.footprints.insert(owner.key, Footprint { ports, at_nodes, denies, addresses });
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

/// What those who are not in the batch need at one address.
#[derive(Default)]
struct Needs {
    ports: Ports,
    denies: bool,
}

impl Needs {
    fn add(&mut self, footprint: &Footprint) {
        for (protocol, ports) in &footprint.ports {
            self.ports.entry(*protocol).or_default().extend(ports);
        }
        self.denies |= footprint.denies;
    }

    fn needs(&self, protocol: &str, port: i32) -> bool {
        self.ports.iter().any(|(name, ports)| name.eq_ignore_ascii_case(protocol) && ports.contains(&port))
    }
}

/// Removes the destinations of the batch (`owners` by address) from all managed rules, and node addresses
/// that nobody needs. What others need at the same address stays: where a rule holds more ports than
/// they need, a rule of the remaining ports takes its place.
pub(super) fn clean(
    draft: &mut Draft<'_>,
    owners: &BTreeMap<String, ObjectKey>,
    batch: &BTreeSet<&ObjectKey>,
) {
    let everybody = draft.everybody;
    let mut by_address: BTreeMap<String, Needs> = BTreeMap::new();
    let mut at_nodes = Needs::default();
    for (_, footprint) in everybody.footprints.iter().filter(|(key, _)| !batch.contains(key)) {
        for address in &footprint.addresses {
            by_address.entry(address.to_string()).or_default().add(footprint);
        }
        if footprint.at_nodes {
            at_nodes.add(footprint);
        }
    }
    let nodes: BTreeSet<String> = everybody.node_addresses.iter().map(ToString::to_string).collect();
    let nobody = Needs::default();

    let mut splits: Vec<(Allow, String)> = Vec::new();
    for entry in draft.entries.iter_mut().filter(|entry| entry.managed) {
        let concerned: Vec<String> = entry
            .destinations
            .iter()
            .filter(|destination| owners.contains_key(*destination) || nodes.contains(*destination))
            .cloned()
            .collect();
        for destination in concerned {
            let there = by_address.get(&destination).unwrap_or(&nobody);
            let here = if nodes.contains(&destination) { &at_nodes } else { &nobody };
            if entry.is_deny() {
                if !there.denies && !here.denies {
                    entry.take(&destination, owners.get(&destination));
                }
                continue;
            }
            let ports = entry.document.properties.as_ref().and_then(rule::destination_ports);
            let Some(ports) = ports else { continue };
            let protocol = rule::hashed_protocol(entry.protocol());
            let needed: BTreeSet<i32> = ports
                .iter()
                .filter(|port| there.needs(&protocol, **port) || here.needs(&protocol, **port))
                .copied()
                .collect();
            if needed == ports {
                continue;
            }
            entry.take(&destination, owners.get(&destination));
            if !needed.is_empty() {
                let family = family_of(&destination);
                splits
                    .push((Allow { protocol, family, sources: entry.sources(), ports: needed }, destination));
            }
        }
    }
    for (allow, destination) in splits {
        draft.allow(&allow, &BTreeSet::from([destination]), None);
    }
}
