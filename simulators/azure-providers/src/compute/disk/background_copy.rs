//! Copies that continue after an operation: snapshots of the fast kinds of disks, and from region to region; disks that
//! become fast ones, or are made fast from others.

use azure_types::ResourceId;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

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
/// The hidden member of a disk with the time at which its copy began.
const BEGAN: &str = "copyBegan";

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
    Some(percent_since(azure, snapshot, snapshot.created))
}

/// How much of a disk or snapshot is copied some time after the beginning, in percent.
fn percent_since(azure: &AzureState, record: &Record, began: Timestamp) -> f64 {
    let gib = number(&record.body, "properties/diskSizeGB").unwrap_or_default();
    let whole = gib.saturating_mul(COPY_MS_PER_GIB).max(MIN_COPY_MS) as f64;
    let passed = azure.time().duration_since(began).as_millis().max(0) as f64;
    (passed / whole * 100.0).min(100.0).floor()
}

/// Begins the copy of a disk that has become a fast one, or that was made fast of something else.
pub(crate) fn begin(azure: &mut AzureState, disk: &ResourceId, old: Option<&Value>) {
    let now = azure.now().to_string();
    let Some(record) = azure.store.get(disk) else { return };
    let kind_before = match old {
        Some(old) => text(old, "sku/name"),
        None => stored_reference(&record.body, "properties/creationData/sourceResourceId")
            .and_then(|source| azure.store.get(&source))
            .and_then(|source| text(&source.body, "sku/name")),
    };
    let becomes_fast = text(&record.body, "sku/name")
        .is_some_and(|kind| is_fast(kind) && kind_before.is_some_and(|before| before != kind));
    if let Some(record) = azure.store.get_mut(disk).filter(|_| becomes_fast) {
        record.hidden.insert(BEGAN.into(), now.into());
    }
}

/// The progress of a disk's copy, in percent, if there was one.
pub(crate) fn progress_of_disk(azure: &AzureState, disk: &Record) -> Option<f64> {
    let began = disk.hidden.get(BEGAN)?.as_str()?.parse().ok()?;
    Some(percent_since(azure, disk, began))
}

/// Refuses another kind or size for a disk that is still being copied.
pub(crate) fn check_disk_complete(azure: &AzureState, disk: &Record, change: &str) -> Result<()> {
    let percent = progress_of_disk(azure, disk).filter(|percent| *percent < 100.0);
    OPERATION_NOT_ALLOWED.says_when(
        percent.is_some(),
        format_args!(
            "{change} while its data are copied in the background. The copy is at {} percent.",
            percent.unwrap_or_default()
        ),
    )
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
