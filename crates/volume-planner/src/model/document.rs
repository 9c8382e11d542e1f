//! Reading and writing members of Azure's documents.

use serde_json::{Map, Value};

/// A text below this pointer; an empty one counts as absent.
pub fn text<'a>(document: &'a Value, pointer: &str) -> Option<&'a str> {
    document.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
}

/// A number below this pointer: Azure writes percentages with a fraction.
pub fn number(document: &Value, pointer: &str) -> Option<u64> {
    let value = document.pointer(pointer)?;
    value.as_u64().or_else(|| value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
}

/// A tag; keys are compared without regard to case, as Azure does.
pub fn tag<'a>(document: &'a Value, key: &str) -> Option<&'a str> {
    let tags = document.get("tags")?.as_object()?;
    tags.iter().find(|(own, _)| own.eq_ignore_ascii_case(key))?.1.as_str()
}

/// An object of the members that have a value.
pub fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let members = members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(members.collect::<Map<_, _>>())
}
