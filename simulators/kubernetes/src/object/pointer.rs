//! Members of a JSON document by JSON pointer; `member` creates one.

use serde_json::{Map, Value};

/// The text at a pointer; empty if there is none.
pub(crate) fn text_at<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The list at a pointer; empty if there is none.
pub(crate) fn list_at<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The whole number at a pointer; 0 if there is none.
pub(crate) fn number_at(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// The members of the map at a pointer.
pub(crate) fn members<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.pointer(pointer).and_then(Value::as_object).into_iter().flatten()
}

/// The map at `name`, created if it is missing or has another type.
pub(crate) fn member<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    let value = object.as_object_mut()?.entry(name).or_insert(Value::Null);
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}
