//! Values for fields, and objects with them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Values for fields, by the suffix of their path without numbers: first two valid ones, then edge cases.
#[derive(Debug, Default)]
pub(crate) struct Values(pub(crate) BTreeMap<String, Vec<Value>>);

impl Values {
    /// The values for the longest matching suffix of this path.
    fn at(&self, path: &str) -> Vec<Value> {
        let plain: String = path.chars().filter(|c| !c.is_ascii_digit()).collect();
        self.0
            .iter()
            .filter(|(end, _)| {
                plain.strip_suffix(end.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            })
            .max_by_key(|(end, _)| end.len())
            .map(|(_, values)| values.clone())
            .unwrap_or_default()
    }
}

/// Sets values in objects, with the required members around them.
pub(crate) struct Builder<'a> {
    pub(crate) schema: &'a Value,
    pub(crate) values: &'a Values,
}

impl Builder<'_> {
    /// Values to try: two different ones, if there are, and then the edge cases.
    pub(crate) fn values_of(&self, path: &str, field: &Value) -> Vec<Value> {
        let mut values = self.values.at(path);
        for value in of_schema(field) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let sample = self.sample(path, field);
        if values.is_empty() {
            values.push(sample.clone());
        }
        match field["type"].as_str() {
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
    pub(crate) fn set(&self, object: &Value, path: &str, value: Value) -> Value {
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
    pub(crate) fn clear(&self, object: &Value, path: &str) -> Value {
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

/// Both sides of each limit of a number, valid ones first.
fn limits(schema: &Value) -> Vec<Value> {
    // Generated schemas write limits as `5.0`.
    let limit = |name: &str| schema[name].to_string().trim_end_matches(".0").parse::<i64>().ok();
    let (least, most) = (limit("minimum"), limit("maximum"));
    let inside = least.map(|least| [least, least + 1]).or(most.map(|most| [most, most - 1]));
    let outside = [most, least.map(|least| least - 1), most.map(|most| most + 1)];
    inside.into_iter().flatten().chain(outside.into_iter().flatten()).map(Value::from).collect()
}

/// Values from a scalar's schema: its enum and an invalid word, both sides of its limits, or both booleans.
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
        Some("integer") if schema["minimum"].is_number() || schema["maximum"].is_number() => limits(schema),
        Some("integer") => vec![json!(5), json!(6), json!(0), json!(-1)],
        Some("boolean") => vec![json!(true), json!(false)],
        _ => Vec::new(),
    }
}
