//! Values for missing members, by schema: its defaults, set as the API server does before it calls a webhook, and empty
//! values for required members, which webhooks write.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::definition::definition;
use super::kinds::KINDS;

/// The schemas of all kinds, by name: generated once.
static SCHEMAS: LazyLock<Vec<(&str, Value)>> = LazyLock::new(|| {
    let schema = |definition: Value| definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    KINDS.iter().map(|kind| (kind.name, schema(definition(kind)))).collect()
});

fn schema(kind: &str) -> Option<&'static Value> {
    SCHEMAS.iter().find(|(name, _)| *name == kind).map(|(_, schema)| schema)
}

/// Sets the defaults in the schema of a kind. A member gets its default only if the object that contains it exists.
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

/// Sets missing members of `spec` that the schema of a kind requires to the value that Go writes for them: an empty
/// text, zero, an object with such members. So does the established provider, whose webhooks write whole objects before
/// the API server validates them: a security rule without a description is accepted. If the schema does not permit the
/// empty value, the member stays missing, so that the API server asks for it. Lists stay missing, too: nil slices of Go
/// are refused.
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

/// The empty value for this schema, if the schema permits it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_value_is_one_that_the_schema_permits() {
        for (schema, expected) in [
            (json!({ "type": "string" }), Some(json!(""))),
            (json!({ "type": "string", "enum": ["a", ""] }), Some(json!(""))),
            (json!({ "type": "string", "enum": ["a"] }), None),
            (json!({ "type": "string", "minLength": 1 }), None),
            (json!({ "type": "integer" }), Some(json!(0))),
            (json!({ "type": "integer", "minimum": -1 }), Some(json!(0))),
            (json!({ "type": "integer", "minimum": 0 }), Some(json!(0))),
            (json!({ "type": "integer", "minimum": 1 }), None),
            (json!({ "type": "boolean" }), Some(json!(false))),
            (json!({ "type": "object" }), Some(json!({}))),
            (json!({ "type": "array" }), None),
            (json!({}), None),
        ] {
            assert_eq!(empty(&schema), expected, "{schema}");
        }
    }
}
