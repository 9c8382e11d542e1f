//! Lenient access to documents: a missing or malformed member counts as absent.

use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::Value;

pub(crate) fn text_at<'a>(document: &'a Value, pointer: &str) -> Option<&'a str> {
    document.pointer(pointer)?.as_str()
}

pub(crate) fn flag_at(document: &Value, pointer: &str) -> bool {
    document.pointer(pointer).and_then(Value::as_bool).unwrap_or_default()
}

pub(crate) fn port_at(document: &Value, pointer: &str) -> Option<u16> {
    document.pointer(pointer)?.as_u64()?.try_into().ok()
}

pub(crate) fn address_at(document: &Value, pointer: &str) -> Option<IpAddr> {
    text_at(document, pointer)?.parse().ok()
}

pub(crate) fn id_at(document: &Value, pointer: &str) -> Option<ResourceId> {
    ResourceId::parse(text_at(document, pointer)?).ok()
}

pub(crate) fn id_of(document: &Value) -> Option<ResourceId> {
    id_at(document, "/id")
}

/// The members of an array; none when there is no array.
pub(crate) fn items<'a>(document: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    document.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// The ids of an array of references.
pub(crate) fn ids_at(document: &Value, pointer: &str) -> Vec<ResourceId> {
    items(document, pointer).filter_map(id_of).collect()
}

/// Whether Azure is still working on a resource.
pub(crate) fn is_updating(document: &Value) -> bool {
    text_at(document, "/properties/provisioningState")
        .is_some_and(|state| !matches!(state, "Succeeded" | "Failed" | "Canceled"))
}
