//! Changes to a document, declared as data.

use serde::de::{Error as _, IntoDeserializer as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::document::merge;

/// A change to a document: first `merge`, then `set`, then `remove`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Edit {
    /// Merged into the document, as in JSON merge patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<Value>,
    /// Values to set at paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<PathValue>,
    /// Paths to remove.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "short_paths")]
    pub remove: Vec<String>,
}

/// A value and its path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PathValue {
    /// Steps joined by `/`. In an array a step is the `name` of an item, a number, or `-` for a new one:
    /// `properties/securityRules/allow-web/properties/priority`. Missing steps are created; a new item gets its name. A
    /// path has at most [`MAX_STEPS`] steps.
    #[serde(deserialize_with = "short_path")]
    pub path: String,
    /// The value.
    pub value: Value,
}

impl Edit {
    /// Merges into the document.
    pub fn merging(patch: Value) -> Self {
        Self { merge: Some(patch), ..Self::default() }
    }

    /// Sets one value.
    pub fn setting(path: &str, value: Value) -> Self {
        Self { set: vec![PathValue { path: path.into(), value }], ..Self::default() }
    }

    /// Removes one member or item.
    pub fn removing(path: &str) -> Self {
        Self { remove: vec![path.into()], ..Self::default() }
    }

    /// Changes a document. Paths that lead through texts or numbers change nothing, nor do those that are too long.
    pub fn apply(&self, document: &mut Value) {
        if let Some(patch) = &self.merge {
            merge(document, patch.clone());
        }
        for (place, steps) in self.set.iter().filter_map(|place| Some((place, few_steps(&place.path)?))) {
            set(document, &steps, place.value.clone());
        }
        for steps in self.remove.iter().filter_map(|path| few_steps(path)) {
            remove(document, &steps);
        }
    }

    /// The same change with its texts rewritten: paths, and texts in values.
    pub fn with_texts(&self, rewrite: &dyn Fn(&str) -> String) -> Self {
        Self {
            merge: self.merge.as_ref().map(|patch| with_texts(patch, rewrite)),
            set: self
                .set
                .iter()
                .map(|place| PathValue {
                    path: rewrite(&place.path),
                    value: with_texts(&place.value, rewrite),
                })
                .collect(),
            remove: self.remove.iter().map(|path| rewrite(path)).collect(),
        }
    }
}

/// A value with all its texts rewritten.
fn with_texts(value: &Value, rewrite: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => rewrite(text).into(),
        Value::Array(items) => items.iter().map(|item| with_texts(item, rewrite)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(member, value)| (rewrite(member), with_texts(value, rewrite)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// Most steps of a path. Azure's deepest members are some twelve steps down, and readers descend a document by
/// recursion.
pub const MAX_STEPS: usize = 32;

fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|step| !step.is_empty())
}

/// The steps of a path that is not too long.
fn few_steps(path: &str) -> Option<Vec<&str>> {
    let few: Vec<&str> = steps(path).take(MAX_STEPS + 1).collect();
    (few.len() <= MAX_STEPS).then_some(few)
}

fn short_path<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let path = String::deserialize(input)?;
    if few_steps(&path).is_none() {
        return Err(D::Error::custom(format_args!("a path has at most {MAX_STEPS} steps")));
    }
    Ok(path)
}

fn short_paths<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    let paths: Vec<String> = Vec::deserialize(input)?;
    paths.into_iter().map(|path| short_path(path.into_deserializer())).collect()
}

/// The index of a step in an array: an item of that name, or of that number.
fn position(items: &[Value], step: &str) -> Option<usize> {
    let named = |item: &Value| {
        item.get("name").and_then(Value::as_str).is_some_and(|name| name.eq_ignore_ascii_case(step))
    };
    items.iter().position(named).or_else(|| step.parse().ok().filter(|at| *at < items.len()))
}

fn set(document: &mut Value, steps: &[&str], mut value: Value) {
    let Some((step, rest)) = steps.split_first() else {
        *document = value;
        return;
    };
    match document {
        Value::Array(items) => {
            let at = position(items, step).unwrap_or_else(|| {
                items.push(Value::Null);
                items.len() - 1
            });
            let Some(item) = items.get_mut(at) else { return };
            let names_itself = step.parse::<usize>().is_ok() || *step == "-";
            if rest.is_empty() {
                if let (Value::Object(members), false) = (&mut value, names_itself) {
                    members.entry("name").or_insert_with(|| Value::from(*step));
                }
                *item = value;
            } else {
                if item.is_null() && !names_itself {
                    *item = serde_json::json!({ "name": step });
                }
                set(item, rest, value);
            }
        }
        Value::Null => {
            *document = Value::Object(serde_json::Map::new());
            set(document, steps, value);
        }
        Value::Object(members) => {
            set(members.entry(*step).or_insert(Value::Null), rest, value);
        }
        _ => {}
    }
}

fn remove(document: &mut Value, steps: &[&str]) {
    let Some((step, rest)) = steps.split_first() else { return };
    match (document, rest.is_empty()) {
        (Value::Array(items), last) => {
            let Some(at) = position(items, step) else { return };
            if last {
                items.remove(at);
            } else if let Some(item) = items.get_mut(at) {
                remove(item, rest);
            }
        }
        (Value::Object(members), true) => {
            members.remove(*step);
        }
        (Value::Object(members), false) => {
            if let Some(member) = members.get_mut(*step) {
                remove(member, rest);
            }
        }
        _ => {}
    }
}

/// All values at a path; a step `*` stands for every item of an array or member of an object.
pub fn find<'a>(document: &'a Value, path: &str) -> Vec<&'a Value> {
    steps(path).fold(vec![document], |found, step| {
        found
            .into_iter()
            .flat_map(|value| match value {
                Value::Array(items) if step == "*" => items.iter().collect::<Vec<_>>(),
                Value::Array(items) => {
                    position(items, step).and_then(|at| items.get(at)).into_iter().collect()
                }
                Value::Object(members) if step == "*" => members.values().collect(),
                Value::Object(members) => members.get(step).into_iter().collect(),
                _ => Vec::new(),
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Edit, find};

    #[test]
    fn edits_find_items_by_name_and_make_what_is_missing() {
        let before = json!({ "tags": { "a": "1" }, "properties": { "rules": [{ "name": "x", "n": 1 }, { "name": "y" }] } });
        let edited = |edit: Edit| {
            let mut document = before.clone();
            edit.apply(&mut document);
            document
        };
        assert_eq!(
            edited(Edit::merging(json!({ "tags": { "a": null, "b": "2" } })))["tags"],
            json!({ "b": "2" })
        );
        let after = edited(Edit::setting("properties/rules/X/n", json!(2)));
        assert_eq!(after["properties"]["rules"][0], json!({ "name": "x", "n": 2 }));
        let after = edited(Edit::setting("properties/rules/z", json!({ "n": 3 })));
        assert_eq!(after["properties"]["rules"][2], json!({ "name": "z", "n": 3 }));
        let after = edited(Edit::setting("properties/rules/-", json!({ "name": "w" })));
        assert_eq!(after["properties"]["rules"].as_array().unwrap().len(), 3);
        let after = edited(Edit::setting("properties/more/deep", json!(true)));
        assert_eq!(after["properties"]["more"], json!({ "deep": true }));
        assert_eq!(
            edited(Edit::removing("properties/rules/x"))["properties"]["rules"],
            json!([{ "name": "y" }])
        );
        assert_eq!(edited(Edit::removing("properties/rules/none/n")), before);
        assert_eq!(edited(Edit::setting("tags/a/deeper", json!(1))), before, "through a text");
        let long = "a/".repeat(1_000_000);
        assert_eq!(edited(Edit::setting(&long, json!(1))), before, "too long");
        assert_eq!(edited(Edit::removing(&long)), before, "too long");
        for sent in [json!({ "set": [{ "path": long, "value": 1 }] }), json!({ "remove": [long] })] {
            let refused = serde_json::from_value::<Edit>(sent).unwrap_err().to_string();
            assert!(refused.contains("at most 32 steps"), "{refused}");
        }
    }

    #[test]
    fn paths_with_stars_lead_to_many() {
        let document = json!({ "rules": [{ "p": { "access": "Allow" } }, { "p": { "access": "Deny" } }] });
        assert_eq!(find(&document, "rules/*/p/access"), [&json!("Allow"), &json!("Deny")]);
        assert!(find(&document, "rules/*/none").is_empty());
    }
}
