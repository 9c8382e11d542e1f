//! Finds the part of the old object that corresponds to a part of the new one.

use serde_json::Value;

use crate::schema::{ListType, Schema};

/// The old value of a member.
pub(super) fn member<'a>(old: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    old?.get(name)
}

/// The old value of an item: items of keyed lists are found by their keys; items of other lists have no old value.
pub(super) fn item<'a>(schema: &Schema, old: Option<&'a Value>, item: &Value) -> Option<&'a Value> {
    let ListType::Map(keys) = &schema.list else { return None };
    let key = |item: &Value, name: &String| {
        item.get(name).or_else(|| schema.item_or_any().member(name)?.default.as_ref()).cloned()
    };
    let mut same =
        old?.as_array()?.iter().filter(|old| keys.iter().all(|name| key(old, name) == key(item, name)));
    same.next().filter(|_| same.next().is_none())
}
