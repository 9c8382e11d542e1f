//! How lists show a share.

use azure_engine::document::text;
use azure_engine::provider::{AzureState, Expand, Record};
use serde_json::Value;

/// A share as lists show it: with its protocol, without its policies.
pub(super) fn listed(azure: &AzureState, record: &Record) -> Value {
    let mut document = azure.present(record, Expand::default());
    if let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) {
        properties.remove("signedIdentifiers");
        let speaks = text(&record.body, "properties/enabledProtocols").unwrap_or("SMB");
        properties.insert("enabledProtocols".into(), speaks.into());
    }
    document
}
