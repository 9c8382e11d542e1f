//! Network profiles of scale sets and their instances: the configurations from which NICs are made.

use azure_types::ResourceId;
use serde_json::{Value, json};

use azure_engine::document::{
    Object, fill, into_object, items, name, reference, references, stored_reference, take_properties, text,
};
use azure_engine::error::Refusal;
use azure_engine::provider::AzureState;

/// What an IP configuration can be a member of.
const MEMBERSHIPS: [&str; 3] =
    ["applicationSecurityGroups", "loadBalancerBackendAddressPools", "loadBalancerInboundNatPools"];

/// Checks NIC configurations and fills their defaults; references are cut down to ids.
pub(crate) fn normalise(profile: &mut Object, subject: &ResourceId) -> Result<(), Refusal> {
    let configurations = match profile.remove("networkInterfaceConfigurations") {
        None => return Ok(()),
        Some(Value::Array(configurations)) => configurations,
        Some(_) => return Err(bad("networkInterfaceConfigurations must be an array", subject)),
    };
    let single = configurations.len() == 1;
    let mut seen = std::collections::HashSet::new();
    let mut primaries = 0;
    let mut normal = Vec::with_capacity(configurations.len());
    for configuration in configurations {
        let mut configuration = into_object(configuration);
        let given =
            configuration.get("name").and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
        if given.is_empty() || !seen.insert(given) {
            return Err(bad("every network interface configuration needs a name of its own", subject));
        }
        let mut properties = take_properties(&mut configuration);
        properties.remove("provisioningState");
        if single {
            fill(&mut properties, "primary", true);
        }
        primaries += usize::from(properties.get("primary") == Some(&Value::Bool(true)));
        for member in ["enableAcceleratedNetworking", "disableTcpStateTracking", "enableIPForwarding"] {
            fill(&mut properties, member, false);
        }
        let mut dns = properties.remove("dnsSettings").map(into_object).unwrap_or_default();
        fill(&mut dns, "dnsServers", json!([]));
        properties.insert("dnsSettings".into(), Value::Object(dns));
        reference(&mut properties, "networkSecurityGroup")?;
        let ip_configurations = match properties.remove("ipConfigurations") {
            Some(Value::Array(list)) if !list.is_empty() => list,
            _ => return Err(bad("every network interface configuration needs ipConfigurations", subject)),
        };
        let list = ip_configurations
            .into_iter()
            .map(|configuration| normalise_ip(configuration, subject))
            .collect::<Result<Vec<_>, _>>()?;
        properties.insert("ipConfigurations".into(), list.into());
        configuration.insert("properties".into(), Value::Object(properties));
        normal.push(Value::Object(configuration));
    }
    if primaries != 1 {
        return Err(bad("exactly one network interface configuration must be primary", subject));
    }
    profile.insert("networkInterfaceConfigurations".into(), normal.into());
    Ok(())
}

fn normalise_ip(configuration: Value, subject: &ResourceId) -> Result<Value, Refusal> {
    let mut configuration = into_object(configuration);
    if configuration.get("name").and_then(Value::as_str).unwrap_or_default().is_empty() {
        return Err(bad("every IP configuration needs a name", subject));
    }
    let mut properties = take_properties(&mut configuration);
    fill(&mut properties, "privateIPAddressVersion", "IPv4");
    let subnet = reference(&mut properties, "subnet")?;
    let v6 = properties.get("privateIPAddressVersion").and_then(Value::as_str) == Some("IPv6");
    if subnet.is_none() && !v6 {
        return Err(bad("every IP configuration needs a subnet", subject));
    }
    for member in MEMBERSHIPS {
        references(&mut properties, member)?;
        if properties.get(member).is_some_and(|list| list.as_array().is_some_and(Vec::is_empty)) {
            properties.remove(member);
        }
    }
    configuration.insert("properties".into(), Value::Object(properties));
    Ok(Value::Object(configuration))
}

fn bad(why: &str, subject: &ResourceId) -> Refusal {
    Refusal::invalid_parameter("networkProfile", format!("Network profile of {subject}: {why}."))
}

/// Checks that each network interface may be in its subnets and in all pools that it is to be in; `interface`
/// gives its id by its name, or the scale set whose model it stands in.
pub(crate) fn check(
    azure: &AzureState,
    profile: &Value,
    interface: impl Fn(&str) -> ResourceId,
) -> Result<(), Refusal> {
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
            return Err(Refusal::network(
                400,
                "VMScaleSetIpConfigurationsOnSameNicCannotUseDifferentSubnets",
                format!(
                    "IP configurations of network interface {interface} cannot be in different subnets, such as {other}."
                ),
            ));
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
