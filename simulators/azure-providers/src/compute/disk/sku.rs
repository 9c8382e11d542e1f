//! Kinds of managed disks, and how large they can be.

use serde_json::Value;

use azure_engine::document::text;
use azure_engine::provider::Record;
use azure_engine::refusal::Result;

use crate::compute::tables::sizes::features;
use crate::compute::tables::words::out_of_range;

/// Kinds of disks, the default first.
pub(crate) const SKUS: [&str; 7] = [
    "Standard_LRS",
    "StandardSSD_LRS",
    "StandardSSD_ZRS",
    "Premium_LRS",
    "Premium_ZRS",
    "PremiumV2_LRS",
    "UltraSSD_LRS",
];

/// The size of the largest disk that Azure has, an Ultra disk: 64 TiB.
pub(crate) const MAX_GIB: i64 = 65_536;

/// The largest disk of a kind, in GiB.
pub(crate) fn largest(sku: &str) -> i64 {
    if matches!(sku, "PremiumV2_LRS" | "UltraSSD_LRS") { MAX_GIB } else { 32_767 }
}

/// Checks that a kind of disk has this size.
pub(crate) fn check_size(member: &str, gib: u64, sku: &str) -> Result<()> {
    let (gib, largest) = (i64::try_from(gib).unwrap_or(i64::MAX), largest(sku));
    if (1..=largest).contains(&gib) { Ok(()) } else { Err(out_of_range(member, gib, 1, largest)) }
}

pub(crate) fn tier(sku: &str) -> &'static str {
    match sku {
        name if name.starts_with("Premium") => "Premium",
        name if name.starts_with("Ultra") => "Ultra",
        _ => "Standard",
    }
}

/// Takes the kind out of a document, and drops its tier.
pub(crate) fn take_kind(body: &mut Value) -> String {
    let kind = text(body, "sku/name").unwrap_or(SKUS[0]).to_owned();
    if let Some(sku) = body.get_mut("sku") {
        sku["tier"] = tier(&kind).into();
    }
    kind
}

/// The kind of a stored disk or snapshot.
pub(crate) fn kind_of(record: &Record) -> &str {
    text(&record.body, "sku/name").unwrap_or(SKUS[0])
}

/// The kind of system disk that a size gets: those with an `s` behind their number take premium disks.
pub(crate) fn usual_disk(size: &str) -> &'static str {
    if features(size).contains('s') { "Premium_LRS" } else { "Standard_LRS" }
}
