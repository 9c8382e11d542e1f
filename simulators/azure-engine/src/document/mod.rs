//! Small tools for documents: reading members, filling defaults, checking what a client sent.

pub mod edit;
pub(crate) mod envelope;
pub mod location;
pub mod reading;

use azure_types::ResourceId;
use serde_json::{Map, Value};

use crate::refusal::{Code, Refusal, Result};

const MISSING_JSON_REFERENCE_ID: Code = Code::azures(400, "MissingJsonReferenceId");

/// A JSON object.
pub type Object = Map<String, Value>;

/// A member of an object by `/`-separated path; `None` where any step is missing.
pub fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').try_fold(value, |value, step| value.get(step))
}

/// A text member by path.
pub fn text<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    at(value, path)?.as_str()
}

/// A whole number by path.
pub fn number(value: &Value, path: &str) -> Option<u64> {
    at(value, path)?.as_u64()
}

/// Whether a member by path is true.
pub fn flag(value: &Value, path: &str) -> bool {
    at(value, path) == Some(&Value::Bool(true))
}

/// A member by path, to be changed; `None` where any step is missing.
pub fn at_mut<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('/').try_fold(value, |value, step| value.get_mut(step))
}

/// The items of an array member by path, to be changed; empty where it is missing.
pub fn items_mut<'a>(value: &'a mut Value, path: &str) -> &'a mut [Value] {
    at_mut(value, path).and_then(Value::as_array_mut).map_or(&mut [], Vec::as_mut_slice)
}

/// Removes a member by path, and returns it.
pub fn remove_at(value: &mut Value, path: &str) -> Option<Value> {
    let (above, member) = match path.rsplit_once('/') {
        Some((above, member)) => (at_mut(value, above)?, member),
        None => (value, path),
    };
    above.as_object_mut()?.remove(member)
}

/// Sets a member by path that is missing or null; objects on the way to it are created.
pub fn fill_at(value: &mut Value, path: &str, default: impl Into<Value>) {
    let Value::Object(object) = value else { return };
    match path.split_once('/') {
        Some((step, rest)) => {
            fill_at(object.entry(step).or_insert_with(|| Object::new().into()), rest, default)
        }
        None => fill(object, path, default),
    }
}

/// The items of an array member by path; empty where it is missing.
pub fn items<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The name of a child document.
pub fn name(value: &Value) -> &str {
    text(value, "name").unwrap_or_default()
}

/// The members of a value; none where it is not an object.
pub fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Takes the object out of a value; an empty one for any other value.
pub fn into_object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// Takes the `properties` object out of a document.
pub fn take_properties(document: &mut Object) -> Object {
    document.remove("properties").map(into_object).unwrap_or_default()
}

/// Sets a member that is missing or null.
pub fn fill(object: &mut Object, member: &str, default: impl Into<Value>) {
    match object.get(member) {
        None | Some(Value::Null) => {
            object.insert(member.into(), default.into());
        }
        Some(_) => {}
    }
}

/// Removes members that only the service writes.
pub fn strip(object: &mut Object, members: &[&str]) {
    for member in members {
        object.remove(*member);
    }
}

/// Drops null members: absent values are omitted, not null.
pub fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|_, member| !member.is_null());
            object.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Gives known members their canonical spelling and refuses the others, as the Network provider does.
pub fn known_members(object: &mut Object, known: &[&str], what: &str) -> Result<()> {
    let strange: Vec<String> = object.keys().filter(|key| !known.contains(&key.as_str())).cloned().collect();
    for key in strange {
        let Some(canonical) = known.iter().find(|name| name.eq_ignore_ascii_case(&key)) else {
            return Err(Refusal::bad_format(format!(
                "Could not find member '{key}' on object of type '{what}'. Path 'properties.{key}'."
            )));
        };
        if let Some(value) = object.remove(&key) {
            object.insert((*canonical).into(), value);
        }
    }
    Ok(())
}

/// Checks an enumeration ignoring case and stores Azure's spelling; a missing member takes the first
/// value when `default` says so.
pub fn enumeration(object: &mut Object, member: &str, allowed: &[&str], default: bool) -> Result<()> {
    let Some(value) = object.get(member).filter(|value| !value.is_null()) else {
        if let (true, Some(first)) = (default, allowed.first()) {
            object.insert(member.into(), Value::from(*first));
        }
        return Ok(());
    };
    let given = value.as_str().unwrap_or_default();
    match allowed.iter().find(|name| name.eq_ignore_ascii_case(given)) {
        Some(canonical) => {
            object.insert(member.into(), Value::from(*canonical));
            Ok(())
        }
        None => Err(Refusal::bad_format(format!(
            "Error converting value {value} to member '{member}'. Allowed values are: {}.",
            allowed.join(", ")
        ))),
    }
}

/// Reads a whole number member; `None` where it is missing.
pub fn integer(object: &Object, member: &str) -> Result<Option<i64>> {
    match object.get(member) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            value.as_i64().or_else(|| value.as_str().and_then(|text| text.parse().ok())).map(Some).ok_or_else(
                || Refusal::bad_format(format!("Could not convert {value} to integer: member '{member}'.")),
            )
        }
    }
}

/// Cuts a reference member down to `{"id": ...}` and returns the id. Clients send whole embedded
/// copies of what they refer to; Azure keeps the id alone.
pub fn reference(object: &mut Object, member: &str) -> Result<Option<ResourceId>> {
    let Some(value) = object.get_mut(member) else { return Ok(None) };
    if value.is_null() {
        object.remove(member);
        return Ok(None);
    }
    reduce_reference(value, &format!("properties.{member}")).map(Some)
}

/// The same for each item of an array of references.
pub fn references(object: &mut Object, member: &str) -> Result<Vec<ResourceId>> {
    match object.get_mut(member) {
        None | Some(Value::Null) => {
            object.remove(member);
            Ok(Vec::new())
        }
        Some(Value::Array(items)) => {
            let path = format!("properties.{member}");
            items.iter_mut().map(|item| reduce_reference(item, &path)).collect()
        }
        Some(_) => Err(Refusal::bad_format(format!("Member '{member}' must be an array."))),
    }
}

/// Reduces a reference to its id; `path` is its path in the document.
pub(crate) fn reduce_reference(value: &mut Value, path: &str) -> Result<ResourceId> {
    let Some(id) = text(value, "id") else {
        return Err(Refusal::unreadable(
            MISSING_JSON_REFERENCE_ID.code,
            format!("Value for reference id is missing. Path {path}."),
        ));
    };
    let parsed = ResourceId::parse(id).map_err(|_| Refusal::bad_id(id, &format!("{path}.id")))?;
    *value = serde_json::json!({ "id": id });
    Ok(parsed)
}

/// Reads an id that a stored (already checked) document refers to.
pub fn stored_reference(value: &Value, path: &str) -> Option<ResourceId> {
    ResourceId::parse(text(value, path)?.trim()).ok()
}

/// Drops `{"id": target}` from every list in a document, and lists that become empty; `target` is in lower case.
pub fn drop_listed(value: &mut Value, target: &str) {
    match value {
        Value::Object(object) => object.retain(|_, member| {
            let Value::Array(items) = member else {
                drop_listed(member, target);
                return true;
            };
            let count = items.len();
            items.retain(|item| !text(item, "id").is_some_and(|id| id.eq_ignore_ascii_case(target)));
            items.iter_mut().for_each(|item| drop_listed(item, target));
            !items.is_empty() || count == 0
        }),
        Value::Array(items) => items.iter_mut().for_each(|item| drop_listed(item, target)),
        _ => {}
    }
}

/// Merges `patch` into `base`: objects member by member, everything else replaced; null removes. Azure takes names of
/// members in any case, and keeps those that it has.
pub fn merge(base: &mut Value, patch: Value) {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            for (member, value) in patch {
                let known = spelling(base, &member).unwrap_or(member);
                if value.is_null() {
                    base.remove(&known);
                } else {
                    merge(base.entry(known).or_insert(Value::Null), value);
                }
            }
        }
        (base, patch) => *base = patch,
    }
}

/// The spelling of a member that an object has in another case.
fn spelling(object: &Object, member: &str) -> Option<String> {
    // The spelling is nearly always the same.
    if object.contains_key(member) {
        return None;
    }
    object.keys().find(|known| known.eq_ignore_ascii_case(member)).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{fill_at, merge, remove_at};

    #[test]
    fn members_are_filled_in_and_taken_out_by_path() {
        let mut document = json!({ "a": { "b": null } });
        fill_at(&mut document, "a/b", 1);
        fill_at(&mut document, "a/b", 2);
        fill_at(&mut document, "c/d", 3);
        assert_eq!(document, json!({ "a": { "b": 1 }, "c": { "d": 3 } }));
        assert_eq!(remove_at(&mut document, "c/d"), Some(json!(3)));
        assert_eq!(remove_at(&mut document, "x/d"), None);
        assert_eq!(remove_at(&mut document, "c"), Some(json!({})));
        assert_eq!(document, json!({ "a": { "b": 1 } }));
    }

    #[test]
    fn members_are_merged_in_any_case() {
        let mut document = json!({ "properties": { "diskSizeGB": 4, "tier": "P4" } });
        merge(&mut document, json!({ "Properties": { "DiskSizeGB": 8, "TIER": null, "new": 1 } }));
        assert_eq!(document, json!({ "properties": { "diskSizeGB": 8, "new": 1 } }));
    }
}
