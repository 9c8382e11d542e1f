//! Subnets, which live inside their virtual network (Azure REST reference, "Subnets").

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::{Value, json};

use super::delegation;
use crate::network::shared::addresses::prefixes_of;
use crate::network::shared::codes::PREFIX_FORMAT;
use azure_engine::document::{Object, at, items, name};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::types::member_table::Holds::{
    Anything, Children, Derived, Flag, Objects, Text, Texts, Users, Uses, UsesAll, Word,
};
use azure_engine::types::member_table::Member;

const LINK_POLICIES: [&str; 2] = ["Enabled", "Disabled"];
const ENDPOINT_POLICIES: [&str; 4] =
    ["Disabled", "Enabled", "NetworkSecurityGroupEnabled", "RouteTableEnabled"];

pub(super) static MEMBERS: [Member; 23] = [
    Member::new("addressPrefix", Text),
    Member::new("addressPrefixes", Texts),
    Member::new("applicationGatewayIPConfigurations", Anything),
    Member::new("defaultOutboundAccess", Flag),
    Member::new("delegations", Children(&delegation::MEMBERS)).or_empty(),
    Member::new("ipAllocations", Anything),
    Member::new("ipConfigurationProfiles", Derived),
    Member::new("ipConfigurations", Derived),
    Member::new("ipamPoolPrefixAllocations", Anything),
    Member::new("natGateway", Uses("natGateways")),
    Member::new("networkSecurityGroup", Uses("networkSecurityGroups")),
    Member::new("privateEndpointNetworkPolicies", Word(&ENDPOINT_POLICIES, true)),
    Member::new("privateEndpoints", Users("privateEndpoints")),
    Member::new("privateLinkServiceNetworkPolicies", Word(&LINK_POLICIES, true)),
    Member::new("provisioningState", Derived),
    Member::new("purpose", Derived),
    Member::new("resourceNavigationLinks", Derived),
    Member::new("routeTable", Uses("routeTables")),
    Member::new("serviceAssociationLinks", Derived),
    Member::new("serviceEndpointPolicies", UsesAll("serviceEndpointPolicies")).none_if_empty(),
    Member::new("serviceEndpoints", Objects(&delegation::ENDPOINT)),
    Member::new("serviceGateway", Anything),
    Member::new("sharingScope", Word(&["Tenant", "DelegatedServices"], false)),
];

/// Checks a subnet.
pub(super) fn check(id: &ResourceId, location: &str, properties: &mut Object) -> Result<()> {
    delegation::check(id, properties)?;
    delegation::locate_endpoints(id, location, properties)?;
    Code::ours(400, "SharingScopeNeedsNoDefaultOutboundAccess").details_when(
        properties.contains_key("sharingScope")
            && properties.get("defaultOutboundAccess") != Some(&Value::Bool(false)),
        format_args!("Subnet {id} can have a sharingScope only while its defaultOutboundAccess is false."),
    )?;
    let document = json!({ "properties": properties });
    check_notation(id, &document)?;
    let prefixes = prefixes_of(&document);
    PREFIX_FORMAT.details_when(
        prefixes.is_empty(),
        format_args!("Subnet {id} needs an addressPrefix in CIDR notation."),
    )?;
    for prefix in &prefixes {
        if *prefix != prefix.trunc() {
            return Err(wrong_notation(id, prefix));
        }
    }
    Ok(())
}

/// Refuses subnets outside the address space of their network, also those that were there before the space changed.
pub(crate) fn check_inside(network: &ResourceId, space: &[IpNet], subnets: &[Value]) -> Result<()> {
    let inside = |prefix: &IpNet| space.iter().any(|space| space.contains(prefix));
    match subnets.iter().find(|subnet| !prefixes_of(subnet).iter().all(inside)) {
        None => Ok(()),
        Some(subnet) => Err(Code::azures(400, "NetcfgSubnetRangeOutsideVnet").details(format_args!(
                "Subnet '{}' is not valid because its IP address range is outside the IP address range of virtual network \
                 '{}'.",
                name(subnet),
                network.name()
            ))),
    }
}

/// A prefix with bits set behind its length.
pub(crate) fn wrong_notation(id: &ResourceId, prefix: &IpNet) -> Refusal {
    Code::azures(400, "InvalidCIDRNotation").details(format_args!(
            "The address prefix {prefix} of {id} has an invalid CIDR notation. For the given prefix length, the address \
             prefix should be {}.",
            prefix.trunc()
        ))
}

/// Checks that every prefix is valid, and that an IPv6 prefix has the size that Azure's networks have.
fn check_notation(id: &ResourceId, document: &Value) -> Result<()> {
    let single = at(document, "properties/addressPrefix");
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
            return Err(Code::azures(400, "NetcfgInvalidSubnet").details(format_args!(
                "Subnet '{}' is not valid in virtual network: {prefix} has a wrong size; {sizes}.",
                id.name()
            )));
        }
    }
    Ok(())
}

/// Refuses subnets that overlap.
pub(crate) fn check_overlaps(subnets: &[Value]) -> Result<()> {
    let mut seen: Vec<(&str, IpNet)> = Vec::new();
    for subnet in subnets {
        for prefix in prefixes_of(subnet) {
            let clash = seen.iter().find(|(_, other)| other.contains(&prefix) || prefix.contains(other));
            if let Some((other, _)) = clash {
                return Err(Code::azures(400, "NetcfgSubnetRangesOverlap").details(format_args!(
                        "Subnet '{}' is not valid because its IP address range overlaps with that of an existing subnet \
                         '{other}'.",
                        name(subnet)
                    )));
            }
            seen.push((name(subnet), prefix));
        }
    }
    Ok(())
}
