//! Uniqueness: sets contain each value once, and keyed lists each key.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::object::invalid::{Causes, Invalid};
use crate::schema::{ListType, Schema};

pub(super) fn validate(schema: &Schema, value: &Value, causes: &mut Causes) {
    validate_at(schema, value, "", causes);
}

fn validate_at(schema: &Schema, value: &Value, path: &str, causes: &mut Causes) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let Some(inner) = schema.member(name) else { continue };
                let at = match (path, schema.properties.contains_key(name)) {
                    ("", _) => name.clone(),
                    (_, true) => format!("{path}.{name}"),
                    (_, false) => format!("{path}[{name}]"),
                };
                validate_at(inner, member, &at, causes);
            }
        }
        Value::Array(items) => {
            match &schema.list {
                ListType::Atomic => {}
                ListType::Set => duplicates(items, path, causes),
                ListType::Map(keys) => keyed(keys, items, path, causes),
            }
            for (index, item) in items.iter().enumerate() {
                validate_at(schema.item_or_any(), item, &format!("{path}[{index}]"), causes);
            }
        }
        _ => {}
    }
}

fn keyed(keys: &[String], items: &[Value], path: &str, causes: &mut Causes) {
    if let Some(index) = items.iter().position(|item| !item.is_null() && !item.is_object()) {
        let item = items.get(index).map(Value::to_string).unwrap_or_default();
        let why = "must be an object for an array of list-type map";
        causes.push(Invalid::value(format!("{path}[{index}]"), &item, why));
        return;
    }
    let key = |item: &Value| {
        let members = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
        Value::Object(members.collect::<Map<_, _>>())
    };
    let keys: Vec<Value> = items.iter().map(key).collect();
    duplicates(&keys, path, causes);
}

/// Reports the second occurrence of each value.
fn duplicates(values: &[Value], path: &str, causes: &mut Causes) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, value) in values.iter().enumerate() {
        let text = value.to_string();
        let times = seen.entry(text.clone()).or_default();
        *times += 1;
        if *times == 2 {
            causes.push(Invalid::duplicate(format!("{path}[{index}]"), &text));
        }
    }
}
