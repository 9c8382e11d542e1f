//! Subnets, which live inside their virtual network (Azure REST reference, "Subnets").

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::Value;

use super::delegation;
use crate::network::shared::addresses::prefixes_of;
use crate::network::shared::codes::PREFIX_FORMAT;
use azure_engine::document::{
    Object, enumeration, into_object, items, known_members, reference, references as listed_references,
    stored_reference, strip, take_properties,
};
use azure_engine::error::{Code, Refusal};
use azure_engine::reference::Reference;

const OUTSIDE_NETWORK: Code = Code::azures(400, "NetcfgSubnetRangeOutsideVnet");
const SHARED_WITH_OUTBOUND: Code = Code::ours(400, "SharingScopeNeedsNoDefaultOutboundAccess");
const SUBNETS_OVERLAP: Code = Code::azures(400, "NetcfgSubnetRangesOverlap");
const WRONG_NOTATION: Code = Code::azures(400, "InvalidCIDRNotation");
const WRONG_SIZE: Code = Code::azures(400, "NetcfgInvalidSubnet");

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
pub(crate) fn normalise(network: &ResourceId, location: &str, mut child: Object) -> Result<Object, Refusal> {
    let id = network.child("subnets", child.get("name").and_then(Value::as_str).unwrap_or_default());
    let mut properties = take_properties(&mut child);
    known_members(&mut properties, &MEMBERS, "Subnet")?;
    strip(&mut properties, &DERIVED);
    let delegations = delegation::delegations(&id, &mut properties)?;
    properties.insert("delegations".into(), delegations.into());
    delegation::endpoints(&id, location, &mut properties)?;
    enumeration(&mut properties, "sharingScope", &["Tenant", "DelegatedServices"], false)?;
    SHARED_WITH_OUTBOUND.details_when(
        properties.contains_key("sharingScope")
            && properties.get("defaultOutboundAccess") != Some(&Value::Bool(false)),
        format_args!("Subnet {id} can have a sharingScope only while its defaultOutboundAccess is false."),
    )?;
    if listed_references(&mut properties, "serviceEndpointPolicies")?.is_empty() {
        properties.remove("serviceEndpointPolicies");
    }
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
    check_notation(&id, &document)?;
    let prefixes = prefixes_of(&document);
    PREFIX_FORMAT.details_when(
        prefixes.is_empty(),
        format_args!("Subnet {id} needs an addressPrefix in CIDR notation."),
    )?;
    for prefix in &prefixes {
        if *prefix != prefix.trunc() {
            return Err(wrong_notation(&id, prefix));
        }
    }
    Ok(into_object(document))
}

/// Refuses subnets outside the address space of their network, also those that were there before the space changed.
pub(crate) fn check_inside(network: &ResourceId, space: &[IpNet], subnets: &[Value]) -> Result<(), Refusal> {
    let inside = |prefix: &IpNet| space.iter().any(|space| space.contains(prefix));
    match subnets.iter().find(|subnet| !prefixes_of(subnet).iter().all(inside)) {
        None => Ok(()),
        Some(subnet) => Err(OUTSIDE_NETWORK.details(format_args!(
                "Subnet '{}' is not valid because its IP address range is outside the IP address range of virtual network \
                 '{}'.",
                azure_engine::document::name(subnet),
                network.name()
            ))),
    }
}

/// A prefix with bits set behind its length.
pub(crate) fn wrong_notation(id: &ResourceId, prefix: &IpNet) -> Refusal {
    WRONG_NOTATION.details(format_args!(
            "The address prefix {prefix} of {id} has an invalid CIDR notation. For the given prefix length, the address \
             prefix should be {}.",
            prefix.trunc()
        ))
}

/// Every prefix is one, and one of IPv6 is of the size that Azure's networks have.
fn check_notation(id: &ResourceId, document: &Value) -> Result<(), Refusal> {
    let single = azure_engine::document::at(document, "properties/addressPrefix");
    for given in single.into_iter().chain(items(document, "properties/addressPrefixes")) {
        let text = given.as_str().unwrap_or_default();
        let Ok(prefix) = text.parse::<IpNet>() else {
            return Err(PREFIX_FORMAT.details(format_args!(
                "Address prefix '{text}' of {id} is not formatted correctly: it must be in CIDR notation."
            )));
        };
        let fits = match prefix {
            IpNet::V4(prefix) => prefix.prefix_len() <= 29,
            IpNet::V6(prefix) => prefix.prefix_len() == 64,
        };
        if !fits {
            let sizes = "IPv4 prefixes may be /29 or larger, IPv6 prefixes must be /64";
            return Err(WRONG_SIZE.details(format_args!(
                "Subnet '{}' is not valid in virtual network: {prefix} has a wrong size; {sizes}.",
                id.name()
            )));
        }
    }
    Ok(())
}

/// Refuses subnets that overlap.
pub(crate) fn check_overlaps(subnets: &[Value]) -> Result<(), Refusal> {
    let mut seen: Vec<(&str, IpNet)> = Vec::new();
    for subnet in subnets {
        for prefix in prefixes_of(subnet) {
            let clash = seen.iter().find(|(_, other)| other.contains(&prefix) || prefix.contains(other));
            if let Some((other, _)) = clash {
                return Err(SUBNETS_OVERLAP.details(format_args!(
                        "Subnet '{}' is not valid because its IP address range overlaps with that of an existing subnet \
                         '{other}'.",
                        azure_engine::document::name(subnet)
                    )));
            }
            seen.push((azure_engine::document::name(subnet), prefix));
        }
    }
    Ok(())
}

/// What a subnet points at.
pub(crate) fn references(id: &ResourceId, subnet: &Value) -> Vec<Reference> {
    let policies = items(subnet, "properties/serviceEndpointPolicies").iter();
    ["networkSecurityGroup", "routeTable", "natGateway"]
        .iter()
        .filter_map(|member| stored_reference(subnet, &format!("properties/{member}/id")))
        .chain(policies.filter_map(|policy| stored_reference(policy, "id")))
        .map(|to| Reference::uses(id, to))
        .collect()
}
