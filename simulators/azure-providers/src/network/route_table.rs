//! Route tables (Azure REST reference, "Route Tables").

use std::collections::HashMap;
use std::net::IpAddr;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::Value;

use super::shared::{children::each_child, codes::PREFIX_FORMAT, protocol::protocol};
use azure_engine::document::{Object, take_properties};
use azure_engine::provider::{AzureState, ChildCollection, Proposal, Protocol, Writing};
use azure_engine::refusal::{Code, Result};
use azure_engine::types::member_table::Holds::{Children, Derived, Flag, Guid, Text, Users, Word};
use azure_engine::types::member_table::Member;

pub(crate) struct RouteTables;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("route_table.json"),
    child_collections: &[ChildCollection { name: "routes", writable: true, back_references: &[] }],
    in_use: Some(|id, _, _| {
        Code::azures(400, "InUseRouteTableCannotBeDeleted")
            .details(format_args!("Route table {} is in use and cannot be deleted.", id.name()))
    }),
    ..protocol("Microsoft.Network/routeTables", "RouteTable")
};

static MEMBERS: [Member; 4] = [
    Member::new("disableBgpRoutePropagation", Flag).or_flag(false),
    Member::new("resourceGuid", Guid),
    Member::new("routes", Children(&ROUTE)).or_empty(),
    Member::new("subnets", Users("subnets")),
];

static ROUTE: [Member; 5] = [
    Member::new("addressPrefix", Text),
    Member::new("hasBgpOverride", Derived),
    Member::new("nextHopIpAddress", Text),
    Member::new("nextHopType", Word(&HOPS, false)),
    Member::new("provisioningState", Derived),
];

const HOPS: [&str; 5] = ["VirtualAppliance", "VnetLocal", "Internet", "VirtualNetworkGateway", "None"];

shape!(RouteTables, PROTOCOL, without Presenting, Acting);

impl Writing for RouteTables {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let id = proposal.id;
        let mut properties = take_properties(&mut proposal.body);
        let (mut prefixes, mut count) = (HashMap::new(), 0);
        for (route, properties) in each_child(id, &mut properties, "routes") {
            let prefix = check_route(&route, properties)?.to_ascii_lowercase();
            count += 1;
            if let Some(other) = prefixes.insert(prefix, route.name().to_owned()) {
                let (name, rule) = (route.name(), "Routes cannot have the same AddressPrefix.");
                return Err(Code::azures(400, "RouteConflict")
                    .details(format_args!("Route: {name} conflicts with Route: {other}. {rule}")));
            }
        }
        let most = azure.limit("network.routesPerTable");
        Code::ours(400, "RouteTableRouteCountLimitReached").details_when(
            count > most,
            format_args!("Cannot create more than {most} routes in route table {id}."),
        )?;
        Ok(proposal.stored(properties))
    }
}

/// Checks a route's next hop and returns its prefix.
fn check_route(id: &ResourceId, properties: &mut Object) -> Result<String> {
    properties.insert("hasBgpOverride".into(), false.into());
    let text = |member: &str| properties.get(member).and_then(Value::as_str).unwrap_or_default();
    let (prefix, hop) = (text("addressPrefix").to_owned(), text("nextHopIpAddress"));
    let is_tag = prefix.starts_with(|c: char| c.is_ascii_alphabetic()) && !prefix.contains([':', '/']);
    PREFIX_FORMAT.details_when(
        prefix.parse::<IpNet>().is_err() && !is_tag,
        format_args!("Route {id} has the address prefix '{prefix}', which is not in CIDR notation."),
    )?;
    let kind = text("nextHopType");
    Code::ours(400, "InvalidRouteNextHopType")
        .details_when(kind.is_empty(), format_args!("Route {id} has no nextHopType."))?;
    Code::ours(400, "InvalidRouteNextHopIpAddress").details_when(
        kind == "VirtualAppliance" && hop.parse::<IpAddr>().is_err(),
        format_args!("Route {id} has the next hop '{hop}', which is not an IP address."),
    )?;
    Code::ours(400, "RouteNextHopIpAddressNotAllowed").details_when(
        kind != "VirtualAppliance" && !hop.is_empty(),
        format_args!("Route {id} has a next hop address, which type {kind} forbids."),
    )?;
    if hop.is_empty() {
        properties.remove("nextHopIpAddress");
    }
    Ok(prefix)
}
