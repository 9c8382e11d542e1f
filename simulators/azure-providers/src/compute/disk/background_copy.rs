//! Copies that continue after a snapshot was created: of the fast kinds of disks, and from region to region.

use azure_types::ResourceId;
use jiff::SignedDuration;

use crate::compute::tables::codes::OPERATION_NOT_ALLOWED;
use crate::compute::tables::type_names::DISK_TYPE;
use azure_engine::document::{flag, number, stored_reference, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::Result;

/// How long a copy takes for each GiB, in milliseconds, and at least. Our choice: Azure promises no speed.
const COPY_MS_PER_GIB: u64 = 200;
const MIN_COPY_MS: u64 = 10_000;

/// The hidden member that marks snapshots of fast disks.
const HIDDEN: &str = "ofFastDisk";

/// Whether a kind of disk is one that is copied in the background.
pub(crate) fn is_fast(sku: &str) -> bool {
    matches!(sku, "PremiumV2_LRS" | "UltraSSD_LRS")
}

/// Whether a disk or snapshot holds the bytes of a fast disk.
pub(crate) fn is_of_fast_disk(source: &Record) -> bool {
    let disk = source.resource_type.name() == DISK_TYPE;
    source.hidden.contains_key(HIDDEN) || (disk && text(&source.body, "sku/name").is_some_and(is_fast))
}

/// Stores in a new snapshot whether its source is a fast disk: the source may be deleted before it.
pub(crate) fn remember(azure: &mut AzureState, snapshot: &ResourceId) {
    let body = azure.store.get(snapshot).map(|record| &record.body);
    let source = body.and_then(|body| stored_reference(body, "properties/creationData/sourceResourceId"));
    let fast = source.and_then(|source| azure.store.get(&source)).is_some_and(is_of_fast_disk);
    if let Some(record) = azure.store.get_mut(snapshot).filter(|_| fast) {
        record.hidden.insert(HIDDEN.into(), true.into());
    }
}

/// The progress of a snapshot's copy, in percent. Full snapshots show none.
pub(crate) fn progress(azure: &AzureState, snapshot: &Record) -> Option<f64> {
    if !flag(&snapshot.body, "properties/incremental") {
        return None;
    }
    if text(&snapshot.body, "properties/creationData/createOption") != Some("CopyStart")
        && !is_of_fast_disk(snapshot)
    {
        return Some(100.0);
    }
    let gib = number(&snapshot.body, "properties/diskSizeGB").unwrap_or_default();
    let whole = gib.saturating_mul(COPY_MS_PER_GIB).max(MIN_COPY_MS) as f64;
    let passed = azure.time().duration_since(snapshot.created).as_millis().max(0) as f64;
    Some((passed / whole * 100.0).min(100.0).floor())
}

/// Refuses a disk of a snapshot that is still being copied. Those with instant access are ready for fast disks
/// while that lasts.
pub(crate) fn check_complete(azure: &AzureState, source: &Record, sku: &str) -> Result<()> {
    let snapshot = source.resource_type.name() != DISK_TYPE;
    let percent = progress(azure, source).filter(|_| snapshot).unwrap_or(100.0);
    let wrong = percent < 100.0 && !(is_fast(sku) && has_instant_access(azure, source));
    OPERATION_NOT_ALLOWED.says_when(
        wrong,
        format_args!(
            "Snapshot {} cannot be the source of a disk before its copy is complete. It is at {percent} percent.",
            source.id.name()
        ),
    )
}

fn has_instant_access(azure: &AzureState, snapshot: &Record) -> bool {
    let minutes = number(&snapshot.body, "properties/creationData/instantAccessDurationMinutes");
    let lasts = minutes.and_then(|minutes| i64::try_from(minutes.saturating_mul(60)).ok());
    let age = azure.time().duration_since(snapshot.created);
    lasts.is_some_and(|lasts| age < SignedDuration::from_secs(lasts))
}
