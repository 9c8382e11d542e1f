//! Snapshots of shares: the state of a share at a time. They are stored with the share and deleted with it.

use azure_engine::document::{Object, text};
use azure_engine::provider::{AzureState, Expand, Record};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_types::ResourceId;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::super::protocol::said;
use super::super::{contents, folders};
use super::names::{RESOURCE_TYPE, absent as share_absent};

/// The member of a record's hidden part: by time, the properties of the share then.
const MEMBER: &str = "snapshots";

/// The times of a share's snapshots, in order.
pub(crate) fn times(record: &Record) -> Vec<String> {
    let kept = record.hidden.get(MEMBER).and_then(Value::as_object);
    kept.map(|kept| kept.keys().cloned().collect()).unwrap_or_default()
}

/// A time as snapshots are named: seven digits behind the second.
fn name(time: Timestamp) -> String {
    format!("{}.{:07}Z", time.strftime("%Y-%m-%dT%H:%M:%S"), time.subsec_nanosecond() / 100)
}

/// The refusal of an absent snapshot.
fn absent(azure: &AzureState) -> Refusal {
    Code::azures(404, "ShareSnapshotNotFound")
        .says(said(azure, "The specified share snapshot does not exist."))
}

/// The kept properties of a snapshot. Times are compared as times: clients shorten them.
fn kept<'a>(record: &'a Record, time: &str) -> Option<(&'a String, &'a Value)> {
    let wanted: Option<Timestamp> = time.parse().ok();
    let kept = record.hidden.get(MEMBER)?.as_object()?;
    kept.iter().find(|(known, _)| *known == time || (wanted.is_some() && known.parse().ok() == wanted))
}

/// Takes a snapshot. Gives its document and its etag.
pub(crate) fn create(azure: &mut AzureState, share: &ResourceId, body: &Value) -> Result<(Value, String)> {
    let most = azure.limit("storage.snapshotsPerShare");
    let mut time = azure.now();
    let Some(record) = azure.store.get(share) else { return Err(share_absent(azure)) };
    let known = times(record);
    Code::azures(409, "ShareSnapshotCountExceeded").says_when(
        known.len() as u64 >= most,
        said(azure, "The total number of snapshots for the share is over the limit."),
    )?;
    // Two within one tick of the clock have two names.
    while known.contains(&name(time)) {
        time = time.checked_add(SignedDuration::from_nanos(100)).unwrap_or(time);
    }
    let time = name(time);
    let mut properties = record.body.get("properties").cloned().unwrap_or_default();
    if let Some(metadata) = body.get("properties").and_then(|properties| properties.get("metadata")) {
        properties["metadata"] = metadata.clone();
    }
    let etag = azure.etag(record);
    if let Some(record) = azure.store.get_mut(share) {
        let kept = record.hidden.entry(MEMBER).or_insert_with(|| json!({}));
        kept[&time] = json!({ "properties": properties, "etag": etag });
    }
    azure.revision += 1;
    folders::take_in(azure, share);
    contents::copy(azure, share, &time);
    let mut shown = Object::new();
    if let Some(metadata) = properties.get("metadata") {
        shown.insert("metadata".into(), metadata.clone());
    }
    shown.insert("snapshotTime".into(), time.into());
    let document = json!({
        "id": share,
        "name": share.name(),
        "type": RESOURCE_TYPE,
        "properties": shown,
    });
    Ok((document, etag))
}

/// The document of a snapshot.
pub(crate) fn read(azure: &AzureState, share: &ResourceId, time: &str) -> Result<Value> {
    let Some(record) = azure.store.get(share) else { return Err(share_absent(azure)) };
    let (time, kept) = kept(record, time).ok_or_else(|| absent(azure))?;
    let mut then = record.clone();
    then.body = json!({ "properties": kept.get("properties") });
    let mut document = azure.present(&then, Expand::default());
    document["properties"]["snapshotTime"] = time.as_str().into();
    document["etag"] = text(kept, "etag").unwrap_or_default().into();
    Ok(document)
}

/// Deletes a snapshot.
pub(crate) fn delete(azure: &mut AzureState, share: &ResourceId, time: &str) -> Result<()> {
    let Some(record) = azure.store.get(share) else { return Err(share_absent(azure)) };
    let Some((time, _)) = kept(record, time) else { return Err(absent(azure)) };
    let time = time.clone();
    if let Some(record) = azure.store.get_mut(share)
        && let Some(Value::Object(kept)) = record.hidden.get_mut(MEMBER)
    {
        kept.remove(&time);
    }
    azure.revision += 1;
    contents::forget_copy(azure, share, &time);
    Ok(())
}
