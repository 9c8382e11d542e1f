//! Secrets and keys as the vault's host shows them.

use serde_json::{Value, json};

use super::super::host;
use super::super::item::{Content, Item, Kind, Version};
use azure_engine::provider::Record;

/// The id of an item in a vault, of one version where it is named.
fn id(vault: &Record, collection: &str, name: &str, version: Option<&str>) -> String {
    let version = version.map_or_else(String::new, |version| format!("/{version}"));
    format!("{}{collection}/{name}{version}", host::uri(vault))
}

/// A version with its content.
pub(super) fn whole(vault: &Record, kind: Kind, name: &str, version: &Version) -> Value {
    let mut document = described(vault, kind, name, version, true);
    if let Content::Secret(value) = &version.content {
        document["value"] = value.reveal().into();
    }
    document
}

/// The same without a secret's value: a line of a list (`full` names the version), or the description of a deleted
/// item.
pub(super) fn described(vault: &Record, kind: Kind, name: &str, version: &Version, full: bool) -> Value {
    let id = id(vault, kind.collection(), name, full.then_some(version.id.as_str()));
    let mut document = json!({ "attributes": version.attributes_in(vault), "tags": version.tags });
    match &version.content {
        Content::Secret(_) => {
            document["id"] = id.into();
            if let Some(content_type) = &version.content_type {
                document["contentType"] = content_type.as_str().into();
            }
        }
        Content::Key(key) => {
            let mut key = key.clone();
            key.insert("kid".into(), id.into());
            document["key"] = Value::Object(key);
        }
    }
    document
}

/// A line of a list.
pub(super) fn line(vault: &Record, kind: Kind, name: &str, version: &Version, full: bool) -> Value {
    let mut document = described(vault, kind, name, version, full);
    // Lists name keys and do not show them.
    if let Some(kid) = document.get("key").and_then(|key| key.get("kid")).cloned() {
        document["kid"] = kid;
        if let Some(document) = document.as_object_mut() {
            document.remove("key");
        }
    }
    document
}

/// Adds the members of a deleted item.
pub(super) fn deleted(vault: &Record, kind: Kind, item: &Item, mut document: Value) -> Value {
    if let Some(deletion) = item.deletion {
        let collection = format!("deleted{}", kind.collection());
        document["recoveryId"] = id(vault, &collection, &item.name, None).into();
        document["deletedDate"] = deletion.at.into();
        document["scheduledPurgeDate"] = deletion.over.into();
    }
    document
}
