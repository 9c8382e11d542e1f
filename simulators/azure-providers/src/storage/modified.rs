//! Times of the last change.

use azure_engine::provider::{AzureState, Record};
use azure_types::ResourceId;
use jiff::Timestamp;
use serde_json::Value;

const MEMBER: &str = "lastModified";

/// Notes that a resource was changed now.
pub(super) fn note(azure: &mut AzureState, id: &ResourceId) {
    let now = azure.now().to_string();
    if let Some(record) = azure.store.get_mut(id) {
        record.hidden.insert(MEMBER.into(), now.into());
    }
}

/// When a resource was changed last.
pub(super) fn modified(record: &Record) -> String {
    let kept = record.hidden.get(MEMBER).and_then(Value::as_str);
    kept.map_or_else(|| record.created.to_string(), str::to_owned)
}

/// A time as headers of HTTP write it.
pub(super) fn http_date(time: &str) -> String {
    let time: Timestamp = time.parse().unwrap_or_default();
    time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
