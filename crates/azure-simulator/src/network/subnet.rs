//! Subnets, which live inside their virtual network (`spec/arm-wire.md`, 9.5).

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::{Value, json};

use super::address_allocation::prefixes_of;
use crate::engine::document::{
    Object, enumeration, fill, into_object, known_members, reference, stored_reference, strip,
    take_properties,
};
use crate::engine::error::Refusal;
use crate::engine::kind::Reference;

const MEMBERS: [&str; 23] = [
    "addressPrefix",
    "addressPrefixes",
    "applicationGatewayIPConfigurations",
    "defaultOutboundAccess",
    "delegations",
    "ipAllocations",
    "ipConfigurationProfiles",
    "ipConfigurations",
    "ipamPoolPrefixAllocations",
    "natGateway",
    "networkSecurityGroup",
    "privateEndpointNetworkPolicies",
    "privateEndpoints",
    "privateLinkServiceNetworkPolicies",
    "provisioningState",
    "purpose",
    "resourceNavigationLinks",
    "routeTable",
    "serviceAssociationLinks",
    "serviceEndpointPolicies",
    "serviceEndpoints",
    "serviceGateway",
    "sharingScope",
];

/// Members that only the service writes.
const DERIVED: [&str; 7] = [
    "ipConfigurationProfiles",
    "ipConfigurations",
    "privateEndpoints",
    "provisioningState",
    "purpose",
    "resourceNavigationLinks",
    "serviceAssociationLinks",
];

/// Checks a subnet and fills its defaults.
pub(super) fn normalise(network: &ResourceId, space: &[IpNet], mut child: Object) -> Result<Object, Refusal> {
    let mut properties = take_properties(&mut child);
    known_members(&mut properties, &MEMBERS, "Subnet")?;
    strip(&mut properties, &DERIVED);
    fill(&mut properties, "delegations", json!([]));
    enumeration(
        &mut properties,
        "privateEndpointNetworkPolicies",
        &["Disabled", "Enabled", "NetworkSecurityGroupEnabled", "RouteTableEnabled"],
        true,
    )?;
    enumeration(&mut properties, "privateLinkServiceNetworkPolicies", &["Enabled", "Disabled"], true)?;
    for member in ["networkSecurityGroup", "routeTable", "natGateway"] {
        reference(&mut properties, member)?;
    }
    child.insert("properties".into(), Value::Object(properties));
    let document = Value::Object(child);
    let id = network.child("subnets", crate::engine::document::name(&document));
    let prefixes = prefixes_of(&document);
    if prefixes.is_empty() {
        return Err(Refusal::network(
            400,
            "InvalidAddressPrefixFormat",
            format!("Subnet {id} needs an addressPrefix in CIDR notation."),
        ));
    }
    for prefix in &prefixes {
        if *prefix != prefix.trunc() {
            return Err(Refusal::network(
                400,
                "InvalidCIDRNotation",
                format!(
                    "The address prefix {prefix} of {id} has an invalid CIDR notation. For the given prefix length, the address prefix should be {}.",
                    prefix.trunc()
                ),
            ));
        }
        if !space.iter().any(|space| space.contains(prefix)) {
            return Err(Refusal::network(
                400,
                "NetcfgSubnetRangeOutsideVnet",
                format!(
                    "Subnet '{}' is not valid because its IP address range is outside the IP address range of virtual \
                     network '{}'.",
                    id.name(),
                    network.name()
                ),
            ));
        }
    }
    Ok(into_object(document))
}

/// Refuses subnets that overlap.
pub(super) fn check_overlaps(subnets: &[Value]) -> Result<(), Refusal> {
    let mut seen: Vec<(&str, IpNet)> = Vec::new();
    for subnet in subnets {
        for prefix in prefixes_of(subnet) {
            let clash = seen.iter().find(|(_, other)| other.contains(&prefix) || prefix.contains(other));
            if let Some((other, _)) = clash {
                return Err(Refusal::network(
                    400,
                    "NetcfgSubnetRangesOverlap",
                    format!(
                        "Subnet '{}' is not valid because its IP address range overlaps with that of an existing subnet \
                         '{other}'.",
                        crate::engine::document::name(subnet)
                    ),
                ));
            }
            seen.push((crate::engine::document::name(subnet), prefix));
        }
    }
    Ok(())
}

/// What a subnet points at.
pub(super) fn references(id: &ResourceId, subnet: &Value) -> Vec<Reference> {
    ["networkSecurityGroup", "routeTable", "natGateway"]
        .iter()
        .filter_map(|member| stored_reference(subnet, &format!("properties/{member}/id")))
        .map(|to| Reference::uses(id, to))
        .collect()
}
