//! Network profiles of scale sets and their instances: the configurations from which NICs are made.

use azure_types::ResourceId;
use serde_json::Value;

use azure_engine::document::{fill_at, flag, items, items_mut, name, stored_reference, text};
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Refusal, Result};

/// What an IP configuration can be a member of.
const MEMBERSHIPS: [&str; 3] =
    ["applicationSecurityGroups", "loadBalancerBackendAddressPools", "loadBalancerInboundNatPools"];

/// Checks NIC configurations, whose members are as their table says, and fills what depends on others.
pub(crate) fn normalise(profile: &mut Value, subject: &ResourceId) -> Result<()> {
    let bad = |why: &str| {
        Refusal::invalid_parameter("networkProfile", format!("Network profile of {subject}: {why}."))
    };
    let list = profile.get_mut("networkInterfaceConfigurations").and_then(Value::as_array_mut);
    let Some(list) = list else { return Ok(()) };
    let single = list.len() == 1;
    for nic in &mut *list {
        if single {
            fill_at(nic, "properties/primary", true);
        }
        for ip in items_mut(nic, "properties/ipConfigurations") {
            if subnet(ip).is_none() && !is_v6(ip) {
                return Err(bad("every IP configuration needs a subnet"));
            }
            if let Some(ip) = ip.get_mut("properties").and_then(Value::as_object_mut) {
                ip.retain(|member, list| {
                    !MEMBERSHIPS.contains(&member.as_str())
                        || list.as_array().is_none_or(|list| !list.is_empty())
                });
            }
        }
    }
    let primaries = list.iter().filter(|nic| flag(nic, "properties/primary")).count();
    if primaries != 1 {
        return Err(bad("exactly one network interface configuration must be primary"));
    }
    Ok(())
}

/// Checks that each network interface may be in its subnets and in all its pools; `interface` gives its id by its name,
/// or the scale set whose model it stands in.
pub(crate) fn check(
    azure: &AzureState,
    profile: &Value,
    interface: impl Fn(&str) -> ResourceId,
) -> Result<()> {
    for nic in items(profile, "networkInterfaceConfigurations") {
        let ips = items(nic, "properties/ipConfigurations");
        let joined: Vec<ResourceId> = ips
            .iter()
            .flat_map(|ip| items(ip, "properties/loadBalancerBackendAddressPools"))
            .filter_map(|pool| stored_reference(pool, "id"))
            .collect();
        let interface = interface(name(nic));
        let subnets: Vec<ResourceId> = ips.iter().filter_map(subnet).collect();
        for subnet in &subnets {
            crate::network::check_undelegated(azure, subnet, &interface)?;
        }
        if let Some(other) = subnets.iter().find(|other| subnets.first() != Some(*other)) {
            return Err(Code::ours(400, "VMScaleSetIpConfigurationsOnSameNicCannotUseDifferentSubnets")
                .details(format_args!(
                    "IP configurations of network interface {interface} cannot be in different subnets, \
             such as {other}."
                )));
        }
        crate::network::check_memberships(azure, &interface, &joined)?;
    }
    Ok(())
}

/// The (NIC configuration, IP configuration) pairs of a stored profile.
pub(crate) fn ip_configurations(profile: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    items(profile, "networkInterfaceConfigurations")
        .iter()
        .flat_map(|nic| items(nic, "properties/ipConfigurations").iter().map(move |ip| (nic, ip)))
}

/// Pools and groups that one IP configuration joins.
pub(crate) fn memberships(ip_configuration: &Value) -> impl Iterator<Item = ResourceId> {
    MEMBERSHIPS
        .into_iter()
        .flat_map(|member| items(ip_configuration, &format!("properties/{member}")).to_vec())
        .filter_map(|item| stored_reference(&item, "id"))
}

/// The subnet of one IP configuration.
pub(crate) fn subnet(ip_configuration: &Value) -> Option<ResourceId> {
    stored_reference(ip_configuration, "properties/subnet/id")
}

/// Whether one IP configuration is for IPv6.
pub(crate) fn is_v6(ip_configuration: &Value) -> bool {
    text(ip_configuration, "properties/privateIPAddressVersion") == Some("IPv6")
}

/// The key under which an instance remembers the address of an IP configuration.
pub(crate) fn address_key(nic: &Value, ip_configuration: &Value) -> String {
    format!("{}/{}", name(nic), name(ip_configuration)).to_ascii_lowercase()
}
