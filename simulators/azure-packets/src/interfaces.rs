//! Finds interfaces.

use std::net::IpAddr;

use azure_types::ResourceId;

use super::machine::{Interface, InterfaceTargets};
use super::network::Network;

impl Network {
    pub(super) fn surroundings(
        &self,
        machine: Option<&ResourceId>,
        subnet: Option<&ResourceId>,
        group: Option<&ResourceId>,
    ) -> InterfaceTargets {
        let subnet = subnet.and_then(|id| self.subnets.get(id)).cloned();
        InterfaceTargets {
            machine: machine.and_then(|id| self.machines.get(id)).cloned(),
            subnet_group: subnet.as_ref().and_then(|subnet| self.groups.get(subnet.group.as_ref()?)).cloned(),
            interface_group: group.and_then(|id| self.groups.get(id)).cloned(),
            subnet,
        }
    }

    /// An interface of a host that no document describes, in the subnet that has its address.
    pub(super) fn guest(&self, network: &ResourceId, address: IpAddr) -> Option<Interface> {
        let (subnet, _) = self.subnets.iter().find(|(_, subnet)| {
            subnet.virtual_network == *network
                && subnet.prefixes.iter().any(|prefix| prefix.contains(&address))
        })?;
        let interface = network.child("hosts", &address.to_string());
        Some(Interface {
            id: interface.clone(),
            interface,
            machine: None,
            endpoint: None,
            address: Some(address),
            targets: self.surroundings(None, Some(subnet), None),
            subnet: Some(subnet.clone()),
            group: None,
            forwards: false,
            pools: Vec::new(),
            public_address: None,
            application_groups: Vec::new(),
            nat_rules: Vec::new(),
        })
    }

    /// The private addresses of a machine.
    pub(crate) fn addresses_of(&self, machine: &ResourceId) -> Vec<IpAddr> {
        self.interfaces_of(machine).filter_map(|interface| interface.address).collect()
    }

    pub(crate) fn interfaces_of<'a>(
        &'a self,
        machine: &ResourceId,
    ) -> impl Iterator<Item = &'a Interface> + use<'a> {
        let of_machine = self.interfaces_of_machine.get(machine).map_or(&[] as &[usize], Vec::as_slice);
        of_machine.iter().filter_map(|index| self.interfaces.get(*index))
    }

    /// All interfaces that have a private address, in whatever network.
    pub(super) fn with_address(&self, address: IpAddr) -> impl Iterator<Item = &Interface> {
        let indexes = self.by_address.get(&address).map_or(&[] as &[usize], Vec::as_slice);
        indexes.iter().filter_map(|index| self.interfaces.get(*index))
    }

    /// The interface with a private address, in one virtual network if that is known.
    pub(crate) fn interface_at(&self, address: IpAddr, network: Option<&ResourceId>) -> Option<usize> {
        self.by_address.get(&address)?.iter().copied().find(|index| {
            let interface = self.interfaces.get(*index);
            network.is_none() || interface.is_some_and(|interface| interface.virtual_network() == network)
        })
    }

    /// The interface that has an IP configuration of this id.
    pub(crate) fn interface_of(&self, configuration: &ResourceId) -> Option<usize> {
        self.by_configuration.get(configuration).copied()
    }
}
