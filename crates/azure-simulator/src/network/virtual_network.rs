//! Virtual networks (`spec/arm-wire.md`, 9.5).

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::{Value, json};

use super::address_allocation::prefixes_of;
use super::{API_VERSIONS, resource_guid, subnet, take_children};
use crate::engine::document::{enumeration, fill, items, known_members, name, strip, take_properties};
use crate::engine::error::Refusal;
use crate::engine::kind::{Concurrency, Kind, Nested, Proposal, Reference, Style};
use crate::engine::store::Record;
use crate::engine::world::World;

const MEMBERS: [&str; 16] = [
    "addressSpace",
    "bgpCommunities",
    "ddosProtectionPlan",
    "defaultPublicNatGateway",
    "dhcpOptions",
    "enableDdosProtection",
    "enableVmProtection",
    "encryption",
    "flowLogs",
    "flowTimeoutInMinutes",
    "ipAllocations",
    "privateEndpointVNetPolicies",
    "provisioningState",
    "resourceGuid",
    "subnets",
    "virtualNetworkPeerings",
];

pub(super) struct VirtualNetworks;

impl Kind for VirtualNetworks {
    fn resource_type(&self) -> &'static str {
        "Microsoft.Network/virtualNetworks"
    }

    fn noun(&self) -> &'static str {
        "VirtualNetwork"
    }

    fn api_versions(&self) -> &'static [&'static str] {
        &API_VERSIONS
    }

    fn style(&self) -> Style {
        Style::Network
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Busy
    }

    /// Recorded: a virtual network written again is answered as created.
    fn update_status(&self) -> u16 {
        201
    }

    fn nested(&self) -> &'static [Nested] {
        &[Nested { collection: "subnets", writable: true, back_references: &[("ipConfigurations", "")] }]
    }

    fn write(&self, world: &World, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let id = proposal.id;
        let mut properties = take_properties(&mut proposal.body);
        known_members(&mut properties, &MEMBERS, "VirtualNetwork")?;
        strip(&mut properties, &["provisioningState", "resourceGuid", "flowLogs"]);
        resource_guid(world, &proposal, &mut properties);
        enumeration(&mut properties, "privateEndpointVNetPolicies", &["Disabled", "Basic"], true)?;
        fill(&mut properties, "enableDdosProtection", false);
        fill(&mut properties, "virtualNetworkPeerings", json!([]));
        let space = address_space(id, properties.get("addressSpace"))?;
        let old_subnets = proposal.old_member("properties/subnets").and_then(Value::as_array);
        let subnets = match take_children(id, &mut properties, "subnets")? {
            Some(subnets) => subnets
                .into_iter()
                .map(|child| subnet::normalise(id, &space, child).map(Value::Object))
                .collect::<Result<Vec<_>, _>>()?,
            None if world.options.keep_omitted_subnets => old_subnets.cloned().unwrap_or_default(),
            None => Vec::new(),
        };
        subnet::check_overlaps(&subnets)?;
        for old in old_subnets.into_iter().flatten() {
            let old_id = id.child("subnets", name(old));
            match subnets.iter().find(|new| name(new).eq_ignore_ascii_case(name(old))) {
                None => check_unused(world, &old_id)?,
                Some(new) => check_allocations(world, &old_id, &prefixes_of(new))?,
            }
        }
        properties.insert("subnets".into(), subnets.into());
        let mut body = proposal.body;
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        items(&record.body, "properties/subnets")
            .iter()
            .flat_map(|child| subnet::references(&record.id.child("subnets", name(child)), child))
            .collect()
    }

    fn may_delete(&self, world: &World, record: &Record) -> Result<(), Refusal> {
        if let Some(user) = world.store.referrers(&record.id).next() {
            return Err(Refusal::network(
                400,
                "InUseVirtualNetworkCannotBeDeleted",
                format!("Virtual network {} is in use by {} and cannot be deleted.", record.id, user.from),
            ));
        }
        items(&record.body, "properties/subnets")
            .iter()
            .try_for_each(|child| check_unused(world, &record.id.child("subnets", name(child))))
    }
}

fn address_space(id: &ResourceId, space: Option<&Value>) -> Result<Vec<IpNet>, Refusal> {
    let bad = |prefix: &str| {
        Refusal::network(
            400,
            "InvalidAddressPrefixFormat",
            format!(
                "Address prefix '{prefix}' of {id} is not formatted correctly: it must be in CIDR notation."
            ),
        )
    };
    let prefixes = space.map_or(&[] as &[Value], |space| items(space, "addressPrefixes"));
    if prefixes.is_empty() {
        return Err(bad(""));
    }
    prefixes
        .iter()
        .map(|prefix| {
            let text = prefix.as_str().unwrap_or_default();
            text.parse::<IpNet>().map_err(|_| bad(text))
        })
        .collect()
}

/// A subnet that anybody uses stays.
fn check_unused(world: &World, subnet: &ResourceId) -> Result<(), Refusal> {
    let users: Vec<&str> = world.store.referrers(subnet).map(|referrer| referrer.from.as_str()).collect();
    if users.is_empty() {
        return Ok(());
    }
    Err(Refusal::network(
        400,
        "InUseSubnetCannotBeDeleted",
        format!(
            "Subnet {} is in use by {} and cannot be deleted. In order to delete the subnet, delete all the resources \
             within the subnet. See aka.ms/deletesubnet.",
            subnet.name(),
            users.join(", ")
        ),
    ))
}

/// Addresses that are in use stay inside the subnet's prefixes.
fn check_allocations(world: &World, subnet: &ResourceId, prefixes: &[IpNet]) -> Result<(), Refusal> {
    let lost = world
        .store
        .addresses(subnet)
        .into_iter()
        .flatten()
        .find(|(address, _)| !prefixes.iter().any(|prefix| prefix.contains(*address)));
    match lost {
        None => Ok(()),
        Some((address, owner)) => Err(Refusal::network(
            400,
            "InUsePrefixCannotBeDeleted",
            format!(
                "IpPrefix of subnet {subnet} holds {address}, which is in use by {owner}, and cannot be deleted."
            ),
        )),
    }
}
