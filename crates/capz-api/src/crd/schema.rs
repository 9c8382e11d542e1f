//! A structural schema from a type: the output of `schemars`, in the form that Kubernetes accepts.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::kinds::Kind;

/// The schema of a kind's objects.
pub(super) fn of(kind: &Kind) -> Value {
    let mut generator =
        SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true).into_generator();
    let mut properties = Map::new();
    properties.insert(
        "apiVersion".to_owned(),
        json!({ "type": "string", "description": "The version of the API that the object is written in." }),
    );
    properties
        .insert("kind".to_owned(), json!({ "type": "string", "description": "The kind of the object." }));
    properties.insert("metadata".to_owned(), json!({ "type": "object" }));
    for (member, schema) in [("spec", Some(kind.spec)), ("status", kind.status)] {
        let Some(schema) = schema else { continue };
        let mut schema = schema(&mut generator);
        make_structural(&mut schema);
        properties.insert(member.to_owned(), schema);
    }
    json!({ "type": "object", "description": kind.description, "properties": properties })
}

/// Kubernetes has no lists of types. Every member is optional in Rust, so that `schemars` permits `null`, except for
/// those marked `required`, which the object must have.
fn make_structural(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    members.remove("title");
    if let Some(Value::String(text)) = members.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    let mut required = Vec::new();
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        for (name, property) in properties.iter_mut() {
            if !take_null(property) {
                required.push(name.clone());
            }
            make_structural(property);
        }
    }
    if !required.is_empty() {
        required.sort();
        members.insert("required".to_owned(), required.into());
    }
    for member in ["items", "additionalProperties"] {
        if let Some(schema) = members.get_mut(member) {
            make_structural(schema);
        }
    }
}

/// Removes `null` from the permitted types. Returns whether it was one.
fn take_null(schema: &mut Value) -> bool {
    let Some(members) = schema.as_object_mut() else { return false };
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
        return true;
    }
    if members.remove("nullable").is_some() {
        return true;
    }
    let null = json!({ "type": "null" });
    match members.get_mut("anyOf") {
        Some(Value::Array(choices)) if choices.contains(&null) => {
            choices.retain(|choice| *choice != null);
            // The remaining schema takes the place of the choices, next to the description.
            if let [Value::Object(only)] = choices.as_slice() {
                let only = only.clone();
                members.remove("anyOf");
                for (member, value) in only {
                    members.entry(member).or_insert(value);
                }
            }
            true
        }
        _ => false,
    }
}
