//! The one security group for all Services, in one write.
//!
//! Rules are shared: Services with the same protocol, sources and ports only add their addresses. A batch
//! takes back everything that its Services had (sparing what others share), then writes what they want;
//! a rule that comes back keeps its priority, so that nothing changes where nothing differs.

mod clean;
mod draft;
mod limits;
mod repair;
mod retain;
mod rule;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::SecurityGroup;
use k8s::ObjectKey;

pub use clean::Everybody;
use clean::Ports;
use draft::Member;
pub use repair::restore;
use rule::{Allow, WantedRule};
pub(crate) use rule::{MAX_PRIORITY, MIN_PRIORITY};

use crate::arrival::Arrival;
use crate::cluster::{Cluster, Family, Flavor};
use crate::intent::{ServiceIntent, ServiceRemoval};
use crate::plan::{Notice, Refusal, Step};

/// What one Service wants of the security group.
#[derive(Debug, Clone)]
pub enum AccessIntent {
    /// The Service's clients may reach it.
    Present {
        /// The Service.
        service: Arc<ServiceIntent>,
        /// The addresses of its frontends.
        addresses: Vec<IpAddr>,
        /// The addresses of the nodes in its pools: where traffic arrives when floating IP is off.
        node_addresses: Vec<IpAddr>,
    },
    /// Nothing of the Service may stay.
    Absent {
        /// The Service.
        service: Arc<ServiceRemoval>,
        /// The addresses that its frontends have or had, as far as they are known.
        addresses: Vec<IpAddr>,
    },
}

/// The plan of the security group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SecurityGroupPlan {
    /// The one write, if anything differs.
    pub step: Option<Step>,
    /// The Services that cannot be served, in order of their keys; they are left as they are.
    pub refused: Vec<(ObjectKey, Refusal)>,
    /// What to tell Services' owners.
    pub notices: Vec<Notice>,
}

impl AccessIntent {
    /// The Service that it is about.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Present { service, .. } => &service.key,
            Self::Absent { service, .. } => &service.key,
        }
    }

    fn owner(&self) -> &ServiceRemoval {
        match self {
            Self::Present { service, .. } => service.removal(),
            Self::Absent { service, .. } => service,
        }
    }

    /// All addresses that the Service has or had, but not those of nodes.
    fn addresses(&self) -> impl Iterator<Item = &IpAddr> {
        let (Self::Present { addresses, .. } | Self::Absent { addresses, .. }) = self;
        let owner = self.owner();
        addresses.iter().chain(&owner.additional_addresses).chain(&owner.published_addresses)
    }

    /// The addresses at which packets arrive, by family, and those that the Service has by other means.
    fn destinations(&self) -> BTreeMap<Family, BTreeSet<String>> {
        let Self::Present { service, addresses, node_addresses } = self else { return BTreeMap::new() };
        let floats = |address: &&IpAddr| service.arrival(Family::of(**address)).is_floating();
        let at_frontends = addresses.iter().filter(floats);
        let at_nodes = node_addresses
            .iter()
            .filter(|address| service.families.contains(&Family::of(**address)) && !floats(address));
        let mut destinations: BTreeMap<Family, BTreeSet<String>> = BTreeMap::new();
        for address in service.additional_addresses().iter().chain(at_frontends).chain(at_nodes) {
            destinations.entry(Family::of(*address)).or_default().insert(address.to_string());
        }
        destinations
    }

    /// The rules that the Service wants, in the order in which priorities are given out.
    fn wanted(&self) -> Vec<WantedRule> {
        let Self::Present { service, .. } = self else { return Vec::new() };
        if service.access.disabled {
            return Vec::new();
        }
        let destinations = self.destinations();
        let ports: BTreeMap<Family, Ports> =
            destinations.keys().map(|family| (*family, ports(service, service.arrival(*family)))).collect();
        let mut wanted = Vec::new();
        for protocol in rule::PROTOCOLS {
            for (family, destinations) in &destinations {
                let Some(ports) = ports.get(family).and_then(|ports| ports.get(protocol)) else { continue };
                for sources in service.access.sources(service.flavor, *family) {
                    let allow = Allow {
                        protocol: protocol.to_owned(),
                        family: *family,
                        sources: sources.into_iter().collect(),
                        ports: ports.clone(),
                    };
                    wanted.push(WantedRule::allow(allow, destinations.clone()));
                }
            }
        }
        if service.access.denies_all_else() {
            let mut denied = destinations;
            denied.retain(|family, _| may_deny_all(service.flavor, *family));
            wanted.extend(denied.into_iter().map(|(family, to)| WantedRule::deny_all(family, to)));
        }
        wanted
    }
}

/// Whether a rule that denies all may be written for a family. Packets for internal IPv6 frontends always arrive at
/// nodes, and such a rule there would deny everything to the nodes themselves: health probes, and every other Service
/// that is reached at them. (Owners who turn floating IP off get it all the same, as from the replaced program.)
fn may_deny_all(flavor: Flavor, family: Family) -> bool {
    !(flavor == Flavor::Internal && family == Family::V6)
}

/// The ports that clients' packets have when they arrive, by protocol.
fn ports(service: &ServiceIntent, arrival: Arrival) -> Ports {
    let mut ports = Ports::new();
    for port in &service.ports {
        let number = arrival.port(port.port, port.node_port);
        if number > 0 {
            ports.entry(port.protocol.in_security_rule()).or_default().insert(number);
        }
    }
    ports
}

/// The Services whose parts Azure's error text names: by the name of a rule or by address. Empty where it
/// names none of the batch.
pub fn blame(error_text: &str, batch: &[AccessIntent]) -> Vec<ObjectKey> {
    let text = error_text.to_lowercase();
    let named = |intent: &&AccessIntent| {
        intent.owner().is_named_in(&text)
            || intent.wanted().iter().any(|rule| text.contains(&rule.name.to_lowercase()))
            || intent.addresses().any(|address| crate::intent::names_word(&text, &address.to_string()))
    };
    crate::plan::ordered(batch.iter().filter(named).map(|intent| intent.key().clone()))
}

/// Plans the security group for a batch of Services. The order of the batch does not matter; of several
/// intents of one Service the first counts.
pub fn plan(
    cluster: &Cluster,
    observed: &SecurityGroup,
    batch: &[AccessIntent],
    everybody: &Everybody,
) -> SecurityGroupPlan {
    let mut members: BTreeMap<&ObjectKey, &AccessIntent> = BTreeMap::new();
    for intent in batch {
        members.entry(intent.key()).or_insert(intent);
    }
    let mut refused: BTreeMap<ObjectKey, Refusal> = BTreeMap::new();
    let has_rules = observed.properties.as_ref().is_some_and(|p| p.security_rules.is_some());
    for (key, intent) in &members {
        let refusal = match intent {
            _ if !has_rules => {
                Refusal::SecurityGroupWithoutRules { name: observed.name.clone().unwrap_or_default() }
            }
            AccessIntent::Present { addresses, .. } if addresses.is_empty() => {
                Refusal::NoAddressYet { service: (*key).clone() }
            }
            _ => continue,
        };
        refused.insert((*key).clone(), refusal);
    }
    members.retain(|key, _| !refused.contains_key(*key));
    let notices = members
        .values()
        .filter_map(|intent| match intent {
            AccessIntent::Present { service, .. } => Some(service.access.notices(&service.key)),
            AccessIntent::Absent { .. } => None,
        })
        .flatten()
        .collect();
    let members: Vec<Member<'_>> = members.into_values().map(Member::new).collect();
    let (step, unserved) = draft::plan(cluster, observed, everybody, members);
    refused.extend(unserved);
    let step = step.filter(|_| has_rules).or_else(|| repair::repair(observed));
    SecurityGroupPlan { step, refused: refused.into_iter().collect(), notices }
}
