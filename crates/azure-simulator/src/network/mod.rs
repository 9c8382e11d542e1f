//! The resource provider `Microsoft.Network` (`spec/arm-wire.md`, section 9).

mod address_allocation;
mod backend_pool;
mod budgets;
mod frontend;
mod load_balancer;
mod load_balancing_rule;
mod location_calls;
mod nat_gateway;
mod private_endpoint;
mod private_endpoint_connection;
mod private_link_interface;
mod private_link_service;
mod private_link_target;
mod probe;
mod public_ip;
mod route_table;
mod security_group;
mod security_rule;
mod subnet;
mod virtual_network;

use azure_types::ResourceId;

pub(crate) use address_allocation::{check_room, free_address, subnet_prefixes};

use crate::engine::document::{Object, name};
use crate::engine::error::Refusal;
use crate::engine::kind::{Proposal, Provider};
use crate::engine::world::World;
use crate::listed::Listed;

/// Versions that clients of today use, newest first (section 2.1).
const API_VERSIONS: [&str; 6] =
    ["2025-05-01", "2024-07-01", "2024-05-01", "2022-07-01", "2020-11-01", "2018-11-01"];

pub(crate) fn provider() -> Provider {
    Provider {
        namespace: "Microsoft.Network",
        kinds: vec![
            &virtual_network::VirtualNetworks,
            &security_group::SecurityGroups,
            &public_ip::PublicIpAddresses,
            &load_balancer::LoadBalancers,
            &route_table::RouteTables,
            &nat_gateway::NatGateways,
            &Listed { resource_type: "Microsoft.Network/networkInterfaces", noun: "NetworkInterface" },
            &Listed { resource_type: "Microsoft.Network/publicIPPrefixes", noun: "PublicIpPrefix" },
            &private_link_service::PrivateLinkServices,
            &private_endpoint::PrivateEndpoints,
        ],
        calls: vec![location_calls::answer],
        policies: &budgets::POLICIES,
    }
}

/// Gives a resource its GUID, which it keeps for life.
fn resource_guid(world: &World, proposal: &Proposal<'_>, properties: &mut Object) {
    let guid = proposal.old_member("properties/resourceGuid").cloned().unwrap_or_else(|| {
        world.seed.guid("resource", proposal.id.as_str(), world.store.incarnation(proposal.id)).into()
    });
    properties.insert("resourceGuid".into(), guid);
}

/// Takes a child collection out of `properties`, as objects with a name; refuses two of one name.
fn take_children(
    parent: &ResourceId,
    properties: &mut Object,
    collection: &str,
) -> Result<Option<Vec<Object>>, Refusal> {
    let Some(value) = properties.remove(collection) else { return Ok(None) };
    let serde_json::Value::Array(items) = value else {
        return Err(Refusal::bad_format(format!("Member '{collection}' must be an array.")));
    };
    let mut seen = std::collections::HashSet::new();
    let mut children = Vec::with_capacity(items.len());
    for item in items {
        let child = name(&item).to_owned();
        if child.is_empty()
            || child.contains(['/', '\\', '?', '#', '%', '<', '>', '&', ':'])
            || child.len() > 80
        {
            return Err(Refusal::network(
                400,
                "InvalidResourceName",
                format!(
                    "Resource name '{child}' in {parent}/{collection} is invalid: it must have 1 to 80 characters."
                ),
            ));
        }
        if !seen.insert(child.to_ascii_lowercase()) {
            return Err(Refusal::bad_format(format!(
                "Resource {parent}/{collection}/{child} has a duplicate: names in '{collection}' must be unique."
            ))
            .with_detail("DuplicateResourceName", child));
        }
        let mut item = crate::engine::document::into_object(item);
        item.retain(|member, _| matches!(member.as_str(), "name" | "properties" | "zones"));
        children.push(item);
    }
    Ok(Some(children))
}

/// A whole number between bounds, with a default.
fn bounded(
    properties: &mut Object,
    member: &str,
    range: std::ops::RangeInclusive<i64>,
    default: Option<i64>,
    subject: &ResourceId,
) -> Result<(), Refusal> {
    let value = crate::engine::document::integer(properties, member)?.or(default);
    let Some(value) = value else { return Ok(()) };
    if !range.contains(&value) {
        return Err(Refusal::network(
            400,
            "InvalidPropertyValue",
            format!(
                "Value {value} of '{member}' of {subject} is outside the range {} to {}.",
                range.start(),
                range.end()
            ),
        ));
    }
    properties.insert(member.into(), value.into());
    Ok(())
}
