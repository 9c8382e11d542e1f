//! The state of the packet oracle: the simulated network, read once from its documents.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::ResourceId;
use ipnet::IpNet;

use super::balancer::{Frontend, LoadBalancer};
use super::machine::{Interface, Machine};
use super::private_link::{Endpoint, LinkService};
use super::security_group::SecurityGroup;
use super::virtual_network::{Subnet, VirtualNetwork};

/// The simulated network at one moment. Read it once to trace many packets.
#[derive(Debug, Default)]
pub struct Network {
    pub(crate) interfaces: Vec<Interface>,
    pub(super) by_address: HashMap<IpAddr, Vec<usize>>,
    pub(super) by_configuration: HashMap<ResourceId, usize>,
    pub(super) interfaces_of_machine: HashMap<ResourceId, Vec<usize>>,
    pub(crate) machines: HashMap<ResourceId, Arc<Machine>>,
    pub(crate) subnets: HashMap<ResourceId, Arc<Subnet>>,
    pub(crate) virtual_networks: HashMap<ResourceId, VirtualNetwork>,
    pub(super) groups: HashMap<ResourceId, Arc<SecurityGroup>>,
    pub(crate) public_addresses: Vec<PublicAddress>,
    /// Address ranges of public IP prefixes.
    pub(super) public_prefixes: HashMap<ResourceId, IpNet>,
    pub(crate) balancers: Vec<LoadBalancer>,
    pub(crate) endpoints: HashMap<ResourceId, Endpoint>,
    pub(crate) link_services: Vec<LinkService>,
    /// The prefixes that the user gave for tags, by tag in lower case.
    pub(super) service_tags: HashMap<String, Vec<IpNet>>,
    pub(crate) seed: u64,
}

#[derive(Debug)]
pub(crate) struct PublicAddress {
    pub id: ResourceId,
    pub address: Option<IpAddr>,
    pub region: String,
    pub standard: bool,
    pub used_by: Option<ResourceId>,
}

impl Network {
    /// Chooses another spread of flows over nodes.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the addresses of a service tag, such as `Storage.WestUS`; they replace the known ones. `Internet`,
    /// `VirtualNetwork` and `AzureLoadBalancer` follow from the network itself; an unknown tag matches nothing.
    #[must_use]
    pub fn with_service_tag(mut self, tag: &str, prefixes: Vec<IpNet>) -> Self {
        self.service_tags.insert(tag.to_ascii_lowercase(), prefixes);
        self
    }

    pub(super) fn public_address(&self, id: &ResourceId) -> Option<&PublicAddress> {
        self.public_addresses.iter().find(|known| known.id == *id)
    }

    /// The public IP that has an address.
    pub(super) fn public_at(&self, address: IpAddr) -> Option<&PublicAddress> {
        self.public_addresses.iter().find(|public| public.address == Some(address))
    }

    /// A frontend by its id.
    pub(super) fn frontend(&self, id: &ResourceId) -> Option<(&LoadBalancer, &Frontend)> {
        self.frontends().find(|(_, frontend)| frontend.id == *id)
    }

    pub(super) fn frontends(&self) -> impl Iterator<Item = (&LoadBalancer, &Frontend)> {
        self.balancers
            .iter()
            .flat_map(|balancer| balancer.frontends.iter().map(move |frontend| (balancer, frontend)))
    }

    /// Frontends that have a private address.
    pub(super) fn internal_frontends(
        &self,
        address: IpAddr,
    ) -> impl Iterator<Item = (&LoadBalancer, &Frontend)> {
        self.frontends()
            .filter(move |(_, frontend)| frontend.is_internal() && frontend.address == Some(address))
    }

    /// The interface that a public IP leads to.
    pub(crate) fn interface_behind(&self, public: &PublicAddress) -> Option<&Interface> {
        match public.used_by.as_ref().and_then(|id| self.interface_of(id)) {
            Some(index) => self.interfaces.get(index),
            None => {
                self.interfaces.iter().find(|interface| interface.public_address.as_ref() == Some(&public.id))
            }
        }
    }
}
