//! NAT gateways.

use azure_types::ResourceId;
use serde_json::Value;

use super::load_balancer::frontend;
use super::public_ip::prefix;
use super::shared::{
    protocol::protocol,
    sku::sku,
    zones::{check_zones, check_zones_unchanged},
};
use azure_engine::document::{Object, stored_reference, take_properties, text};
use azure_engine::provider::{AzureState, Proposal, Protocol, Writing};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::store::reference::is_of;
use azure_engine::types::member_table::Holds::{Anything, Constant, Guid, Names, Number, Users, UsesAll};
use azure_engine::types::member_table::Member;

pub(crate) struct NatGateways;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("nat_gateway.json"),
    in_use: Some(|id, user, _| {
        Code::azures(400, "InUseNatGatewayCannotBeDeleted").details(format_args!(
            "NAT gateway {id} cannot be deleted because it is in use by subnet {user}."
        ))
    }),
    ..protocol("Microsoft.Network/natGateways", "NatGateway")
};

static MEMBERS: [Member; 10] = [
    Member::new("idleTimeoutInMinutes", Number(4, 120)).or(4),
    Member::new("publicIpAddresses", UsesAll("publicIPAddresses")),
    Member::new("publicIpAddressesV6", UsesAll("publicIPAddresses")),
    Member::new("publicIpPrefixes", UsesAll("publicIPPrefixes")),
    Member::new("publicIpPrefixesV6", UsesAll("publicIPPrefixes")),
    Member::new("resourceGuid", Guid),
    Member::new("serviceGateway", Anything),
    Member::new("sourceVirtualNetwork", Names("virtualNetworks")),
    Member::new("subnets", Users("subnets")),
    Member::new("type", Constant("Public")),
];

shape!(NatGateways, PROTOCOL, without Presenting, Acting);

impl Writing for NatGateways {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let id = proposal.id;
        let properties = take_properties(&mut proposal.body);
        let sku = sku(&mut proposal.body, &["Standard", "StandardV2"])?;
        check_zones(azure, id, &mut proposal.body)?;
        check_unchanged(&proposal, &sku)?;
        let zones = proposal.body.get("zones").and_then(Value::as_array).map_or(0, Vec::len);
        if zones > 1 || (zones > 0 && sku == "StandardV2") {
            let most = u8::from(sku == "Standard");
            return Err(Code::ours(400, "NatGatewayZonesNotSupported")
                .details(format_args!("NAT gateway {id} with sku {sku} can have at most {most} zone.")));
        }
        let mut addresses = 0;
        for (member, v6) in [("publicIpAddresses", false), ("publicIpAddressesV6", true)] {
            for public in pointed_at(&properties, member) {
                check_source(azure, id, &sku, &public, v6, frontend::public_ip_in_use)?;
                addresses += 1;
            }
        }
        for (member, v6) in [("publicIpPrefixes", false), ("publicIpPrefixesV6", true)] {
            for prefix in pointed_at(&properties, member) {
                check_source(azure, id, &sku, &prefix, v6, frontend::prefix_in_use)?;
                addresses += prefix::size(azure, &prefix);
            }
        }
        let most = azure.limit("network.publicIpAddressesPerNatGateway");
        if u64::try_from(addresses).is_ok_and(|addresses| addresses > most) {
            let text = format!("NAT gateway {id} cannot have more than {most} public IP addresses.");
            return Err(Code::ours(400, "NatGatewayPublicIpAddressCountLimitReached").details(text));
        }
        Ok(proposal.stored(properties))
    }
}

/// The targets of a list of references.
fn pointed_at(properties: &Object, member: &str) -> Vec<ResourceId> {
    let list = properties.get(member).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|item| stored_reference(item, "id")).collect()
}

/// Sku and zones are fixed at creation.
fn check_unchanged(proposal: &Proposal<'_>, sku: &str) -> Result<()> {
    if proposal.old_member("sku/name").and_then(Value::as_str).is_some_and(|old| old != sku) {
        let text = format!("The sku of NAT gateway {} cannot be changed to {sku}.", proposal.id);
        return Err(Code::ours(400, "NatGatewaySkuCannotBeChanged").details(text));
    }
    check_zones_unchanged(proposal)
}

/// A public IP or prefix of the gateway has the gateway's sku and the list's version, and no other user.
fn check_source(
    azure: &AzureState,
    id: &ResourceId,
    sku: &str,
    source: &ResourceId,
    v6: bool,
    in_use: fn(&ResourceId, &ResourceId, &ResourceId) -> Refusal,
) -> Result<()> {
    // The reference check reports an absent one.
    let Some(record) = azure.store.get(source) else { return Ok(()) };
    let theirs = text(&record.body, "sku/name").unwrap_or("Basic");
    Code::ours(400, "PublicIpAndNatGatewaySkuDoNotMatch").details_when(
        theirs != sku,
        format_args!("{sku} sku NAT gateway {id} cannot reference {theirs} sku resource {source}."),
    )?;
    let is_v6 = text(&record.body, "properties/publicIPAddressVersion") == Some("IPv6");
    Code::ours(400, "NatGatewayPublicIpVersionNotSupported").details_when(
        is_v6 != v6 || (v6 && sku != "StandardV2"),
        format_args!("NAT gateway {id} with sku {sku} cannot reference {source}, because of its IP version."),
    )?;
    let mut users = azure.store.referrers(source);
    match users.find(|user| user.from != *id && !is_of(&user.from, "/publicipaddresses/")) {
        Some(user) => Err(in_use(id, source, &user.from)),
        None => Ok(()),
    }
}
