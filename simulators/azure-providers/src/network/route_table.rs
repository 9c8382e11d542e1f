//! Route tables (Azure REST reference, "Route Tables").

use std::collections::HashMap;
use std::net::IpAddr;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::{Value, json};

use super::shared::codes::PREFIX_FORMAT;
use super::shared::{
    checks::check_unused, children::take_children, protocol::protocol, resource_guid::resource_guid,
};
use azure_engine::document::{Object, enumeration, fill, known_members, strip, take_properties};
use azure_engine::error::{Code, Refusal};
use azure_engine::provider::{AzureState, ChildCollection, Expand, Proposal, Protocol, Record, ResourceType};

const IN_USE: Code = Code::azures(400, "InUseRouteTableCannotBeDeleted");
const NO_HOP_TYPE: Code = Code::ours(400, "InvalidRouteNextHopType");
const WRONG_HOP: Code = Code::ours(400, "InvalidRouteNextHopIpAddress");
const HOP_NOT_ALLOWED: Code = Code::ours(400, "RouteNextHopIpAddressNotAllowed");
const CONFLICT: Code = Code::azures(400, "RouteConflict");
const TOO_MANY_ROUTES: Code = Code::ours(400, "RouteTableRouteCountLimitReached");

pub(crate) struct RouteTables;

const PROTOCOL: Protocol = Protocol {
    child_collections: &[ChildCollection { name: "routes", writable: true, back_references: &[] }],
    ..protocol("Microsoft.Network/routeTables", "RouteTable")
};

impl ResourceType for RouteTables {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let id = proposal.id;
        let mut properties = take_properties(&mut proposal.body);
        known_members(
            &mut properties,
            &["disableBgpRoutePropagation", "provisioningState", "resourceGuid", "routes", "subnets"],
            "RouteTable",
        )?;
        strip(&mut properties, &["provisioningState", "resourceGuid", "subnets"]);
        resource_guid(azure, &proposal, &mut properties);
        fill(&mut properties, "disableBgpRoutePropagation", false);
        let mut prefixes: HashMap<String, String> = HashMap::new();
        let mut routes = Vec::new();
        for child in take_children(id, &mut properties, "routes")?.unwrap_or_default() {
            let route = normalise(id, child)?;
            let prefix = azure_engine::document::text(&route, "properties/addressPrefix").unwrap_or_default();
            let name = azure_engine::document::name(&route);
            if let Some(other) = prefixes.insert(prefix.to_ascii_lowercase(), name.into()) {
                return Err(CONFLICT.details(format_args!(
                    "Route: {name} conflicts with Route: {other}. Routes cannot have the same AddressPrefix."
                )));
            }
            routes.push(route);
        }
        let most = azure.limit("network.routesPerTable");
        TOO_MANY_ROUTES.details_when(
            routes.len() as u64 > most,
            format_args!("Cannot create more than {most} routes in route table {id}."),
        )?;
        properties.insert("routes".into(), routes.into());
        let mut body = proposal.body;
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn check_delete(&self, azure: &AzureState, record: &Record) -> Result<(), Refusal> {
        check_unused(azure, &record.id, IN_USE, |_| {
            format!("Route table {} is in use and cannot be deleted.", record.id.name())
        })
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        let users: Vec<Value> =
            azure.store.referrers(&record.id).map(|referrer| json!({ "id": referrer.from })).collect();
        if let (false, Some(properties)) =
            (users.is_empty(), document.get_mut("properties").and_then(Value::as_object_mut))
        {
            properties.insert("subnets".into(), users.into());
        }
    }
}

fn normalise(table: &ResourceId, mut child: Object) -> Result<Value, Refusal> {
    let mut properties = take_properties(&mut child);
    known_members(
        &mut properties,
        &["addressPrefix", "hasBgpOverride", "nextHopIpAddress", "nextHopType", "provisioningState"],
        "Route",
    )?;
    strip(&mut properties, &["provisioningState", "hasBgpOverride"]);
    properties.insert("hasBgpOverride".into(), false.into());
    let id = table.child("routes", child.get("name").and_then(Value::as_str).unwrap_or_default());
    enumeration(
        &mut properties,
        "nextHopType",
        &["VirtualAppliance", "VnetLocal", "Internet", "VirtualNetworkGateway", "None"],
        false,
    )?;
    let text = |member: &str| properties.get(member).and_then(Value::as_str).unwrap_or_default();
    let refuse = |code: Code, why: String| Err(code.details(format_args!("Route {id} {why}.")));
    let prefix = text("addressPrefix");
    let is_tag = prefix.starts_with(|c: char| c.is_ascii_alphabetic()) && !prefix.contains([':', '/']);
    if prefix.parse::<IpNet>().is_err() && !is_tag {
        return refuse(
            PREFIX_FORMAT,
            format!("has the address prefix '{prefix}', which is not in CIDR notation"),
        );
    }
    let hop = text("nextHopIpAddress");
    match text("nextHopType") {
        "" => return refuse(NO_HOP_TYPE, "has no nextHopType".into()),
        "VirtualAppliance" if hop.parse::<IpAddr>().is_err() => {
            return refuse(WRONG_HOP, format!("has the next hop '{hop}', which is not an IP address"));
        }
        "VirtualAppliance" => {}
        other if !hop.is_empty() => {
            return refuse(HOP_NOT_ALLOWED, format!("has a next hop address, which type {other} forbids"));
        }
        _ => strip(&mut properties, &["nextHopIpAddress"]),
    }
    child.insert("properties".into(), Value::Object(properties));
    Ok(Value::Object(child))
}
