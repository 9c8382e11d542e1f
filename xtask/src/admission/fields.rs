//! The edge cases of every field: the values that a schema allows, values of the table in `edges.yaml`, and its
//! absence.

use serde_json::{Map, Value, json};

use super::case::{Case, Edges, Values};

/// A field of a kind's objects.
struct Field<'a> {
    /// Its path, such as `spec.networkSpec.subnets[0].name`. The key of a map's entry is called `key`.
    path: String,
    schema: &'a Value,
    /// Whether it is required in its object.
    required: bool,
}

/// Cases for every field: each value in a created object, and set, changed and removed in an existing one.
pub fn cases(kind: &str, schema: &Value, edges: &Edges) -> Vec<Case> {
    let base = &edges.base;
    let spec = &schema["properties"]["spec"];
    let mut fields = Vec::new();
    walk("spec".to_owned(), spec, false, &mut fields);
    let builder = Builder { schema, values: &edges.values };
    let mut cases = Vec::new();
    for field in fields {
        let values = builder.values_of(&field);
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

/// Sets values in objects, with the required members around them.
pub struct Builder<'a> {
    pub schema: &'a Value,
    pub values: &'a Values,
}

impl Builder<'_> {
    /// Values to try: two different ones, if there are, and then the edge cases.
    fn values_of(&self, field: &Field<'_>) -> Vec<Value> {
        let mut values = self.values.at(&field.path);
        for value in of_schema(field.schema) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let sample = self.sample(&field.path, field.schema);
        if values.is_empty() {
            values.push(sample.clone());
        }
        match field.schema["type"].as_str() {
            Some("array") => {
                if values.len() < 2 {
                    values.push(json!([]));
                }
                if let Some(one) = sample.get(0) {
                    values.push(json!([one, one]));
                }
                values.push(json!([]));
            }
            Some("object") => values.push(json!({})),
            _ => {}
        }
        let mut once = Vec::new();
        values.retain(|value| (!once.contains(value)).then(|| once.push(value.clone())).is_some());
        values
    }

    /// The smallest valid value of a schema.
    fn sample(&self, path: &str, schema: &Value) -> Value {
        if let Some(value) = self.values.at(path).into_iter().next() {
            return value;
        }
        match schema["type"].as_str() {
            Some("object") if schema["additionalProperties"].is_object() => {
                json!({ "key": self.sample(&format!("{path}.key"), &schema["additionalProperties"]) })
            }
            Some("object") => {
                let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                required
                    .map(|name| {
                        let member = self.sample(&format!("{path}.{name}"), &schema["properties"][name]);
                        (name.to_owned(), member)
                    })
                    .collect::<Map<_, _>>()
                    .into()
            }
            Some("array") => json!([self.sample(&format!("{path}[0]"), &schema["items"])]),
            _ => of_schema(schema).into_iter().next().unwrap_or_default(),
        }
    }

    /// The object with this value at a path; required members around it are added.
    pub fn set(&self, object: &Value, path: &str, value: Value) -> Value {
        let mut object = object.clone();
        let steps = steps(path);
        let (mut at, mut schema, mut here) = (&mut object, self.schema, String::new());
        for (number, step) in steps.iter().enumerate() {
            let last = number + 1 == steps.len();
            match step.parse::<usize>() {
                Ok(index) => {
                    here = format!("{here}[{index}]");
                    schema = &schema["items"];
                    let Value::Array(entries) = at else { return object };
                    while entries.len() <= index {
                        entries.push(self.sample(&here, schema));
                    }
                    at = &mut entries[index];
                }
                Err(_) => {
                    here = if here.is_empty() { (*step).to_owned() } else { format!("{here}.{step}") };
                    let named = &schema["properties"][*step];
                    schema = if named.is_null() { &schema["additionalProperties"] } else { named };
                    if at.get(*step).is_none() && !last {
                        at[*step] = self.sample(&here, schema);
                    }
                    at = &mut at[*step];
                }
            }
        }
        *at = value;
        object
    }

    /// The object without the member at a path.
    pub fn clear(&self, object: &Value, path: &str) -> Value {
        let mut object = object.clone();
        let steps = steps(path);
        let Some((last, parents)) = steps.split_last() else { return object };
        let mut at = &mut object;
        for step in parents {
            let next = match step.parse::<usize>() {
                Ok(index) => at.get_mut(index),
                Err(_) => at.get_mut(*step),
            };
            match next {
                Some(next) => at = next,
                None => return object,
            }
        }
        match (last.parse::<usize>(), at) {
            (Ok(index), Value::Array(entries)) if index < entries.len() => {
                entries.remove(index);
            }
            (Err(_), Value::Object(members)) => {
                members.remove(*last);
            }
            _ => {}
        }
        object
    }
}

fn steps(path: &str) -> Vec<&str> {
    path.split(['.', '[', ']']).filter(|step| !step.is_empty()).collect()
}

/// Values from a scalar's schema: its enum and an invalid word, its limits, or both booleans.
fn of_schema(schema: &Value) -> Vec<Value> {
    if let Some(words) = schema["enum"].as_array() {
        let mut values = words.clone();
        values.push(json!("Other"));
        return values;
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return vec![json!(1), json!("2")];
    }
    match schema["type"].as_str() {
        Some("string") => {
            let mut values = vec![json!("a"), json!("b"), json!("")];
            if let Some(most) = schema["maxLength"].as_u64() {
                values.push(json!("x".repeat(usize::try_from(most).unwrap_or_default() + 1)));
            }
            values
        }
        Some("integer") => vec![json!(5), json!(6), json!(0), json!(-1)],
        Some("boolean") => vec![json!(true), json!(false)],
        _ => Vec::new(),
    }
}
