//! Virtual networks (Azure REST reference, "Virtual Networks").

pub(crate) mod availability;
pub(crate) mod delegation;
pub(crate) mod peering;
pub(crate) mod subnet;

use std::collections::BTreeMap;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::{Value, json};

use crate::network::shared::codes::{ADDRESS_FORMAT, PREFIX_FORMAT};
use crate::network::shared::{
    addresses::prefixes_of,
    checks::{bounded, check_unused},
    children::take_children,
    protocol::protocol,
    resource_guid::resource_guid,
};
use azure_engine::document::{
    Object, enumeration, fill, into_object, items, known_members, name, reference, strip, take_properties,
};
use azure_engine::error::{Code, Refusal};
use azure_engine::provider::{
    AzureState, ChildCollection, Concurrency, Proposal, Protocol, Record, ResourceType,
};
use azure_engine::reference::{Reference, Role, is_of};

const SUBNET_IN_USE: Code = Code::azures(400, "InUseSubnetCannotBeDeleted");
const IN_USE: Code = Code::azures(400, "InUseVirtualNetworkCannotBeDeleted");
const IN_USE_PREFIX_CANNOT_BE_DELETED: Code = Code::ours(400, "InUsePrefixCannotBeDeleted");
const PREFIXES_OVERLAP: Code = Code::ours(400, "VnetAddressPrefixesOverlap");

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

pub(crate) struct VirtualNetworks;

const PROTOCOL: Protocol = Protocol {
    concurrency: Concurrency::Busy,
    child_collections: &[
        ChildCollection { name: "subnets", writable: true, back_references: &[("ipConfigurations", "")] },
        ChildCollection { name: peering::COLLECTION, writable: true, back_references: &[] },
    ],
    // Recorded: a virtual network written again is answered as created.
    update_status: 201,
    ..protocol("Microsoft.Network/virtualNetworks", "VirtualNetwork")
};

impl ResourceType for VirtualNetworks {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let id = proposal.id;
        let mut properties = take_properties(&mut proposal.body);
        known_members(&mut properties, &MEMBERS, "VirtualNetwork")?;
        strip(&mut properties, &["provisioningState", "resourceGuid", "flowLogs"]);
        resource_guid(azure, &proposal, &mut properties);
        enumeration(&mut properties, "privateEndpointVNetPolicies", &["Disabled", "Basic"], true)?;
        fill(&mut properties, "enableDdosProtection", false);
        check_options(azure, id, &mut properties)?;
        let space = address_space(id, properties.get("addressSpace"))?;
        let peerings = match take_children(id, &mut properties, peering::COLLECTION)? {
            Some(children) => peering::normalise(azure, &proposal, &space, children)?,
            None => {
                items(proposal.old.map_or(&Value::Null, |old| &old.body), "properties/virtualNetworkPeerings")
                    .to_vec()
            }
        };
        properties.insert(peering::COLLECTION.into(), peerings.into());
        let location = proposal.body.get("location").and_then(Value::as_str).unwrap_or_default().to_owned();
        let old_subnets = proposal.old_member("properties/subnets").and_then(Value::as_array);
        let subnets = match take_children(id, &mut properties, "subnets")? {
            Some(subnets) => subnets
                .into_iter()
                .map(|child| subnet::normalise(id, &location, child).map(Value::Object))
                .collect::<Result<Vec<_>, _>>()?,
            None if azure.options.keep_omitted_subnets => old_subnets.cloned().unwrap_or_default(),
            None => Vec::new(),
        };
        subnet::check_inside(id, &space, &subnets)?;
        subnet::check_overlaps(&subnets)?;
        for old in old_subnets.into_iter().flatten() {
            let old_id = id.child("subnets", name(old));
            match subnets.iter().find(|new| name(new).eq_ignore_ascii_case(name(old))) {
                None => check_unused_subnet(azure, &old_id)?,
                Some(new) => {
                    check_allocations(azure, &old_id, &prefixes_of(new))?;
                    delegation::check_change(azure, &old_id, old, new)?;
                }
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
            .chain(items(&record.body, "properties/virtualNetworkPeerings").iter().filter_map(|child| {
                peering::reference_of(&record.id.child(peering::COLLECTION, name(child)), child)
            }))
            .collect()
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, _old: Option<&Value>) {
        peering::note_connections(azure, id);
    }

    fn present_child(
        &self,
        azure: &AzureState,
        record: &Record,
        collection: &str,
        id: &ResourceId,
        properties: &mut Object,
    ) {
        if collection == peering::COLLECTION {
            peering::present(azure, record, id, properties);
        } else {
            delegation::present(id, &azure.etag(record), azure.state_name(record), properties);
            let endpoints: Vec<Value> = azure
                .store
                .referrers(id)
                .filter(|user| is_of(&user.from, "/privateendpoints/"))
                .map(|user| json!({ "id": user.from }))
                .collect();
            if !endpoints.is_empty() {
                properties.insert("privateEndpoints".into(), endpoints.into());
            }
        }
    }

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Option<Result<Value, Refusal>> {
        self.answer(azure, record, below, &BTreeMap::new())
    }

    fn answer(
        &self,
        azure: &AzureState,
        record: &Record,
        below: &[&str],
        query: &BTreeMap<String, String>,
    ) -> Option<Result<Value, Refusal>> {
        availability::answer(azure, record, below, query)
    }

    fn check_delete(&self, azure: &AzureState, record: &Record) -> Result<(), Refusal> {
        let mut users = azure.store.referrers(&record.id);
        if let Some(user) = users.find(|user| user.role != Role::Names) {
            return Err(IN_USE.details(format_args!(
                "Virtual network {} is in use by {} and cannot be deleted.",
                record.id, user.from
            )));
        }
        items(&record.body, "properties/subnets")
            .iter()
            .try_for_each(|child| check_unused_subnet(azure, &record.id.child("subnets", name(child))))
    }
}

fn address_space(id: &ResourceId, space: Option<&Value>) -> Result<Vec<IpNet>, Refusal> {
    let bad = |prefix: &str| {
        PREFIX_FORMAT.details(format_args!(
            "Address prefix '{prefix}' of {id} is not formatted correctly: it must be in CIDR notation."
        ))
    };
    let prefixes = space.map_or(&[] as &[Value], |space| items(space, "addressPrefixes"));
    if prefixes.is_empty() {
        return Err(bad(""));
    }
    let mut all: Vec<IpNet> = Vec::with_capacity(prefixes.len());
    for prefix in prefixes {
        let text = prefix.as_str().unwrap_or_default();
        let prefix = text.parse::<IpNet>().map_err(|_| bad(text))?;
        if prefix != prefix.trunc() {
            return Err(subnet::wrong_notation(id, &prefix));
        }
        if let Some(other) = all.iter().find(|other| other.contains(&prefix) || prefix.contains(*other)) {
            return Err(PREFIXES_OVERLAP.details(format_args!(
                "Address prefixes {other} and {prefix} of virtual network {id} overlap."
            )));
        }
        all.push(prefix);
    }
    Ok(all)
}

/// What a network has beside addresses.
fn check_options(azure: &AzureState, id: &ResourceId, properties: &mut Object) -> Result<(), Refusal> {
    if let Some(plan) = reference(properties, "ddosProtectionPlan")?
        && azure.store.get(&plan).is_none()
    {
        return Err(Refusal::invalid_reference(&plan, id));
    }
    bounded(properties, "flowTimeoutInMinutes", 4..=30, None, id)?;
    if let Some(encryption) = properties.remove("encryption") {
        let mut encryption = into_object(encryption);
        fill(&mut encryption, "enabled", false);
        enumeration(&mut encryption, "enforcement", &["AllowUnencrypted", "DropUnencrypted"], true)?;
        properties.insert("encryption".into(), Value::Object(encryption));
    }
    if let Some(options) = properties.remove("dhcpOptions") {
        let mut options = into_object(options);
        fill(&mut options, "dnsServers", json!([]));
        let wrong = items(&Value::Object(options.clone()), "dnsServers")
            .iter()
            .map(|server| server.as_str().unwrap_or_default().to_owned())
            .find(|server| server.parse::<std::net::IpAddr>().is_err());
        if let Some(server) = wrong {
            return Err(ADDRESS_FORMAT
                .details(format_args!("The DNS server '{server}' of {id} is not a valid IP address.")));
        }
        properties.insert("dhcpOptions".into(), Value::Object(options));
    }
    Ok(())
}

/// A subnet that anybody uses stays.
fn check_unused_subnet(azure: &AzureState, subnet: &ResourceId) -> Result<(), Refusal> {
    check_unused(azure, subnet, SUBNET_IN_USE, |users| {
        format!(
            "Subnet {} is in use by {} and cannot be deleted. In order to delete the subnet, delete all the resources \
             within the subnet. See aka.ms/deletesubnet.",
            subnet.name(),
            users.join(", ")
        )
    })
}

/// Addresses that are in use stay inside the subnet's prefixes.
fn check_allocations(azure: &AzureState, subnet: &ResourceId, prefixes: &[IpNet]) -> Result<(), Refusal> {
    let lost = azure
        .store
        .addresses(subnet)
        .into_iter()
        .flatten()
        .find(|(address, _)| !prefixes.iter().any(|prefix| prefix.contains(*address)));
    match lost {
        None => Ok(()),
        Some((address, owner)) => Err(IN_USE_PREFIX_CANNOT_BE_DELETED.details(format_args!(
            "IpPrefix of subnet {subnet} holds {address}, which is in use by {owner}, and cannot be deleted."
        ))),
    }
}
