//! What one Service wants of the security group.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s::ObjectKey;

use crate::model::Family;
use crate::service::{Destinations, ServiceIntent, ServiceRemoval, WantedRule};

impl AccessIntent {
    /// The Service, if it wants security rules.
    pub fn wants_rules(&self) -> Option<&ObjectKey> {
        match self {
            Self::Present { service, .. } if !service.access.disabled => Some(&service.key),
            Self::Present { .. } | Self::Absent { .. } => None,
        }
    }
}

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

    pub(super) fn owner(&self) -> &ServiceRemoval {
        match self {
            Self::Present { service, .. } => service.removal(),
            Self::Absent { service, .. } => service,
        }
    }

    /// All addresses that the Service has or had, except those of nodes.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &IpAddr> {
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
    pub(super) fn wanted(&self) -> Vec<WantedRule> {
        let Self::Present { service, .. } = self else { return Vec::new() };
        service.needs.demand.rules(&self.destinations())
    }
}
