//! NAT gateways.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::checks::check_zones_unchanged;
use super::protocol::protocol;
use super::sku::sku;
use super::{frontend, public_ip_prefix};
use crate::network::checks::{bounded, check_unused, check_zones};
use crate::network::resource_guid::resource_guid;
use azure_engine::document::{
    Object, items, known_members, reference, references, stored_reference, strip, take_properties, text,
};
use azure_engine::error::Refusal;
use azure_engine::provider::{AzureState, Expand, Proposal, Protocol, Record, ResourceType};
use azure_engine::reference::{Reference, is_of};

const RESOURCE_TYPE: &str = "Microsoft.Network/natGateways";

const SOURCES: [&str; 4] =
    ["publicIpAddresses", "publicIpAddressesV6", "publicIpPrefixes", "publicIpPrefixesV6"];

const MEMBERS: [&str; 11] = [
    "idleTimeoutInMinutes",
    "provisioningState",
    "publicIpAddresses",
    "publicIpAddressesV6",
    "publicIpPrefixes",
    "publicIpPrefixesV6",
    "resourceGuid",
    "serviceGateway",
    "sourceVirtualNetwork",
    "subnets",
    "type",
];

pub(super) struct NatGateways;

const PROTOCOL: Protocol = protocol(RESOURCE_TYPE, "NatGateway");

impl ResourceType for NatGateways {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let id = proposal.id;
        let mut properties = take_properties(&mut proposal.body);
        known_members(&mut properties, &MEMBERS, "NatGateway")?;
        strip(&mut properties, &["provisioningState", "resourceGuid", "subnets", "type"]);
        resource_guid(azure, &proposal, &mut properties);
        let sku = sku(&mut proposal.body, &["Standard", "StandardV2"])?;
        check_zones(azure, id, &mut proposal.body)?;
        bounded(&mut properties, "idleTimeoutInMinutes", 4..=120, Some(4), id)?;
        properties.insert("type".into(), "Public".into());
        reference(&mut properties, "sourceVirtualNetwork")?;
        check_unchanged(&proposal, &sku)?;
        let zones = proposal.body.get("zones").and_then(Value::as_array).map_or(0, Vec::len);
        if zones > 1 || (zones > 0 && sku == "StandardV2") {
            return Err(Refusal::network(
                400,
                "NatGatewayZonesNotSupported",
                format!(
                    "NAT gateway {id} with sku {sku} can have at most {} zone.",
                    u8::from(sku == "Standard")
                ),
            ));
        }
        let mut addresses = 0;
        for (member, v6) in [("publicIpAddresses", false), ("publicIpAddressesV6", true)] {
            for public in references(&mut properties, member)? {
                check_source(azure, id, &sku, &public, v6, frontend::public_ip_in_use)?;
                addresses += 1;
            }
        }
        for (member, v6) in [("publicIpPrefixes", false), ("publicIpPrefixesV6", true)] {
            for prefix in references(&mut properties, member)? {
                check_source(azure, id, &sku, &prefix, v6, prefix_in_use)?;
                addresses += public_ip_prefix::size(azure, &prefix);
            }
        }
        let most = azure.limit("network.publicIpAddressesPerNatGateway");
        if u64::try_from(addresses).is_ok_and(|addresses| addresses > most) {
            return Err(Refusal::network(
                400,
                "NatGatewayPublicIpAddressCountLimitReached",
                format!("NAT gateway {id} cannot have more than {most} public IP addresses."),
            ));
        }
        let mut body = proposal.body;
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        SOURCES
            .iter()
            .flat_map(|member| items(&record.body, &format!("properties/{member}")))
            .filter_map(|item| stored_reference(item, "id"))
            .map(|to| Reference::uses(&record.id, to))
            .collect()
    }

    fn check_delete(&self, azure: &AzureState, record: &Record) -> Result<(), Refusal> {
        check_unused(azure, &record.id, "InUseNatGatewayCannotBeDeleted", |users| {
            let user = users.first().copied().unwrap_or_default();
            format!("NAT gateway {} cannot be deleted because it is in use by subnet {user}.", record.id)
        })
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        let users: Vec<Value> = azure
            .store
            .referrers(&record.id)
            .filter(|referrer| is_of(&referrer.from, "/subnets/"))
            .map(|referrer| json!({ "id": referrer.from }))
            .collect();
        if let (false, Some(properties)) =
            (users.is_empty(), document.get_mut("properties").and_then(Value::as_object_mut))
        {
            properties.insert("subnets".into(), users.into());
        }
    }
}

/// Sku and zones are chosen once.
fn check_unchanged(proposal: &Proposal<'_>, sku: &str) -> Result<(), Refusal> {
    if proposal.old_member("sku/name").and_then(Value::as_str).is_some_and(|old| old != sku) {
        return Err(Refusal::network(
            400,
            "NatGatewaySkuCannotBeChanged",
            format!("The sku of NAT gateway {} cannot be changed to {sku}.", proposal.id),
        ));
    }
    check_zones_unchanged(proposal)
}

fn prefix_in_use(id: &ResourceId, prefix: &ResourceId, user: &ResourceId) -> Refusal {
    Refusal::network(
        400,
        "PublicIPPrefixInUse",
        format!(
            "Resource {id} is referencing public IP prefix {prefix} that is already allocated to resource {user}."
        ),
    )
}

/// A public IP or prefix that the gateway speaks from has its sku and the list's version, and no other
/// user.
fn check_source(
    azure: &AzureState,
    id: &ResourceId,
    sku: &str,
    source: &ResourceId,
    v6: bool,
    in_use: fn(&ResourceId, &ResourceId, &ResourceId) -> Refusal,
) -> Result<(), Refusal> {
    // The reference check reports an absent one.
    let Some(record) = azure.store.get(source) else { return Ok(()) };
    let theirs = text(&record.body, "sku/name").unwrap_or("Basic");
    if theirs != sku {
        return Err(Refusal::network(
            400,
            "PublicIpAndNatGatewaySkuDoNotMatch",
            format!("{sku} sku NAT gateway {id} cannot reference {theirs} sku resource {source}."),
        ));
    }
    let is_v6 = text(&record.body, "properties/publicIPAddressVersion") == Some("IPv6");
    if is_v6 != v6 || (v6 && sku != "StandardV2") {
        return Err(Refusal::network(
            400,
            "NatGatewayPublicIpVersionNotSupported",
            format!("NAT gateway {id} with sku {sku} cannot reference {source}, because of its IP version."),
        ));
    }
    let mut users = azure.store.referrers(source);
    match users.find(|user| user.from != *id && !is_of(&user.from, "/publicipaddresses/")) {
        Some(user) => Err(in_use(id, source, &user.from)),
        None => Ok(()),
    }
}
