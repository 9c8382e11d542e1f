//! The properties of a machine for its node.

use std::net::IpAddr;

use azure_types::{InterfaceIpConfigurationProperties, NetworkInterface, ResourceId, VirtualMachine};
use k8s::NodeAddress;

use crate::document::MachineDocument;
use crate::id::provider_id;
use crate::name::zone_label;

/// The fault domain of a machine outside of scale sets that does not report its own.
const NO_FAULT_DOMAIN: i32 = 0;

/// Why a machine cannot be described.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescribeError {
    /// The zone is not a number.
    #[error("failed to parse zone `{zone}` of instance {instance}: Azure's zones are numbers")]
    Zone {
        /// The instance's id.
        instance: String,
        /// The zone as Azure gave it.
        zone: String,
    },
    /// Neither a zone nor a fault domain is known.
    #[error("failed to get zone info of instance {instance}: it has neither a zone nor a fault domain")]
    NoZone {
        /// The instance's id.
        instance: String,
    },
    /// The document has no id.
    #[error("instance of node {node} has no resource id")]
    NoId {
        /// The node's name.
        node: String,
    },
}

/// The properties of a machine for its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceFacts {
    /// `azure://` and the machine's id with the resource group in lower case.
    pub provider_id: String,
    /// The machine's size; empty if Azure does not report it.
    pub instance_type: String,
    /// `<region>-<number>`, or the fault domain's number outside zones.
    pub zone: String,
    /// The region in lower case.
    pub region: String,
    /// Internal addresses, host name, external addresses, in this order; with two families, the primary one first.
    pub addresses: Vec<NodeAddress>,
}

/// The addresses of the primary interface, at most one for each family: the primary one first.
fn addresses_of<'a>(interfaces: &[&'a NetworkInterface]) -> Vec<&'a InterfaceIpConfigurationProperties> {
    let is_primary = |flag: Option<bool>| flag == Some(true);
    let interface = match interfaces {
        [only] => Some(only),
        several => several.iter().find(|nic| nic.properties.as_ref().is_some_and(|p| is_primary(p.primary))),
    };
    let configurations = interface
        .and_then(|interface| interface.properties.as_ref()?.ip_configurations.as_deref())
        .unwrap_or_default();
    let all: Vec<_> = configurations.iter().filter_map(|one| one.properties.as_ref()).collect();
    let primary = match all[..] {
        [only] => Some(only),
        _ => all.iter().copied().find(|one| is_primary(one.primary)),
    };
    let family = |one: &InterfaceIpConfigurationProperties| {
        let address: Option<IpAddr> = one.private_ip_address.as_deref()?.parse().ok();
        address.map(|address| address.is_ipv6())
    };
    let Some(primary) = primary else { return Vec::new() };
    let other = all
        .iter()
        .copied()
        .find(|one| matches!((family(one), family(primary)), (Some(one), Some(first)) if one != first));
    [Some(primary), other].into_iter().flatten().collect()
}

/// The ids of the interfaces that describe a machine: the primary one, or all if none is marked.
pub fn described_interfaces(machine: &impl MachineDocument) -> Vec<&ResourceId> {
    let all = machine.interfaces();
    let primary = all.iter().find(|nic| nic.properties.as_ref().and_then(|p| p.primary) == Some(true));
    primary.map_or(all, std::slice::from_ref).iter().filter_map(|nic| nic.id.as_ref()).collect()
}

/// Whether [`describe`] needs the fault domain of a virtual machine: machines of sets have one, which replaces the zone
/// outside of zones.
pub fn needs_fault_domain(machine: &VirtualMachine) -> bool {
    let is_of_set = machine.is_of_scale_set()
        || machine.properties.as_ref().is_some_and(|properties| properties.availability_set.is_some());
    is_of_set && machine.zones().is_empty() && machine.view().is_none()
}

fn zone_of(
    machine: &impl MachineDocument,
    fault_domain: Option<i32>,
    id: &ResourceId,
    region: &str,
) -> Result<String, DescribeError> {
    if let Some(zone) = machine.zones().first() {
        let number =
            zone.parse().map_err(|_| DescribeError::Zone { instance: id.to_string(), zone: zone.clone() })?;
        return Ok(zone_label(region, number));
    }
    let domain = machine.view().and_then(|view| view.platform_fault_domain).or(fault_domain);
    let alone = (!machine.is_of_scale_set()).then_some(NO_FAULT_DOMAIN);
    let domain = domain.or(alone).ok_or_else(|| DescribeError::NoZone { instance: id.to_string() })?;
    Ok(domain.to_string())
}

/// Describes a machine for its node. `fault_domain` is the known fault domain if the document has no view; `interfaces`
/// are the machine's; `public` returns the address of a public IP by its id; `location` is the cluster's region, for a
/// machine that does not report its own.
///
/// # Errors
///
/// If Azure's document does not say where the machine is.
pub fn describe(
    node_name: &str,
    machine: &impl MachineDocument,
    fault_domain: Option<i32>,
    interfaces: &[&NetworkInterface],
    public: &dyn Fn(&ResourceId) -> Option<String>,
    location: &str,
) -> Result<InstanceFacts, DescribeError> {
    let id = machine.id().ok_or_else(|| DescribeError::NoId { node: node_name.to_owned() })?;
    let region = machine.location().unwrap_or(location).to_lowercase();
    let zone = zone_of(machine, fault_domain, id, &region)?;
    let address = |kind: &str, address: &str| NodeAddress { kind: kind.into(), address: address.to_owned() };
    let configurations = addresses_of(interfaces);
    let private = configurations.iter().filter_map(|one| one.private_ip_address.as_deref());
    let external =
        configurations.iter().filter_map(|one| public(one.public_ip_address.as_ref()?.id.as_ref()?));
    let mut addresses: Vec<NodeAddress> = private.map(|ip| address("InternalIP", ip)).collect();
    addresses.push(address("Hostname", node_name));
    addresses.extend(external.filter(|ip| !ip.is_empty()).map(|ip| address("ExternalIP", &ip)));
    Ok(InstanceFacts {
        provider_id: provider_id(id),
        instance_type: machine.size().unwrap_or_default().to_owned(),
        zone,
        region,
        addresses,
    })
}
