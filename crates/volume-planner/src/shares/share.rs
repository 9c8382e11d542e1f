//! A share: its size, its document, and whether an existing one is what a request asks for.

use serde_json::{Value, json};

use crate::model::account_sku::{AccountSku, DEFAULT_GIB};
use crate::model::document::{number, object, text};
use crate::model::error::{Refusal, Result};
use crate::model::size::CapacityRange;
use crate::parameters::share::{Protocol, ShareModification, ShareParameters};

/// The metadata that says which driver made a share.
const CREATED_BY: &str = "createdBy";

/// The size of a new share in GiB (section 4.3): what is required, 100 if that is nothing, at least the least of the account's kind.
///
/// # Errors
/// A number is negative, or the size exceeds the limit of the request.
pub fn new_size(range: CapacityRange, sku: Option<AccountSku>) -> Result<u64> {
    let required = range.required_gib()?;
    let asked = if required == 0 { DEFAULT_GIB } else { required };
    let size = asked.max(sku.map_or(1, AccountSku::least_gib));
    range.check(size, None)?;
    Ok(size)
}

/// The document of a new share in an account of this kind.
pub fn document(parameters: &ShareParameters, size_gib: u64, sku: Option<AccountSku>, driver: &str) -> Value {
    let performance = sku.and_then(|sku| sku.performance(size_gib));
    let protocol = match parameters.protocol {
        Protocol::Smb => "SMB",
        Protocol::Nfs => "NFS",
    };
    let properties = object([
        ("shareQuota", Some(size_gib.into())),
        ("enabledProtocols", Some(protocol.into())),
        ("accessTier", parameters.tier.clone().map(Value::from)),
        ("rootSquash", parameters.root_squash.clone().map(Value::from)),
        ("provisionedIops", parameters.iops.or(performance.map(|it| it.0)).map(Value::from)),
        ("provisionedBandwidthMibps", parameters.bandwidth.or(performance.map(|it| it.1)).map(Value::from)),
        ("metadata", Some(json!({ CREATED_BY: driver }))),
    ]);
    json!({ "properties": properties })
}

/// The size of a share in GiB.
pub fn size_of(share: &Value) -> Option<u64> {
    number(share, "/properties/shareQuota")
}

/// Checks that an existing share is what a request asks for.
///
/// # Errors
/// It is smaller, larger than the request's limit, or has another protocol.
pub fn check_existing(
    name: &str,
    share: &Value,
    range: CapacityRange,
    size_gib: u64,
    protocol: Protocol,
) -> Result<()> {
    let found = size_of(share).unwrap_or(0);
    let is_nfs = text(share, "/properties/enabledProtocols").is_some_and(|it| it.eq_ignore_ascii_case("nfs"));
    let difference = if found < size_gib {
        format!("{found} GiB, where {size_gib} GiB are asked for")
    } else if range.check(found, None).is_err() {
        format!("{found} GiB, which exceed the limit of {} bytes", range.limit_bytes)
    } else if is_nfs != (protocol == Protocol::Nfs) {
        format!("protocol {}", if is_nfs { "NFS" } else { "SMB" })
    } else {
        return Ok(());
    };
    Err(Refusal::Incompatible { what: "share", name: name.to_owned(), difference })
}

/// What a larger size changes; `None` if the share has it.
///
/// # Errors
/// A number is negative, nothing is required, or the size exceeds the limit of the request.
pub fn grow(share: &Value, range: CapacityRange) -> Result<(u64, Option<Value>)> {
    let required = range.required_gib()?;
    if required == 0 {
        return Err(Refusal::Missing("capacity range"));
    }
    let found = size_of(share).unwrap_or(0);
    if found >= required {
        return Ok((found, None));
    }
    range.check(required, None)?;
    Ok((required, Some(json!({ "properties": { "shareQuota": required } }))))
}

/// What a VolumeAttributesClass changes; `None` if the share has it.
pub fn modify(share: &Value, wanted: ShareModification) -> Option<Value> {
    let changed =
        |wanted: Option<u64>, pointer: &str| wanted.filter(|wanted| number(share, pointer) != Some(*wanted));
    let iops = changed(wanted.iops, "/properties/provisionedIops");
    let bandwidth = changed(wanted.bandwidth, "/properties/provisionedBandwidthMibps");
    if iops.is_none() && bandwidth.is_none() {
        return None;
    }
    let properties = object([
        ("provisionedIops", iops.map(Value::from)),
        ("provisionedBandwidthMibps", bandwidth.map(Value::from)),
    ]);
    Some(json!({ "properties": properties }))
}

#[cfg(test)]
#[path = "share_tests.rs"]
mod tests;
