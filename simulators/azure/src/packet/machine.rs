//! Machines and their network interfaces as the oracle reads them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::ResourceId;
use serde_json::Value;

use super::json::{address_at, flag_at, id_at, id_of, ids_at, items, text_at};
use super::network::Network;
use super::security_group::SecurityGroup;
use super::virtual_network::Subnet;
use crate::Documents;

/// One IP configuration of a network interface: an address of a machine, or of a private endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Interface {
    /// The IP configuration's id.
    pub id: ResourceId,
    pub interface: ResourceId,
    pub machine: Option<ResourceId>,
    /// The private endpoint that the interface belongs to.
    pub endpoint: Option<ResourceId>,
    pub address: Option<IpAddr>,
    pub subnet: Option<ResourceId>,
    pub group: Option<ResourceId>,
    /// Whether it may send and receive packets that bear other addresses than its own.
    pub forwards: bool,
    /// What the ids above lead to, found once: they are asked for with every packet and probe.
    pub(super) found: Found,
    pub pools: Vec<ResourceId>,
    pub public_address: Option<ResourceId>,
    pub application_groups: Vec<ResourceId>,
    pub nat_rules: Vec<ResourceId>,
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
    /// The scale set of an instance, or of a machine that joined a flexible one.
    pub scale_set: Option<ResourceId>,
    /// Whether the scale set is a flexible one, whose machines get no address by default.
    pub flexible: bool,
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

const SCALE_SET: &str = "Microsoft.Compute/virtualMachineScaleSets";

/// What a scale set instance's own configuration says of an IP configuration, which decides over what
/// its interface shows.
type InstanceConfigurations = HashMap<ResourceId, Value>;

impl Network {
    pub(super) fn read_machines(&mut self, documents: &dyn Documents) {
        let instances = format!("{SCALE_SET}/virtualMachines");
        let mut configurations = InstanceConfigurations::new();
        for document in documents.of_type(&instances) {
            // Machines of a flexible set are listed here too, but are machines like any other.
            if let Some(id) =
                self.read_machine(documents, &document, id_of(&document).and_then(|id| id.parent()))
            {
                instance_configurations(&id, &document, &mut configurations);
            }
        }
        for document in documents.of_type("Microsoft.Compute/virtualMachines") {
            let scale_set = id_at(&document, "/properties/virtualMachineScaleSet/id");
            self.read_machine(documents, &document, scale_set);
        }
        for document in documents.of_type(&format!("{instances}/networkInterfaces")) {
            self.read_interface(&document, Some(&configurations));
        }
        for document in documents.of_type("Microsoft.Network/networkInterfaces") {
            self.read_interface(&document, None);
        }
    }

    fn read_machine(
        &mut self,
        documents: &dyn Documents,
        document: &Value,
        scale_set: Option<ResourceId>,
    ) -> Option<ResourceId> {
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
        let flexible = scale_set.as_ref().is_some_and(|set| id.parent().as_ref() != Some(set));
        self.machines
            .insert(id.clone(), Arc::new(Machine { name, resource_name, power, scale_set, flexible }));
        Some(id)
    }

    /// `instances` is given for interfaces of scale set instances.
    fn read_interface(&mut self, document: &Value, instances: Option<&InstanceConfigurations>) {
        let Some(interface) = id_of(document) else { return };
        let machine = match instances {
            Some(_) => interface.parent(),
            None => id_at(document, "/properties/virtualMachine/id"),
        };
        for configuration in items(document, "/properties/ipConfigurations") {
            let id = id_of(configuration)
                .or_else(|| Some(interface.child("ipConfigurations", text_at(configuration, "/name")?)));
            let Some(id) = id else { continue };
            let joined = match instances {
                Some(known) => known.get(&id).unwrap_or(&Value::Null),
                None => configuration,
            };
            let endpoint = id_at(document, "/properties/privateEndpoint/id");
            let mut application_groups = ids_at(configuration, "/properties/applicationSecurityGroups");
            application_groups.extend(ids_at(joined, "/properties/applicationSecurityGroups"));
            if let Some(of_endpoint) = endpoint.as_ref().and_then(|id| self.endpoints.get(id)) {
                application_groups.extend(of_endpoint.application_groups.iter().cloned());
            }
            self.add_interface(Interface {
                found: Found::default(),
                subnet: id_at(configuration, "/properties/subnet/id"),
                interface: interface.clone(),
                machine: machine.clone(),
                endpoint,
                address: address_at(configuration, "/properties/privateIPAddress"),
                group: id_at(document, "/properties/networkSecurityGroup/id"),
                forwards: flag_at(document, "/properties/enableIPForwarding"),
                pools: ids_at(joined, "/properties/loadBalancerBackendAddressPools"),
                public_address: id_at(configuration, "/properties/publicIPAddress/id"),
                application_groups,
                nat_rules: ids_at(joined, "/properties/loadBalancerInboundNatRules"),
                id,
            });
        }
    }

    fn add_interface(&mut self, mut interface: Interface) {
        let index = self.interfaces.len();
        if let Some(address) = interface.address {
            self.by_address.entry(address).or_default().push(index);
        }
        self.by_configuration.insert(interface.id.clone(), index);
        if let Some(machine) = &interface.machine {
            self.interfaces_of_machine.entry(machine.clone()).or_default().push(index);
        }
        interface.found = self.surroundings(
            interface.machine.as_ref(),
            interface.subnet.as_ref(),
            interface.group.as_ref(),
        );
        self.interfaces.push(interface);
    }

    fn surroundings(
        &self,
        machine: Option<&ResourceId>,
        subnet: Option<&ResourceId>,
        group: Option<&ResourceId>,
    ) -> Found {
        let subnet = subnet.and_then(|id| self.subnets.get(id)).cloned();
        Found {
            machine: machine.and_then(|id| self.machines.get(id)).cloned(),
            subnet_group: subnet.as_ref().and_then(|subnet| self.groups.get(subnet.group.as_ref()?)).cloned(),
            interface_group: group.and_then(|id| self.groups.get(id)).cloned(),
            subnet,
        }
    }

    /// An interface of a host that no document tells of, in the subnet that has its address.
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
            found: self.surroundings(None, Some(subnet), None),
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

impl Machine {
    /// Whether people mean this machine by a name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name) || self.resource_name.eq_ignore_ascii_case(name)
    }
}

fn instance_configurations(instance: &ResourceId, document: &Value, found: &mut InstanceConfigurations) {
    let path = "/properties/networkProfileConfiguration/networkInterfaceConfigurations";
    for interface in items(document, path) {
        let Some(interface_name) = text_at(interface, "/name") else { continue };
        let interface_id = instance.child("networkInterfaces", interface_name);
        for configuration in items(interface, "/properties/ipConfigurations") {
            let Some(name) = text_at(configuration, "/name") else { continue };
            found.insert(interface_id.child("ipConfigurations", name), configuration.clone());
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
