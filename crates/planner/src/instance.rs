//! Machines: their identity, and what they tell about their nodes.

use std::net::IpAddr;

use azure_types::{
    InterfaceIpConfigurationProperties, NetworkInterface, ResourceId, ScaleSet, ScaleSetInstance, Word,
};
use k8s::NodeAddress;

use crate::cluster::Cluster;
use crate::scale_set::is_one_of;

/// What provider ids begin with.
const PREFIX: &str = "azure://";
/// The provider namespace of machines.
const COMPUTE: &str = "Microsoft.Compute";
/// How many characters of a node's name are its instance id.
const SUFFIX_LENGTH: usize = 6;

/// The name of one machine of a uniform scale set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InstanceName {
    /// The scale set's id.
    pub scale_set: ResourceId,
    /// The instance's number in it.
    pub instance_id: String,
}

impl InstanceName {
    /// The instance's resource id.
    pub fn id(&self) -> ResourceId {
        self.scale_set.child("virtualMachines", &self.instance_id)
    }
}

/// What a node's provider id names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderId {
    /// A machine of a uniform scale set.
    Instance(InstanceName),
    /// A machine of its own (or of a flexible scale set).
    Machine(ResourceId),
    /// Nothing that Azure manages.
    Other,
}

/// Why a machine cannot be described.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescribeError {
    /// The zone is no number.
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

/// A machine as its node should describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceFacts {
    /// `azure://` and the machine's id with the resource group in lower case.
    pub provider_id: String,
    /// The machine's size; empty where Azure does not say.
    pub instance_type: String,
    /// `<region>-<number>`, or the fault domain's number outside zones.
    pub zone: String,
    /// The region in lower case.
    pub region: String,
    /// Internal addresses, host name, external addresses, in this order; of two families, the primary one
    /// comes first.
    pub addresses: Vec<NodeAddress>,
}

/// The parts of a provider id that names a machine, as they are spelled.
struct Parts<'a> {
    path: &'a str,
    subscription: &'a str,
    group: &'a str,
    /// The uniform scale set; absent for a machine of its own.
    scale_set: Option<&'a str>,
    machine: &'a str,
}

/// Takes a provider id apart; the words of its path compare without regard to case.
fn parts(text: &str) -> Option<Parts<'_>> {
    let path = text.strip_prefix(PREFIX)?;
    let mut segments = path.strip_prefix('/')?.split('/');
    let mut value = |word: &str| {
        segments.next().filter(|segment| segment.eq_ignore_ascii_case(word)).and_then(|_| segments.next())
    };
    let (subscription, group) = (value("subscriptions")?, value("resourceGroups")?);
    value("providers").filter(|namespace| namespace.eq_ignore_ascii_case(COMPUTE))?;
    let kind = segments.next()?;
    let name = segments.next()?;
    let (scale_set, machine) = if kind.eq_ignore_ascii_case("virtualMachineScaleSets") {
        segments.next().filter(|kind| kind.eq_ignore_ascii_case("virtualMachines"))?;
        (Some(name), segments.next()?)
    } else {
        (None, Some(name).filter(|_| kind.eq_ignore_ascii_case("virtualMachines"))?)
    };
    let is_whole = segments.next().is_none() && ResourceId::is_valid(path);
    is_whole.then_some(Parts { path, subscription, group, scale_set, machine })
}

/// Whether a provider id names a machine of Azure's.
pub(crate) fn names_machine(text: &str) -> bool {
    parts(text).is_some()
}

/// Reads a provider id. The words of the path compare without regard to case.
pub fn parse_provider_id(text: &str) -> ProviderId {
    let Some(Parts { path, subscription, group, scale_set, machine }) = parts(text) else {
        return ProviderId::Other;
    };
    let Some(set) = scale_set else {
        return ResourceId::parse(path).map_or(ProviderId::Other, ProviderId::Machine);
    };
    let group = ResourceId::group(subscription, group);
    let scale_set = group.resource(COMPUTE, "virtualMachineScaleSets", set);
    // Older releases wrote `<scale set>_<number>`.
    let prefixed = machine.rsplit_once('_').filter(|(prefix, _)| prefix.eq_ignore_ascii_case(set));
    let instance_id = prefixed.map_or(machine, |(_, number)| number).to_owned();
    ProviderId::Instance(InstanceName { scale_set, instance_id })
}

/// The provider id of a machine: its resource id with the resource group in lower case.
pub fn provider_id(id: &ResourceId) -> String {
    let mut lower_next = false;
    let segments: Vec<String> = id
        .as_str()
        .split('/')
        .map(|segment| {
            let lower = std::mem::replace(&mut lower_next, segment.eq_ignore_ascii_case("resourceGroups"));
            if lower { segment.to_ascii_lowercase() } else { segment.to_owned() }
        })
        .collect();
    format!("{PREFIX}{}", segments.join("/"))
}

/// The instance id in a node's name, where the name is one that this scale set gives: the set's prefix and
/// six digits of base 36.
pub fn instance_id_of_node_name(node_name: &str, scale_set: &ScaleSet) -> Option<String> {
    let split = node_name.len().checked_sub(SUFFIX_LENGTH)?;
    let (prefix, digits) = node_name.split_at_checked(split)?;
    let number = u64::from_str_radix(digits, 36).ok().filter(|_| !digits.starts_with('+'))?;
    let profile = scale_set.properties.as_ref().and_then(|p| p.virtual_machine_profile.as_ref());
    let configured =
        profile.and_then(|p| p.os_profile.as_ref()).and_then(|p| p.computer_name_prefix.as_deref());
    let own = configured.filter(|prefix| !prefix.is_empty()).or(scale_set.name.as_deref())?;
    own.eq_ignore_ascii_case(prefix).then(|| number.to_string())
}

/// The machines that a node's name may stand for, in order of their ids. Several scale sets may give their
/// machines names with the same prefix, so this is a guess until the machine itself says what it is called
/// ([`is_called`]).
pub fn candidates_for_node_name(node_name: &str, scale_sets: &[ScaleSet]) -> Vec<InstanceName> {
    let candidate = |set: &ScaleSet| {
        let instance_id = instance_id_of_node_name(node_name, set)?;
        Some(InstanceName { scale_set: set.id.clone()?, instance_id })
    };
    let mut found: Vec<InstanceName> = scale_sets.iter().filter_map(candidate).collect();
    found.sort_by(|a, b| a.scale_set.cmp(&b.scale_set));
    found
}

/// Whether a machine's host name is the node's name.
pub fn is_called(instance: &ScaleSetInstance, node_name: &str) -> bool {
    let profile = instance.properties.as_ref().and_then(|p| p.os_profile.as_ref());
    let name = profile.and_then(|profile| profile.computer_name.as_deref());
    name.is_some_and(|name| name.eq_ignore_ascii_case(node_name))
}

/// The power state in an instance's view, as Azure spells it behind `PowerState/`; `unknown` where there
/// is none.
pub fn power_state(instance: &ScaleSetInstance) -> &str {
    let view = instance.properties.as_ref().and_then(|p| p.instance_view.as_ref());
    let codes = view.iter().flat_map(|view| view.statuses.iter().flatten()).filter_map(|s| s.code.as_deref());
    codes
        .filter_map(|code| code.split_once('/'))
        .find(|(kind, _)| kind.eq_ignore_ascii_case("PowerState"))
        .map_or("unknown", |(_, state)| state)
}

fn provisioning_state(instance: &ScaleSetInstance) -> &str {
    let state = instance.properties.as_ref().and_then(|p| p.provisioning_state.as_ref());
    state.map(Word::as_str).unwrap_or_default()
}

/// Whether Azure is deleting the machine: to the cluster it is gone already.
pub fn is_being_deleted(instance: &ScaleSetInstance) -> bool {
    provisioning_state(instance).eq_ignore_ascii_case("Deleting")
}

/// Whether the machine is off and nothing is happening to it.
pub fn is_shut_down(instance: &ScaleSetInstance) -> bool {
    let power = Word::from(power_state(instance));
    provisioning_state(instance).eq_ignore_ascii_case("Succeeded")
        && is_one_of(&power, &["stopped", "deallocated", "deallocating"])
}

/// Whether the machine cannot take part in load balancing now. Where lists come without power states by
/// configuration, machines count as running.
pub fn is_inactive(cluster: &Cluster, instance: &ScaleSetInstance) -> bool {
    let state = Word::from(provisioning_state(instance));
    if is_one_of(&state, &["Deleting", "Unknown"]) {
        return true;
    }
    let has_view = instance.properties.as_ref().is_some_and(|p| p.instance_view.is_some());
    if !has_view && cluster.config.list_vmss_virtual_machines_without_instance_view {
        return false;
    }
    let power = Word::from(power_state(instance));
    is_one_of(&power, &["unknown", "stopped", "stopping", "deallocated", "deallocating"])
}

/// The addresses of the primary interface, at most one for each family: the primary one first.
fn addresses_of(interfaces: &[NetworkInterface]) -> Vec<&InterfaceIpConfigurationProperties> {
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

/// Describes a machine for its node. `interfaces` are the machine's; a public address is given if the
/// interface's document holds the public IP itself and not just its id.
///
/// # Errors
///
/// Where Azure's document does not say where the machine is.
pub fn describe(
    cluster: &Cluster,
    node_name: &str,
    instance: &ScaleSetInstance,
    interfaces: &[NetworkInterface],
) -> Result<InstanceFacts, DescribeError> {
    let id = instance.id.as_ref().ok_or_else(|| DescribeError::NoId { node: node_name.to_owned() })?;
    let region = instance.location.as_deref().unwrap_or(&cluster.config.location).to_lowercase();
    let zone = match instance.zones.as_deref().and_then(<[String]>::first) {
        Some(zone) => {
            let number: u32 = zone
                .parse()
                .map_err(|_| DescribeError::Zone { instance: id.to_string(), zone: zone.clone() })?;
            format!("{region}-{number}")
        }
        None => {
            let view = instance.properties.as_ref().and_then(|p| p.instance_view.as_ref());
            let domain = view
                .and_then(|view| view.platform_fault_domain)
                .ok_or_else(|| DescribeError::NoZone { instance: id.to_string() })?;
            domain.to_string()
        }
    };
    let address =
        |kind: &str, address: &str| NodeAddress { kind: kind.to_owned(), address: address.to_owned() };
    let configurations = addresses_of(interfaces);
    let private = configurations.iter().filter_map(|one| one.private_ip_address.as_deref());
    let public = configurations
        .iter()
        .filter_map(|one| one.public_ip_address.as_ref()?.rest.get("properties")?.get("ipAddress")?.as_str());
    let mut addresses: Vec<NodeAddress> = private.map(|ip| address("InternalIP", ip)).collect();
    addresses.push(address("Hostname", node_name));
    addresses.extend(public.filter(|ip| !ip.is_empty()).map(|ip| address("ExternalIP", ip)));
    Ok(InstanceFacts {
        provider_id: provider_id(id),
        instance_type: instance.sku.as_ref().and_then(|sku| sku.name.clone()).unwrap_or_default(),
        zone,
        region,
        addresses,
    })
}
