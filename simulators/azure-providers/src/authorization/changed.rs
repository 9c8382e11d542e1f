//! Times at which definitions and assignments were created and changed, which their documents show.

use azure_types::ResourceId;
use serde_json::Value;

use azure_engine::document::Object;
use azure_engine::provider::{AzureState, Record};

/// The hidden member with the time of the last change.
const UPDATED: &str = "updatedOn";

/// Adds the times of creation and last change.
pub(super) fn times(record: &Record, document: &mut Object) {
    let created = record.created.to_string();
    let updated = record.hidden.get(UPDATED).and_then(Value::as_str).unwrap_or(&created).to_owned();
    if let Some(Value::Object(properties)) = document.get_mut("properties") {
        properties.insert("createdOn".into(), created.into());
        properties.insert("updatedOn".into(), updated.into());
    }
}

/// Notes that a document was changed now.
pub(super) fn touch(azure: &mut AzureState, id: &ResourceId) {
    let now = azure.now().to_string();
    if let Some(record) = azure.store.get_mut(id) {
        record.hidden.insert(UPDATED.into(), now.into());
    }
}
