//! What the packet oracle knows: the simulated network, read once from its documents.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::Value;

use super::balancer::LoadBalancer;
use super::json::{address_at, id_at, id_of, ids_at, items, text_at};
use super::security_group::SecurityGroup;
use crate::Documents;

/// The simulated network at one moment. Read it once to trace many packets.
#[derive(Debug, Default)]
pub struct Network {
    pub(crate) interfaces: Vec<Interface>,
    by_address: HashMap<IpAddr, Vec<usize>>,
    by_configuration: HashMap<ResourceId, usize>,
    interfaces_of_machine: HashMap<ResourceId, Vec<usize>>,
    pub(crate) machines: HashMap<ResourceId, Arc<Machine>>,
    pub(crate) subnets: HashMap<ResourceId, Arc<Subnet>>,
    pub(crate) virtual_networks: HashMap<ResourceId, VirtualNetwork>,
    pub(super) groups: HashMap<ResourceId, Arc<SecurityGroup>>,
    pub(crate) public_addresses: Vec<PublicAddress>,
    pub(crate) balancers: Vec<LoadBalancer>,
    pub(crate) service_tags: HashMap<String, Vec<IpNet>>,
    pub(crate) seed: u64,
}

/// One IP configuration of a network interface: an address of a machine.
#[derive(Debug, Clone)]
pub(crate) struct Interface {
    /// The IP configuration's id.
    pub id: ResourceId,
    pub interface: ResourceId,
    pub machine: Option<ResourceId>,
    pub address: Option<IpAddr>,
    pub subnet: Option<ResourceId>,
    pub group: Option<ResourceId>,
    /// What the ids above lead to, found once: they are asked for with every packet and probe.
    pub(super) found: Found,
    pub pools: Vec<ResourceId>,
    pub public_address: Option<ResourceId>,
    pub application_groups: Vec<ResourceId>,
}

/// What stands around an interface.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    pub(super) machine: Option<Arc<Machine>>,
    pub(super) subnet: Option<Arc<Subnet>>,
    pub(super) subnet_group: Option<Arc<SecurityGroup>>,
    pub(super) interface_group: Option<Arc<SecurityGroup>>,
}

/// A virtual machine or scale set instance.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub name: String,
    /// The resource's own name, such as `pool_0`; differs from the host name in scale sets.
    pub resource_name: String,
    pub power: Power,
}

/// Whether a machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Power {
    Running,
    /// Stopped, starting or stopping, but still on a host: it is offered packets and answers none.
    Stopped,
    /// Off its host: no packet is sent there.
    Deallocated,
}

#[derive(Debug)]
pub(crate) struct Subnet {
    pub virtual_network: ResourceId,
    pub group: Option<ResourceId>,
    /// Public IPs of the NAT gateway, which goes before every other way out but a machine's own.
    pub outbound: Vec<ResourceId>,
}

#[derive(Debug)]
pub(crate) struct VirtualNetwork {
    pub prefixes: Vec<IpNet>,
    pub peers: Vec<ResourceId>,
}

#[derive(Debug)]
pub(crate) struct PublicAddress {
    pub id: ResourceId,
    pub address: Option<IpAddr>,
    pub standard: bool,
    pub used_by: Option<ResourceId>,
}

impl Network {
    /// Reads the network out of a simulated Azure.
    pub fn read(documents: &dyn Documents) -> Self {
        let mut network = Self::default();
        for document in documents.of_type("Microsoft.Network/virtualNetworks") {
            network.read_virtual_network(&document, documents);
        }
        for document in documents.of_type("Microsoft.Network/networkSecurityGroups") {
            if let Some(id) = id_of(&document) {
                network.groups.insert(id.clone(), Arc::new(SecurityGroup::read(id, &document)));
            }
        }
        for document in documents.of_type("Microsoft.Network/publicIPAddresses") {
            if let Some(id) = id_of(&document) {
                network.public_addresses.push(PublicAddress {
                    id,
                    address: address_at(&document, "/properties/ipAddress"),
                    standard: text_at(&document, "/sku/name")
                        .is_some_and(|sku| sku.eq_ignore_ascii_case("Standard")),
                    used_by: id_at(&document, "/properties/ipConfiguration/id"),
                });
            }
        }
        network.read_machines(documents);
        for document in documents.of_type("Microsoft.Network/loadBalancers") {
            if let Some(balancer) = LoadBalancer::read(&document, &network) {
                network.balancers.push(balancer);
            }
        }
        network
    }

    /// Chooses another spread of flows over nodes.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Says which addresses a service tag stands for, such as `AzureCloud`. `Internet`,
    /// `VirtualNetwork` and `AzureLoadBalancer` are known; a tag that is not matches nothing.
    #[must_use]
    pub fn with_service_tag(mut self, tag: &str, prefixes: Vec<IpNet>) -> Self {
        self.service_tags.insert(tag.to_ascii_lowercase(), prefixes);
        self
    }

    fn read_virtual_network(&mut self, document: &Value, documents: &dyn Documents) {
        let Some(id) = id_of(document) else { return };
        for subnet in items(document, "/properties/subnets") {
            if let Some(subnet_id) = id_of(subnet) {
                let group = id_at(subnet, "/properties/networkSecurityGroup/id");
                let gateway =
                    id_at(subnet, "/properties/natGateway/id").and_then(|id| documents.document(&id));
                let outbound = gateway
                    .map(|gateway| ids_at(&gateway, "/properties/publicIpAddresses"))
                    .unwrap_or_default();
                self.subnets
                    .insert(subnet_id, Arc::new(Subnet { virtual_network: id.clone(), group, outbound }));
            }
        }
        let prefixes = items(document, "/properties/addressSpace/addressPrefixes")
            .filter_map(|prefix| prefix.as_str()?.parse().ok())
            .collect();
        let peers = items(document, "/properties/virtualNetworkPeerings")
            .filter(|peering| {
                text_at(peering, "/properties/peeringState")
                    .is_none_or(|state| state.eq_ignore_ascii_case("Connected"))
            })
            .filter_map(|peering| id_at(peering, "/properties/remoteVirtualNetwork/id"))
            .collect();
        self.virtual_networks.insert(id, VirtualNetwork { prefixes, peers });
    }

    fn read_machines(&mut self, documents: &dyn Documents) {
        const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";
        let mut instance_pools = HashMap::new();
        for document in documents.of_type(INSTANCES) {
            if let Some(id) = self.read_machine(documents, &document) {
                instance_pools_of(&id, &document, &mut instance_pools);
            }
        }
        for document in documents.of_type("Microsoft.Compute/virtualMachines") {
            self.read_machine(documents, &document);
        }
        for document in documents.of_type(&format!("{INSTANCES}/networkInterfaces")) {
            self.read_interface(&document, Some(&instance_pools));
        }
        for document in documents.of_type("Microsoft.Network/networkInterfaces") {
            self.read_interface(&document, None);
        }
    }

    fn read_machine(&mut self, documents: &dyn Documents, document: &Value) -> Option<ResourceId> {
        let id = id_of(document)?;
        let resource_name = text_at(document, "/name").unwrap_or_else(|| id.name()).to_owned();
        let host = text_at(document, "/properties/osProfile/computerName").filter(|name| !name.is_empty());
        let name = host.map_or_else(|| resource_name.clone(), str::to_owned);
        let power = match document.pointer("/properties/instanceView") {
            Some(view) => power(view),
            None => instance_view_id(&id)
                .and_then(|view| documents.document(&view))
                .map_or(Power::Running, |view| power(&view)),
        };
        self.machines.insert(id.clone(), Arc::new(Machine { name, resource_name, power }));
        Some(id)
    }

    /// `instance_pools` is given for interfaces of scale set instances, whose membership the
    /// instance's own configuration decides (`spec/arm-wire.md`, 10.2).
    fn read_interface(
        &mut self,
        document: &Value,
        instance_pools: Option<&HashMap<ResourceId, Vec<ResourceId>>>,
    ) {
        let Some(interface) = id_of(document) else { return };
        let machine = match instance_pools {
            Some(_) => interface.parent(),
            None => id_at(document, "/properties/virtualMachine/id"),
        };
        let group = id_at(document, "/properties/networkSecurityGroup/id");
        for configuration in items(document, "/properties/ipConfigurations") {
            let id = id_of(configuration)
                .or_else(|| Some(interface.child("ipConfigurations", text_at(configuration, "/name")?)));
            let Some(id) = id else { continue };
            let pools = instance_pools.and_then(|pools| pools.get(&id).cloned()).unwrap_or_else(|| {
                match instance_pools {
                    Some(_) => Vec::new(),
                    None => ids_at(configuration, "/properties/loadBalancerBackendAddressPools"),
                }
            });
            let address = address_at(configuration, "/properties/privateIPAddress");
            let index = self.interfaces.len();
            if let Some(address) = address {
                self.by_address.entry(address).or_default().push(index);
            }
            self.by_configuration.insert(id.clone(), index);
            if let Some(machine) = &machine {
                self.interfaces_of_machine.entry(machine.clone()).or_default().push(index);
            }
            let subnet = id_at(configuration, "/properties/subnet/id");
            let in_subnet = subnet.as_ref().and_then(|id| self.subnets.get(id)).cloned();
            let found = Found {
                machine: machine.as_ref().and_then(|id| self.machines.get(id)).cloned(),
                subnet_group: in_subnet
                    .as_ref()
                    .and_then(|subnet| self.groups.get(subnet.group.as_ref()?))
                    .cloned(),
                interface_group: group.as_ref().and_then(|id| self.groups.get(id)).cloned(),
                subnet: in_subnet,
            };
            self.interfaces.push(Interface {
                found,
                subnet,
                interface: interface.clone(),
                machine: machine.clone(),
                address,
                group: group.clone(),
                pools,
                public_address: id_at(configuration, "/properties/publicIPAddress/id"),
                application_groups: ids_at(configuration, "/properties/applicationSecurityGroups"),
                id,
            });
        }
    }

    /// The private addresses of a machine.
    pub(crate) fn addresses_of(&self, machine: &ResourceId) -> Vec<IpAddr> {
        let of_machine = self.interfaces_of_machine.get(machine).into_iter().flatten();
        of_machine.filter_map(|index| self.interfaces.get(*index)?.address).collect()
    }

    /// Whether private addresses of the one network can be reached from the other.
    pub(crate) fn are_connected(&self, one: &ResourceId, other: &ResourceId) -> bool {
        one == other || self.virtual_networks.get(one).is_some_and(|network| network.peers.contains(other))
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

impl Interface {
    pub(crate) fn machine_state(&self) -> Option<&Machine> {
        self.found.machine.as_deref()
    }

    /// What people call the machine.
    pub(crate) fn node_name(&self) -> &str {
        self.machine_state().map_or_else(|| self.interface.name(), |machine| &machine.name)
    }

    pub(crate) fn power(&self) -> Power {
        self.machine_state().map_or(Power::Running, |machine| machine.power)
    }

    pub(crate) fn virtual_network(&self) -> Option<&ResourceId> {
        self.found.subnet.as_deref().map(|subnet| &subnet.virtual_network)
    }
}

/// The pools that each IP configuration of a scale set instance is in, by the IP configuration's id.
fn instance_pools_of(
    instance: &ResourceId,
    document: &Value,
    pools: &mut HashMap<ResourceId, Vec<ResourceId>>,
) {
    let path = "/properties/networkProfileConfiguration/networkInterfaceConfigurations";
    for interface in items(document, path) {
        let Some(interface_name) = text_at(interface, "/name") else { continue };
        let interface_id = instance.child("networkInterfaces", interface_name);
        for configuration in items(interface, "/properties/ipConfigurations") {
            let Some(name) = text_at(configuration, "/name") else { continue };
            let found = ids_at(configuration, "/properties/loadBalancerBackendAddressPools");
            pools.insert(interface_id.child("ipConfigurations", name), found);
        }
    }
}

/// `{machine}/instanceView`: a view has a name, but no type before it as resources have.
fn instance_view_id(machine: &ResourceId) -> Option<ResourceId> {
    let scope = machine.parent()?;
    let below = machine.as_str().get(scope.as_str().len() + 1..)?;
    Some(scope.child(below, "instanceView"))
}

/// Power by an instance view; a machine of which none is known is taken to run.
fn power(view: &Value) -> Power {
    let state = items(view, "/statuses")
        .filter_map(|status| text_at(status, "/code"))
        .find_map(|code| code.strip_prefix("PowerState/"));
    match state {
        None | Some("running") => Power::Running,
        Some("deallocated" | "deallocating") => Power::Deallocated,
        Some(_) => Power::Stopped,
    }
}
