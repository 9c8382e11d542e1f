//! What a schema says of members that are missing: its defaults, filled in as the API server does before it asks a webhook, and
//! the empty values of members that must be there, which webhooks write.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::{KINDS, definition};

/// The schemas of all kinds, by name: printed once.
static SCHEMAS: LazyLock<Vec<(&str, Value)>> = LazyLock::new(|| {
    let schema = |definition: Value| definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    KINDS.iter().map(|kind| (kind.name, schema(definition(kind)))).collect()
});

fn schema(kind: &str) -> Option<&'static Value> {
    SCHEMAS.iter().find(|(name, _)| *name == kind).map(|(_, schema)| schema)
}

/// Fills in what the schema of a kind says of members that are missing. Members are filled in only where the object around
/// them is there.
pub fn fill_defaults(kind: &str, object: &mut Value) {
    if let Some(schema) = schema(kind) {
        each(schema, object, &|schema, members| {
            for (name, schema) in properties(schema) {
                if let Some(default) = schema.get("default")
                    && members.get(name).is_none_or(Value::is_null)
                {
                    members.insert(name.clone(), default.clone());
                }
            }
        });
    }
}

/// Gives members of `spec` that the schema of a kind asks for, and that are missing, what Go writes for them: an empty text, zero, an
/// object with such members. So does the established provider, whose webhooks write whole objects before the API server looks
/// whether all is there: a security rule without a description is taken. Where the schema does not take the empty value, the
/// member stays away, so that the API server asks for it. Lists stay away, too: those that are none in Go are refused.
pub fn fill_required(kind: &str, object: &mut Value) {
    let schema = schema(kind).and_then(|schema| schema["properties"].get("spec"));
    if let (Some(schema), Some(spec)) = (schema, object.get_mut("spec")) {
        each(schema, spec, &|schema, members| {
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let empty = empty(&schema["properties"][name]);
                if let Some(empty) = empty.filter(|_| members.get(name).is_none_or(Value::is_null)) {
                    members.insert(name.to_owned(), empty);
                }
            }
        });
    }
}

/// The empty value of this schema, if it is one that the schema takes.
fn empty(schema: &Value) -> Option<Value> {
    let words = schema["enum"].as_array();
    match schema["type"].as_str()? {
        "string" if words.is_none_or(|words| words.contains(&json!(""))) && schema["minLength"].is_null() => {
            Some(json!(""))
        }
        "integer" if schema["minimum"].as_i64().is_none_or(|least| least <= 0) => Some(json!(0)),
        "boolean" => Some(json!(false)),
        "object" => Some(json!({})),
        _ => None,
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

/// Completes the members of every object in a value, from the outside in.
fn each(schema: &Value, value: &mut Value, complete: &impl Fn(&Value, &mut Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            complete(schema, members);
            for (name, schema) in properties(schema) {
                if let Some(member) = members.get_mut(name) {
                    each(schema, member, complete);
                }
            }
            let further = &schema["additionalProperties"];
            if further.is_object() {
                members.values_mut().for_each(|member| each(further, member, complete));
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(|entry| each(&schema["items"], entry, complete)),
        _ => {}
    }
}
