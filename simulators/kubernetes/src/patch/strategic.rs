//! Strategic merge patch: a merge patch that merges some lists by key, with the directives `$patch`, `$retainKeys`,
//! `$setElementOrder/…` and `$deleteFromPrimitiveList/…`.

use serde_json::{Map, Value, json};

use super::types::PatchError;
use crate::schema::Schema;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE_VALUES: &str = "$deleteFromPrimitiveList/";

pub(super) fn merge(schema: &Schema, current: Value, patch: &Value) -> Result<Value, PatchError> {
    let (Value::Object(current), Value::Object(patch)) = (current, patch) else {
        return Err(PatchError::Invalid("a strategic merge patch must be an object".into()));
    };
    merge_map(schema, current, patch).map(Value::Object)
}

fn merge_map(
    schema: &Schema,
    mut current: Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<Map<String, Value>, PatchError> {
    match patch.get(PATCH).map(|directive| directive.as_str().unwrap_or_default()) {
        None | Some("merge") => {}
        Some("replace") => return Ok(without_directives_map(patch)),
        Some("delete") => return Ok(Map::new()),
        Some(other) => {
            return Err(PatchError::Invalid(format!(
                "unknown patch type: {other} in map: {}",
                Value::Object(patch.clone())
            )));
        }
    }
    if let Some(keep) = patch.get(RETAIN_KEYS) {
        let keep = list_of(RETAIN_KEYS, keep)?;
        if let Some(stray) = patch.iter().find(|(member, value)| {
            !member.starts_with('$') && !value.is_null() && !contains_str(keep, member)
        }) {
            return Err(PatchError::Invalid(format!(
                "{RETAIN_KEYS} does not name {}, which the patch sets",
                stray.0
            )));
        }
        current.retain(|member, _| contains_str(keep, member));
    }
    for (directive, values) in patch {
        let Some(member) = directive.strip_prefix(DELETE_VALUES) else { continue };
        let values = list_of(directive, values)?;
        if let Some(Value::Array(list)) = current.get_mut(member) {
            list.retain(|value| !values.contains(value));
        }
    }
    let ordered: Map<String, Value> = patch
        .keys()
        .filter_map(|directive| current.get_key_value(directive.strip_prefix(ORDER)?))
        .map(|(member, list)| (member.clone(), list.clone()))
        .collect();
    for (member, value) in patch {
        if member.starts_with('$') {
            continue;
        }
        if value.is_null() {
            current.remove(member);
            continue;
        }
        let inner = schema.member_or_any(member);
        let merged = match (current.remove(member), value) {
            (Some(Value::Object(old)), Value::Object(new)) => Value::Object(merge_map(inner, old, new)?),
            (Some(Value::Array(old)), Value::Array(new)) => {
                Value::Array(merge_list(inner, member, old, new)?)
            }
            (None, Value::Array(new)) => Value::Array(merge_list(inner, member, vec![], new)?),
            (_, new) => without_directives(new),
        };
        current.insert(member.clone(), merged);
    }
    for (directive, order) in patch {
        let Some(member) = directive.strip_prefix(ORDER) else { continue };
        let order = list_of(directive, order)?;
        let Some(key) = &schema.member_or_any(member).patch.merge else { continue };
        let original = ordered.get(member).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if let Some(Value::Array(list)) = current.get_mut(member) {
            sort(list, order, original, key.as_deref());
        }
    }
    Ok(current)
}

fn merge_list(
    schema: &Schema,
    name: &str,
    mut current: Vec<Value>,
    patch: &[Value],
) -> Result<Vec<Value>, PatchError> {
    let key = match &schema.patch.merge {
        None => return Ok(patch.iter().filter_map(element).collect()),
        Some(None) => {
            let original = current.clone();
            for value in patch {
                if !current.contains(value) {
                    current.push(value.clone());
                }
            }
            sort(&mut current, patch, &original, None);
            return Ok(current);
        }
        Some(Some(key)) => key.as_str(),
    };
    if patch.iter().any(|item| item.get(PATCH).and_then(Value::as_str) == Some("replace")) {
        return Ok(patch.iter().filter_map(element).collect());
    }
    let original: Vec<Value> = current.iter().filter_map(|item| Some(json!({key: item.get(key)?}))).collect();
    for item in patch {
        let Value::Object(item) = item else {
            return Err(PatchError::Invalid(format!("{name} merges by {key}: its items must be objects")));
        };
        let Some(id) = item.get(key) else {
            return Err(PatchError::Invalid(format!(
                "map: {} does not contain declared merge key: {key}",
                Value::Object(item.clone())
            )));
        };
        let at = current.iter().position(|old| old.get(key) == Some(id));
        if item.get(PATCH).and_then(Value::as_str) == Some("delete") {
            current.retain(|old| old.get(key) != Some(id));
            continue;
        }
        match at.and_then(|at| current.get_mut(at)) {
            Some(Value::Object(old)) => *old = merge_map(schema.item_or_any(), std::mem::take(old), item)?,
            _ => current.push(Value::Object(merge_map(schema.item_or_any(), Map::new(), item)?)),
        }
    }
    sort(&mut current, patch, &original, Some(key));
    Ok(current)
}

/// Sorts the items that `wanted` names by its order. Each of the others stays before the next named item that followed
/// it in the `original` list; new items come before the remaining ones.
fn sort(list: &mut Vec<Value>, wanted: &[Value], original: &[Value], key: Option<&str>) {
    let id = |item: &Value| match key {
        Some(key) => item.get(key).cloned().unwrap_or(Value::Null),
        None => item.clone(),
    };
    let position = |items: &[Value], item: &Value| items.iter().position(|other| id(other) == id(item));
    let (mut named, rest): (Vec<Value>, Vec<Value>) =
        std::mem::take(list).into_iter().partition(|item| position(wanted, item).is_some());
    named.sort_by_key(|item| position(wanted, item));
    let mut rest = rest.into_iter().peekable();
    for item in named {
        if let Some(place) = position(original, &item) {
            while let Some(own) =
                rest.next_if(|own| position(original, own).is_some_and(|other| other < place))
            {
                list.push(own);
            }
        }
        list.push(item);
    }
    list.extend(rest);
}

fn list_of<'a>(directive: &str, value: &'a Value) -> Result<&'a Vec<Value>, PatchError> {
    value.as_array().ok_or_else(|| PatchError::Invalid(format!("{directive} must be a list, not {value}")))
}

fn contains_str(list: &[Value], text: &str) -> bool {
    list.iter().any(|value| value.as_str() == Some(text))
}

/// A list item as it is stored, without directives; `None` for an item that consists of a `$patch`.
fn element(item: &Value) -> Option<Value> {
    match item {
        Value::Object(map) if map.contains_key(PATCH) => {
            let map = without_directives_map(map);
            (!map.is_empty()).then_some(Value::Object(map))
        }
        other => Some(without_directives(other)),
    }
}

fn without_directives(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(without_directives_map(map)),
        Value::Array(list) => Value::Array(list.iter().filter_map(element).collect()),
        other => other.clone(),
    }
}

fn without_directives_map(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter()
        .filter(|(member, value)| !member.starts_with('$') && !value.is_null())
        .map(|(member, value)| (member.clone(), without_directives(value)))
        .collect()
}
