//! The one security group for all Services, in one write.
//!
//! Rules are shared: Services with the same protocol, sources and ports only add their addresses. A batch first removes
//! everything that its Services had (except what others share), then adds what they want. A rule that is added again
//! keeps its priority, so that nothing changes if nothing differs.

mod clean;
mod demand;
mod draft;
mod held;
pub mod in_force;
mod limits;
mod repair;
mod retain;
mod rule;
mod strange;
#[cfg(test)]
mod tests;
mod usage;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::SecurityGroup;
use k8s::ObjectKey;

use demand::Destinations;
pub(crate) use demand::Needs;
use draft::Member;
pub use held::{ShownAddress, closed_addresses, open_addresses, recorded, shown_addresses};
pub use repair::{restore, undone};
use rule::WantedRule;
pub(crate) use rule::{MAX_PRIORITY, MIN_PRIORITY};
pub use strange::{StrangeRule, strange_rules};
pub use usage::ClusterUsage;

use crate::cluster::{Cluster, Family};
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
        /// The addresses of the nodes in its pools: the destinations if floating IP is off.
        node_addresses: Vec<IpAddr>,
    },
    /// All rules of the Service are removed.
    Absent {
        /// The Service.
        service: Arc<ServiceRemoval>,
        /// The addresses that its frontends have or had, as far as known.
        addresses: Vec<IpAddr>,
    },
}

/// The plan of the security group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SecurityGroupPlan {
    /// The one write, if anything differs.
    pub step: Option<Step>,
    /// The refused Services, in order of their keys; their rules stay as they are.
    pub refused: Vec<(ObjectKey, Refusal)>,
    /// The notices for the owners of Services.
    pub notices: Vec<Notice>,
}

impl AccessIntent {
    /// The Service of this intent.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Present { service, .. } => &service.key,
            Self::Absent { service, .. } => &service.key,
        }
    }

    /// The intent after it was carried out: a former address of the Service that no rule contains any more may be
    /// assigned to others from then on.
    pub fn carried_out(self) -> Self {
        let Self::Present { service, addresses, node_addresses } = self else { return self };
        let is_past = |address: &IpAddr| !addresses.contains(address);
        let service = match service.removal().published_addresses.iter().any(is_past) {
            true => Arc::new(service.with_published(&addresses)),
            false => service,
        };
        Self::Present { service, addresses, node_addresses }
    }

    fn owner(&self) -> &ServiceRemoval {
        match self {
            Self::Present { service, .. } => service.removal(),
            Self::Absent { service, .. } => service,
        }
    }

    /// All addresses that the Service has or had, except those of nodes.
    fn addresses(&self) -> impl Iterator<Item = &IpAddr> {
        let (Self::Present { addresses, .. } | Self::Absent { addresses, .. }) = self;
        let owner = self.owner();
        addresses.iter().chain(&owner.additional_addresses).chain(&owner.published_addresses)
    }

    /// The addresses at which packets arrive, by family.
    fn destinations(&self) -> BTreeMap<Family, Destinations> {
        let Self::Present { service, addresses, node_addresses } = self else { return BTreeMap::new() };
        let floats = |address: &&IpAddr| service.arrival(Family::of(**address)).is_floating();
        let mut destinations: BTreeMap<Family, Destinations> = BTreeMap::new();
        for address in addresses.iter().filter(floats).chain(service.additional_addresses()) {
            destinations.entry(Family::of(*address)).or_default().own.insert(address.to_string());
        }
        for address in node_addresses.iter().filter(|address| !floats(address)) {
            let family = Family::of(*address);
            if service.families.contains(&family) {
                destinations.entry(family).or_default().nodes.insert(address.to_string());
            }
        }
        destinations
    }

    /// The rules that the Service wants, in the order in which priorities are assigned.
    fn wanted(&self) -> Vec<WantedRule> {
        let Self::Present { service, .. } = self else { return Vec::new() };
        service.needs.demand.rules(&self.destinations())
    }
}

/// The Services whose parts Azure's error text names: by the name of a rule or by address. Empty if it names none of
/// the batch.
pub fn services_named_in(error_text: &str, batch: &[AccessIntent]) -> Vec<ObjectKey> {
    let text = error_text.to_lowercase();
    let named = |intent: &&AccessIntent| {
        intent.owner().is_named_in(&text)
            || intent.wanted().iter().any(|rule| text.contains(&rule.name.to_lowercase()))
            || intent.addresses().any(|address| crate::intent::names_word(&text, &address.to_string()))
    };
    crate::plan::ordered(batch.iter().filter(named).map(|intent| intent.key().clone()))
}

/// Plans the security group for a batch of Services. The order of the batch does not matter; of several intents of one
/// Service the first counts. Open addresses that were the cluster's and are not used in it any more are closed, also
/// for an empty batch.
pub fn plan(
    cluster: &Cluster,
    observed: &SecurityGroup,
    batch: &[AccessIntent],
    usage: &ClusterUsage,
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
    let (step, unserved) = draft::plan(cluster, observed, usage, members);
    refused.extend(unserved);
    let step = step.filter(|_| has_rules).or_else(|| repair::repair(cluster, observed));
    SecurityGroupPlan { step, refused: refused.into_iter().collect(), notices }
}
