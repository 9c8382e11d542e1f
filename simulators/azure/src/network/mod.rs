//! The resource provider `Microsoft.Network`.

mod address_allocation;
mod application_security_group;
mod backend_address;
mod backend_pool;
mod budgets;
mod effective_network;
mod frontend;
mod inbound_nat_pool;
mod inbound_nat_rule;
mod ip_configuration;
mod limits;
mod load_balancer;
mod load_balancing_rule;
mod location_calls;
mod members;
mod nat_gateway;
mod network_interface;
mod outbound_rule;
mod pool_membership;
mod private_endpoint;
mod private_endpoint_connection;
mod private_link_interface;
mod private_link_service;
mod private_link_target;
mod probe;
mod public_ip;
mod public_ip_prefix;
mod route_table;
mod rule_conflict;
mod security_group;
mod security_rule;
mod subnet;
mod subnet_availability;
mod subnet_delegation;
mod usage;
mod versions;
mod virtual_network;
mod virtual_network_peering;

use azure_types::ResourceId;

pub(crate) use address_allocation::{check_room, free_address, free_public_address, subnet_prefixes};
pub(crate) use pool_membership::check as check_memberships;
pub(crate) use subnet_delegation::check_undelegated;

use crate::engine::document::{Object, name};
use crate::engine::error::Refusal;
use crate::engine::resource_type::{Concurrency, Proposal, Protocol, Provider, WireDialect};
use crate::engine::state::AzureState;

/// Versions that clients of today use, newest first.
const API_VERSIONS: [&str; 7] =
    ["2025-05-01", "2024-07-01", "2024-05-01", "2022-07-01", "2020-11-01", "2019-03-01", "2018-11-01"];

/// What most of the provider's types have in common.
const fn protocol(resource_type: &'static str, noun: &'static str) -> Protocol {
    Protocol::new(resource_type, noun, &API_VERSIONS, WireDialect::Network, Concurrency::Supersede)
}

pub(crate) fn provider() -> Provider {
    Provider {
        namespace: "Microsoft.Network",
        resource_types: vec![
            &virtual_network::VirtualNetworks,
            &security_group::SecurityGroups,
            &public_ip::PublicIpAddresses,
            &load_balancer::LoadBalancers,
            &route_table::RouteTables,
            &nat_gateway::NatGateways,
            &network_interface::NetworkInterfaces,
            &application_security_group::ApplicationSecurityGroups,
            &public_ip_prefix::PublicIpPrefixes,
            &private_link_service::PrivateLinkServices,
            &private_endpoint::PrivateEndpoints,
        ],
        calls: vec![location_calls::answer],
        extensions: Vec::new(),
        policies: &budgets::POLICIES,
        limits: limits::LIMITS,
        unlimited: limits::UNLIMITED,
        names: limits::NAMES,
        members: members::MEMBERS,
        since: &versions::SINCE,
    }
}

/// Gives a resource its GUID, which it keeps for life.
fn resource_guid(azure: &AzureState, proposal: &Proposal<'_>, properties: &mut Object) {
    let guid = proposal.old_member("properties/resourceGuid").cloned().unwrap_or_else(|| {
        azure.seed.guid("resource", proposal.id.as_str(), azure.store.incarnation(proposal.id)).into()
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

/// Checks the zones of a document: those of the region, each once.
fn check_zones(azure: &AzureState, subject: &ResourceId, document: &mut Object) -> Result<(), Refusal> {
    let Some(zones) = document.get("zones") else { return Ok(()) };
    let Some(zones) = zones.as_array() else {
        return Err(Refusal::bad_format("Member 'zones' must be an array."));
    };
    if zones.is_empty() {
        document.remove("zones");
        return Ok(());
    }
    let known = &azure.options.zones;
    if known.is_empty() {
        return Err(Refusal::network(
            400,
            "ResourceAvailabilityZonesNotSupported",
            format!("Resource {subject} has zones, but its region does not support availability zones."),
        ));
    }
    let mut seen = std::collections::HashSet::new();
    for zone in zones {
        let text = zone.as_str().unwrap_or_default();
        if !known.iter().any(|known| known == text) || !seen.insert(text) {
            return Err(Refusal::network(
                400,
                "InvalidAvailabilityZone",
                format!(
                    "The zone {zone} of resource {subject} is invalid or given twice. The region's zones are {}.",
                    known.join(", ")
                ),
            ));
        }
    }
    Ok(())
}

/// How many resources of a type a subscription has in the region of a proposal.
fn count_in_region(azure: &AzureState, resource_type: &str, proposal: &Proposal<'_>) -> u64 {
    let subscription = ResourceId::subscription(proposal.id.subscription_id());
    let location = proposal.body.get("location");
    let all = azure.store.of_type_below(resource_type, &subscription);
    all.into_iter().filter(|record| record.body.get("location") == location).count() as u64
}

/// Refuses to delete what others point at, in Azure's code and the words that `says` makes of who they are.
fn check_unused(
    azure: &AzureState,
    id: &ResourceId,
    code: &str,
    says: impl FnOnce(&[&str]) -> String,
) -> Result<(), Refusal> {
    let users: Vec<&str> = azure.store.referrers(id).map(|referrer| referrer.from.as_str()).collect();
    if users.is_empty() { Ok(()) } else { Err(Refusal::network(400, code, says(&users))) }
}
