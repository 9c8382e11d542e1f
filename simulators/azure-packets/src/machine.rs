//! Machines and their network interfaces as the oracle reads them.

use std::net::IpAddr;
use std::sync::Arc;

use azure_types::ResourceId;

use super::security_group::SecurityGroup;
use super::virtual_network::Subnet;

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
    /// The targets of the ids above, resolved once: they are needed for every packet and probe.
    pub(super) targets: InterfaceTargets,
    pub pools: Vec<ResourceId>,
    pub public_address: Option<ResourceId>,
    pub application_groups: Vec<ResourceId>,
    pub nat_rules: Vec<ResourceId>,
}

/// The surroundings of an interface.
#[derive(Debug, Clone, Default)]
pub(crate) struct InterfaceTargets {
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

impl Interface {
    pub(crate) fn machine_state(&self) -> Option<&Machine> {
        self.targets.machine.as_deref()
    }

    /// The machine's display name.
    pub(crate) fn node_name(&self) -> &str {
        self.machine_state().map_or_else(|| self.interface.name(), |machine| &machine.name)
    }

    pub(crate) fn power(&self) -> Power {
        self.machine_state().map_or(Power::Running, |machine| machine.power)
    }

    pub(crate) fn virtual_network(&self) -> Option<&ResourceId> {
        self.targets.subnet.as_deref().map(|subnet| &subnet.virtual_network)
    }
}

impl Machine {
    /// Whether a name means this machine.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name) || self.resource_name.eq_ignore_ascii_case(name)
    }
}
