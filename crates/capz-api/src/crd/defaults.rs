//! The defaults of a schema, filled in as the API server does before it asks a webhook.

use serde_json::Value;

use super::{Kind, definition};

/// Fills in what the schema of a kind says of members that are missing. Members are filled in only where the object around
/// them is there.
pub fn fill_defaults(kind: &str, object: &mut Value) {
    let Some(kind) = Kind::named(kind) else { return };
    let definition = definition(kind);
    fill(&definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"], object);
}

fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(default) = schema.get("default")
                    && members.get(name).is_none_or(Value::is_null)
                {
                    members.insert(name.clone(), default.clone());
                }
                if let Some(member) = members.get_mut(name) {
                    fill(schema, member);
                }
            }
            let further = &schema["additionalProperties"];
            if further.is_object() {
                members.values_mut().for_each(|member| fill(further, member));
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(|entry| fill(&schema["items"], entry)),
        _ => {}
    }
}
