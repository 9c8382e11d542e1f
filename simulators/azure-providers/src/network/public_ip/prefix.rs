//! Public IP prefixes: ranges of public addresses from which public IPs take theirs
//! (Azure REST reference, "Public IP Prefixes").

use std::net::IpAddr;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::Value;

use crate::network::shared::{
    addresses::free_public_prefix,
    checks::count_in_region,
    ip_tag::IP_TAG,
    protocol::protocol,
    sku::sku,
    type_names::PUBLIC_IP_PREFIXES,
    zones::{check_zones, check_zones_unchanged},
};
use azure_engine::document::{at, take_properties, text};
use azure_engine::operation::Completion;
use azure_engine::provider::{AzureState, EndedOperation, Proposal, Protocol, Writing};
use azure_engine::refusal::words::Wrong;
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::types::member_table::Holds::{Derived, Guid, Names, Number, Objects, User, Users, Word};
use azure_engine::types::member_table::Member;

pub(crate) struct PublicIpPrefixes;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("prefix.json"),
    in_use: Some(|id, _, users| {
        Code::azures(400, "InUsePublicIpPrefixCannotBeDeleted")
            .details(format_args!("Public IP prefix {id} cannot be deleted because it is in use by {users}."))
    }),
    ..protocol(PUBLIC_IP_PREFIXES, "PublicIpPrefix")
};

static MEMBERS: [Member; 9] = [
    Member::new("customIPPrefix", Names("customIPPrefixes")),
    Member::new("ipPrefix", Derived),
    Member::new("ipTags", Objects(&IP_TAG)).or_empty(),
    Member::new("loadBalancerFrontendIpConfiguration", User("frontendIPConfigurations")),
    Member::new("natGateway", User("natGateways")),
    Member::new("prefixLength", Number(i64::MIN, i64::MAX)).required().fixed_as(changed),
    Member::new("publicIPAddressVersion", Word(&["IPv4", "IPv6"], true)).fixed_as(changed),
    Member::new("publicIPAddresses", Users("publicIPAddresses")),
    Member::new("resourceGuid", Guid),
];

fn changed(wrong: &Wrong<'_>) -> Refusal {
    Code::ours(400, "PublicIpPrefixPropertyCannotBeChanged")
        .details(format_args!("The {} of a public IP prefix cannot be changed.", wrong.member))
}

shape!(PublicIpPrefixes, PROTOCOL, without Presenting, Acting);

impl Writing for PublicIpPrefixes {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let id = proposal.id;
        let mut properties = take_properties(&mut proposal.body);
        let sku = sku(&mut proposal.body, &["Standard", "StandardV2"])?;
        check_zones(azure, id, &mut proposal.body)?;
        let v6 = properties.get("publicIPAddressVersion").is_some_and(|version| version == "IPv6");
        let length = properties.get("prefixLength").and_then(Value::as_i64).unwrap_or_default();
        check_length(azure, id, length, v6)?;
        if let Some(before) = proposal.old_member("sku/name") {
            if *before != *sku {
                return Err(changed(&Wrong { id: proposal.id, member: "sku" }));
            }
            check_zones_unchanged(&proposal)?;
        } else {
            let most = azure.limit("network.publicIpAddressesPerRegion");
            Code::ours(400, "PublicIpPrefixCountLimitReached").details_when(
                count_in_region(azure, PUBLIC_IP_PREFIXES, &proposal) >= most,
                format_args!(
                    "Cannot create more than {most} public IP prefixes for this subscription in this region."
                ),
            )?;
        }
        if let Some(prefix) = proposal.old_member("properties/ipPrefix") {
            properties.insert("ipPrefix".into(), prefix.clone());
        }
        Ok(proposal.stored(properties))
    }

    fn after_operation(&self, azure: &mut AzureState, id: &ResourceId, ended: EndedOperation<'_>) {
        if ended.failed || *ended.completion != Completion::Write {
            return;
        }
        let Some(record) = azure.store.get(id) else { return };
        if text(&record.body, "properties/ipPrefix").is_some() {
            return;
        }
        let v6 = text(&record.body, "properties/publicIPAddressVersion") == Some("IPv6");
        let length = at(&record.body, "properties/prefixLength").and_then(Value::as_u64).unwrap_or_default();
        let length = u8::try_from(length).unwrap_or(32);
        let Some(prefix) = free_public_prefix(azure, id, length, v6) else { return };
        if let Some(properties) =
            azure.store.get_mut(id).and_then(|record| record.body.get_mut("properties")?.as_object_mut())
        {
            properties.insert("ipPrefix".into(), prefix.to_string().into());
        }
        azure.changed(id);
    }
}

/// The shortest prefix that Azure gives depends on the quota: /28 and /124 hold 16 addresses.
fn check_length(azure: &AzureState, id: &ResourceId, length: i64, v6: bool) -> Result<()> {
    let bits = if v6 { 128 } else { 32 };
    let most = azure.limit("network.addressesPerPublicIpPrefix").max(1);
    let shortest = bits - i64::from(most.min(1 << 20).ilog2());
    let longest = if v6 { 127 } else { 31 };
    if (shortest..=longest).contains(&length) {
        return Ok(());
    }
    Err(Code::ours(400, "PublicIpPrefixLengthInvalid").details(format_args!(
        "Public IP prefix {id} has prefix length {length}. The allowed range is {shortest} to {longest}."
    )))
}

/// The range of a prefix, once it is provisioned.
pub(crate) fn range(azure: &AzureState, prefix: &ResourceId) -> Option<IpNet> {
    text(&azure.store.get(prefix)?.body, "properties/ipPrefix")?.parse().ok()
}

/// How many addresses a prefix has.
pub(crate) fn size(azure: &AzureState, prefix: &ResourceId) -> i64 {
    let hosts = range(azure, prefix).map_or(0, |range| range.max_prefix_len() - range.prefix_len());
    1_i64 << hosts.min(62)
}

/// A free address of a prefix.
pub(crate) fn free_address(azure: &AzureState, range: &IpNet) -> Option<IpAddr> {
    // Every address of a public prefix can be used, its first and last ones too.
    let start = range.network();
    let hosts = range.max_prefix_len() - range.prefix_len();
    (0..1_u128 << hosts.min(64)).find_map(|step| {
        let address = match start {
            IpAddr::V4(start) => {
                IpAddr::V4((u32::from(start).checked_add(u32::try_from(step).ok()?)?).into())
            }
            IpAddr::V6(start) => IpAddr::V6((u128::from(start).checked_add(step)?).into()),
        };
        (!azure.store.public_address_taken(&address)).then_some(address)
    })
}
