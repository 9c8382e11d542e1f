//! The edge cases of every field: the values that a schema allows, values of the table in `edges.yaml`, and its
//! absence.

use serde_json::Value;

use crate::builder::Builder;
use crate::case::Case;

/// A field of a kind's objects.
struct Field<'a> {
    /// Its path, such as `spec.networkSpec.subnets[0].name`. The key of a map's entry is called `key`.
    path: String,
    schema: &'a Value,
    /// Whether it is required in its object.
    required: bool,
}

/// Cases for every field: each value in a created object, and set, changed and removed in an existing one.
pub(crate) fn cases(kind: &str, base: &Value, builder: &Builder<'_>) -> Vec<Case> {
    let schema = builder.schema;
    let spec = &schema["properties"]["spec"];
    let mut fields = Vec::new();
    walk("spec".to_owned(), spec, false, &mut fields);
    let mut cases = Vec::new();
    for field in fields {
        let values = builder.values_of(&field.path, field.schema);
        let with = |value: &Value| builder.set(base, &field.path, value.clone());
        for value in &values {
            cases.push(Case::made(kind, &format!("{}={value}", field.path), with(value)));
        }
        let without = builder.clear(base, &field.path);
        if without != *base {
            cases.push(Case::made(kind, &format!("{} is missing", field.path), without.clone()));
        } else if field.required {
            // Its parent has everything else.
            let rest = builder.clear(&with(&Value::Null), &field.path);
            cases.push(Case::made(kind, &format!("{} alone is missing", field.path), rest));
        }
        let [first, second, ..] = values.as_slice() else { continue };
        let changed = |from: &Value, to: Value, words: String| {
            Case::changed(kind, &format!("{} {words}", field.path), from.clone(), to)
        };
        cases.push(changed(&without, with(first), format!("is set to {first}")));
        cases.push(changed(&with(first), with(second), format!("{first} becomes {second}")));
        cases.push(changed(&with(first), without.clone(), format!("{first} is cleared")));
    }
    cases
}

fn walk<'a>(path: String, schema: &'a Value, required: bool, fields: &mut Vec<Field<'a>>) {
    if path != "spec" {
        fields.push(Field { path: path.clone(), schema, required });
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let required =
            schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name.as_str()));
        walk(format!("{path}.{name}"), member, required, fields);
    }
    if schema["items"].get("properties").is_some() {
        walk(format!("{path}[0]"), &schema["items"], false, fields);
    }
    if schema["additionalProperties"].get("properties").is_some() {
        walk(format!("{path}.key"), &schema["additionalProperties"], false, fields);
    }
}
