//! Lenient access to documents: what is missing or malformed is simply not there.

use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::Value;

pub(super) fn text_at<'a>(document: &'a Value, pointer: &str) -> Option<&'a str> {
    document.pointer(pointer)?.as_str()
}

pub(super) fn flag_at(document: &Value, pointer: &str) -> bool {
    document.pointer(pointer).and_then(Value::as_bool).unwrap_or_default()
}

pub(super) fn port_at(document: &Value, pointer: &str) -> Option<u16> {
    document.pointer(pointer)?.as_u64()?.try_into().ok()
}

pub(super) fn address_at(document: &Value, pointer: &str) -> Option<IpAddr> {
    text_at(document, pointer)?.parse().ok()
}

pub(super) fn id_at(document: &Value, pointer: &str) -> Option<ResourceId> {
    ResourceId::parse(text_at(document, pointer)?).ok()
}

pub(super) fn id_of(document: &Value) -> Option<ResourceId> {
    id_at(document, "/id")
}

/// The members of an array; none when there is no array.
pub(super) fn items<'a>(document: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    document.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// The ids of an array of references.
pub(super) fn ids_at(document: &Value, pointer: &str) -> Vec<ResourceId> {
    items(document, pointer).filter_map(id_of).collect()
}
