//! Public IP prefixes: ranges of public addresses from which public IPs take theirs
//! (Azure REST reference, "Public IP Prefixes").

use std::net::IpAddr;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::{Value, json};

use crate::network::shared::{
    addresses::free_public_prefix,
    checks::{check_unused, count_in_region},
    protocol::protocol,
    resource_guid::resource_guid,
    sku::sku,
    type_names::PUBLIC_IP_PREFIXES,
    zones::{check_zones, check_zones_unchanged},
};
use azure_engine::document::{
    Object, at, enumeration, fill, integer, known_members, reference, strip, take_properties, text,
};
use azure_engine::error::{Code, Refusal};
use azure_engine::operation::Completion;
use azure_engine::provider::{AzureState, Expand, Proposal, Protocol, Record, ResourceType};
use azure_engine::reference::is_of;

const IN_USE: Code = Code::azures(400, "InUsePublicIpPrefixCannotBeDeleted");
const CHANGED: Code = Code::ours(400, "PublicIpPrefixPropertyCannotBeChanged");
const TOO_MANY: Code = Code::ours(400, "PublicIpPrefixCountLimitReached");
const WRONG_LENGTH: Code = Code::ours(400, "PublicIpPrefixLengthInvalid");

const MEMBERS: [&str; 10] = [
    "customIPPrefix",
    "ipPrefix",
    "ipTags",
    "loadBalancerFrontendIpConfiguration",
    "natGateway",
    "prefixLength",
    "provisioningState",
    "publicIPAddressVersion",
    "publicIPAddresses",
    "resourceGuid",
];

const DERIVED: [&str; 6] = [
    "ipPrefix",
    "loadBalancerFrontendIpConfiguration",
    "natGateway",
    "provisioningState",
    "publicIPAddresses",
    "resourceGuid",
];

pub(crate) struct PublicIpPrefixes;

const PROTOCOL: Protocol = protocol(PUBLIC_IP_PREFIXES, "PublicIpPrefix");

impl ResourceType for PublicIpPrefixes {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let id = proposal.id;
        let mut properties = take_properties(&mut proposal.body);
        known_members(&mut properties, &MEMBERS, "PublicIPPrefix")?;
        strip(&mut properties, &DERIVED);
        resource_guid(azure, &proposal, &mut properties);
        let sku = sku(&mut proposal.body, &["Standard", "StandardV2"])?;
        check_zones(azure, id, &mut proposal.body)?;
        enumeration(&mut properties, "publicIPAddressVersion", &["IPv4", "IPv6"], true)?;
        fill(&mut properties, "ipTags", json!([]));
        reference(&mut properties, "customIPPrefix")?;
        let v6 = properties.get("publicIPAddressVersion") == Some(&json!("IPv6"));
        let old = |path: &str| proposal.old_member(path).cloned();
        let length = match integer(&properties, "prefixLength")? {
            Some(length) => length,
            None => old("properties/prefixLength").and_then(|length| length.as_i64()).ok_or_else(|| {
                Refusal::bad_format(format!("Required property 'prefixLength' not found in {id}."))
            })?,
        };
        check_length(azure, id, length, v6)?;
        properties.insert("prefixLength".into(), length.into());
        for (what, given, before) in [
            ("prefix length", Some(Value::from(length)), old("properties/prefixLength")),
            (
                "IP version",
                properties.get("publicIPAddressVersion").cloned(),
                old("properties/publicIPAddressVersion"),
            ),
            ("sku", Some(Value::from(sku)), old("sku/name")),
        ] {
            CHANGED.details_when(
                before.is_some() && before != given,
                format_args!("The {what} of public IP prefix {id} cannot be changed."),
            )?;
        }
        if proposal.old.is_some() {
            check_zones_unchanged(&proposal)?;
        } else {
            let most = azure.limit("network.publicIpAddressesPerRegion");
            TOO_MANY.details_when(
                count_in_region(azure, PUBLIC_IP_PREFIXES, &proposal) >= most,
                format_args!(
                    "Cannot create more than {most} public IP prefixes for this subscription in this region."
                ),
            )?;
        }
        if let Some(prefix) = old("properties/ipPrefix") {
            properties.insert("ipPrefix".into(), prefix);
        }
        let mut body = proposal.body;
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn after_operation(
        &self,
        azure: &mut AzureState,
        id: &ResourceId,
        completion: &Completion,
        failed: bool,
    ) {
        if failed || *completion != Completion::Write {
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

    fn check_delete(&self, azure: &AzureState, record: &Record) -> Result<(), Refusal> {
        check_unused(azure, &record.id, IN_USE, |users| {
            format!(
                "Public IP prefix {} cannot be deleted because it is in use by {}.",
                record.id,
                users.join(", ")
            )
        })
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) else { return };
        let mut addresses = Vec::new();
        for referrer in azure.store.referrers(&record.id) {
            let shown = json!({ "id": referrer.from });
            if is_of(&referrer.from, "/publicipaddresses/") {
                addresses.push(shown);
            } else if is_of(&referrer.from, "/natgateways/") {
                properties.insert("natGateway".into(), shown);
            } else {
                properties.insert("loadBalancerFrontendIpConfiguration".into(), shown);
            }
        }
        if !addresses.is_empty() {
            properties.insert("publicIPAddresses".into(), addresses.into());
        }
    }
}

/// The shortest prefix that Azure gives depends on the quota: /28 and /124 hold 16 addresses.
fn check_length(azure: &AzureState, id: &ResourceId, length: i64, v6: bool) -> Result<(), Refusal> {
    let bits = if v6 { 128 } else { 32 };
    let most = azure.limit("network.addressesPerPublicIpPrefix").max(1);
    let shortest = bits - i64::from(most.min(1 << 20).ilog2());
    let longest = if v6 { 127 } else { 31 };
    if (shortest..=longest).contains(&length) {
        return Ok(());
    }
    Err(WRONG_LENGTH.details(format_args!(
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

/// An address of a prefix that nobody holds.
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
