//! Documents whose members may be absent. An empty text or list of a declaration counts as absent, as for
//! clients written in Go.

use azure_types::ResourceId;
use serde_json::Value;

/// The document without members that are null, at every depth: Azure interprets null as a value.
pub(crate) fn without_nulls(mut document: Value) -> Value {
    strip(&mut document);
    document
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// The text of a member.
pub(crate) fn text(member: &Option<String>) -> Option<&str> {
    member.as_deref().filter(|text| !text.is_empty())
}

/// The items of a member.
pub(crate) fn items<T>(member: &Option<Vec<T>>) -> Option<&[T]> {
    member.as_deref().filter(|items| !items.is_empty())
}

/// The items of an observed list.
pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The resource with this ID in a document.
pub(crate) fn id_of(value: &Value) -> Option<ResourceId> {
    ResourceId::parse(value.as_str()?).ok()
}
