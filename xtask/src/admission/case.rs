//! Cases of the corpus, and the values that they are made of.

use std::collections::BTreeMap;

use serde_json::Value;

/// A question: may this object be created, or may it be changed to that?
#[derive(Debug, Clone)]
pub struct Case {
    pub kind: String,
    /// The unique name in tables.
    pub name: String,
    pub old: Option<Value>,
    pub new: Value,
    /// Whether all feature gates are open.
    pub gates: bool,
}

impl Case {
    pub fn made(kind: &str, words: &str, new: Value) -> Self {
        Self { kind: kind.to_owned(), name: format!("{kind} {words}"), old: None, new, gates: false }
    }

    /// The same with all feature gates open.
    pub fn gated(&self) -> Self {
        Self { name: format!("{} with all gates", self.name), gates: true, ..self.clone() }
    }

    pub fn changed(kind: &str, words: &str, old: Value, new: Value) -> Self {
        Self { kind: kind.to_owned(), name: format!("{kind} {words}"), old: Some(old), new, gates: false }
    }
}

/// Values for fields, by the suffix of their path without numbers: first two valid ones, then edge cases.
#[derive(Debug, Default)]
pub struct Values(pub BTreeMap<String, Vec<Value>>);

impl Values {
    /// The values for the longest matching suffix of this path.
    pub fn at(&self, path: &str) -> Vec<Value> {
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

/// The section of a kind in `edges.yaml`.
#[derive(Debug)]
pub struct Edges {
    /// The object whose fields are set.
    pub base: Value,
    pub values: Values,
}
