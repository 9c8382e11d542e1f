//! The values of a chart: nested maps, and the same as keys that are joined by dots.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

/// A chart's schema and its defaults.
#[derive(Debug)]
pub struct Chart {
    /// values.schema.json.
    pub schema: Value,
    /// values.yaml.
    pub defaults: Value,
}

/// A key that a chart knows.
#[derive(Debug, PartialEq)]
pub struct Key {
    /// What it is for.
    pub description: String,
    /// Its default; `None` without one.
    pub default: Option<Value>,
}

impl Key {
    /// Whether the schema says that it changes nothing.
    pub fn is_without_effect(&self) -> bool {
        self.description.contains("without effect")
    }
}

impl Chart {
    /// Reads a chart's folder.
    ///
    /// # Errors
    /// A file is missing or cannot be parsed.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let text = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))
        };
        let schema = serde_json::from_str(&text("values.schema.json")?).context("values.schema.json")?;
        let defaults = serde_saphyr::from_str(&text("values.yaml")?).context("values.yaml")?;
        Ok(Self { schema, defaults })
    }

    /// All keys by their paths. A map whose keys the schema does not list is a value of its own.
    pub fn keys(&self) -> BTreeMap<String, Key> {
        let mut found = BTreeMap::new();
        collect(&self.schema, Some(&self.defaults), "", &mut found);
        found
    }
}

fn collect(schema: &Value, default: Option<&Value>, path: &str, found: &mut BTreeMap<String, Key>) {
    let Some(properties) = schema["properties"].as_object() else {
        let description = schema["description"].as_str().unwrap_or_default().to_owned();
        found.insert(path.to_owned(), Key { description, default: default.cloned() });
        return;
    };
    for (name, property) in properties {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        collect(property, default.and_then(|default| default.get(name)), &path, found);
    }
}

/// Values under keys that are joined by dots, as nested maps.
#[cfg(test)]
pub fn nested<'a>(values: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Value {
    let mut all = serde_json::json!({});
    for (path, value) in values {
        let mut place = &mut all;
        for name in path.split('.') {
            if !place.is_object() {
                *place = serde_json::json!({});
            }
            place = &mut place[name];
        }
        *place = value.clone();
    }
    all
}

/// A value as a table shows it.
pub fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return String::new() };
    let text = value.to_string();
    if text.len() > 60 && !value.is_string() {
        "see [values.yaml](values.yaml)".to_owned()
    } else {
        format!("`{text}`")
    }
}
