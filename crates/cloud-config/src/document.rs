//! From text to typed values: YAML or JSON, keys without regard to case, scalars coerced to text.
//!
//! Rules: `spec/config-and-cli.md`, section 1.1.

use serde_json::{Map, Value};

use crate::secret::HIDDEN;
use crate::{ConfigError, Problem, Secret};

/// Parses the text into a mapping. An empty document is an empty mapping.
pub(crate) fn parse(text: &str) -> Result<Map<String, Value>, ConfigError> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    // JSON first: it is what installers write, and it needs none of YAML's rules.
    let value = match serde_json::from_str::<Value>(text) {
        Ok(value) => value,
        Err(json) => parse_yaml(text, &json)?,
    };
    match value {
        Value::Object(object) => Ok(object),
        Value::Null => Ok(Map::new()),
        Value::Array(_) => Err(ConfigError::NotAMapping { found: "a list" }),
        Value::String(_) => Err(ConfigError::NotAMapping { found: "a text" }),
        Value::Bool(_) | Value::Number(_) => Err(ConfigError::NotAMapping { found: "a bare value" }),
    }
}

fn parse_yaml(text: &str, json: &serde_json::Error) -> Result<Value, ConfigError> {
    // Snippets would quote lines of the document, and a line may hold a secret.
    let options = serde_saphyr::options! {
        with_snippet: false,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
    };
    serde_saphyr::from_str_with_options::<Value>(text, options).map_err(|yaml| {
        if text.trim_start().starts_with('{') {
            return ConfigError::Syntax { line: json.line() as u64, column: json.column() as u64 };
        }
        let (line, column) = yaml.location().map_or((0, 0), |at| (at.line(), at.column()));
        ConfigError::Syntax { line, column }
    })
}

/// A mapping that is emptied key by key; what remains is unknown.
pub(crate) struct Keys<'a> {
    map: Map<String, Value>,
    path: Option<String>,
    shadowed: Vec<String>,
    problems: &'a mut Vec<Problem>,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(map: Map<String, Value>, path: Option<String>, problems: &'a mut Vec<Problem>) -> Self {
        Self { map, path, shadowed: Vec::new(), problems }
    }

    pub(crate) fn problems(&mut self) -> &mut Vec<Problem> {
        self.problems
    }

    /// The keys that nobody asked for, and the spellings that another one hid.
    pub(crate) fn remaining(self) -> (Vec<String>, Vec<String>) {
        (self.map.into_iter().map(|(key, _)| key).collect(), self.shadowed)
    }

    /// Takes the value of a key: the exact spelling if it is there, else the last one that is equal
    /// without regard to case. Null counts as not set.
    fn take(&mut self, key: &str) -> Option<Value> {
        let mut spellings: Vec<String> =
            self.map.keys().filter(|found| found.eq_ignore_ascii_case(key)).cloned().collect();
        let chosen = match spellings.iter().position(|found| found == key) {
            Some(exact) => spellings.swap_remove(exact),
            None => spellings.pop()?,
        };
        for other in spellings {
            self.map.remove(&other);
            self.shadowed.push(other);
        }
        self.map.remove(&chosen).filter(|value| !value.is_null())
    }

    fn wrong(&mut self, key: &str, value: &str, reason: &str, remedy: &str) {
        let key = match &self.path {
            Some(path) => format!("{path}.{key}"),
            None => key.to_owned(),
        };
        self.problems.push(Problem::new(key, value, reason, remedy));
    }

    fn text(&mut self, key: &str, secret: bool) -> Option<String> {
        let value = self.take(key)?;
        match scalar_text(&value) {
            Some(text) => Some(text),
            None => {
                let shown = if secret { HIDDEN.to_owned() } else { shorten(&value) };
                self.wrong(key, &shown, "must be a text", "write a single value");
                None
            }
        }
    }

    /// A text; numbers and booleans give their text form. Empty when not set.
    pub(crate) fn string(&mut self, key: &str) -> String {
        self.text(key, false).unwrap_or_default()
    }

    /// A secret text.
    pub(crate) fn secret(&mut self, key: &str) -> Secret {
        Secret::new(self.text(key, true).unwrap_or_default())
    }

    /// True or false; false when not set.
    pub(crate) fn boolean(&mut self, key: &str) -> bool {
        self.optional_boolean(key).unwrap_or(false)
    }

    /// True, false or not set.
    pub(crate) fn optional_boolean(&mut self, key: &str) -> Option<bool> {
        match self.take(key)? {
            Value::Bool(value) => Some(value),
            other => {
                self.wrong(
                    key,
                    &shorten(&other),
                    "must be true or false",
                    "write true or false without quotes",
                );
                None
            }
        }
    }

    /// A whole number; 0 when not set.
    pub(crate) fn integer(&mut self, key: &str) -> i64 {
        let Some(value) = self.take(key) else { return 0 };
        let whole = value.as_i64().or_else(|| {
            // 2^53: below it every whole float is exact.
            value.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9_007_199_254_740_992.0).map(|f| f as i64)
        });
        whole.unwrap_or_else(|| {
            self.wrong(key, &shorten(&value), "must be a whole number", "write digits without quotes");
            0
        })
    }

    /// A number; 0 when not set.
    pub(crate) fn float(&mut self, key: &str) -> f64 {
        let Some(value) = self.take(key) else { return 0.0 };
        value.as_f64().unwrap_or_else(|| {
            self.wrong(key, &shorten(&value), "must be a number", "write a number without quotes");
            0.0
        })
    }

    /// A mapping.
    pub(crate) fn object(&mut self, key: &str) -> Option<Map<String, Value>> {
        match self.take(key)? {
            Value::Object(object) => Some(object),
            other => {
                self.wrong(key, &shorten(&other), "must be a mapping", "write keys and values below it");
                None
            }
        }
    }

    /// A list; empty when not set.
    pub(crate) fn list(&mut self, key: &str) -> Vec<Value> {
        match self.take(key) {
            None => Vec::new(),
            Some(Value::Array(list)) => list,
            Some(other) => {
                self.wrong(key, &shorten(&other), "must be a list", "write a list of entries");
                Vec::new()
            }
        }
    }

    /// A mapping from texts to texts.
    pub(crate) fn text_map(&mut self, key: &str) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        for (name, value) in self.object(key).unwrap_or_default() {
            if value.is_null() {
                pairs.push((name, String::new()));
            } else if let Some(text) = scalar_text(&value) {
                pairs.push((name, text));
            } else {
                let shown = shorten(&value);
                self.wrong(&format!("{key}.{name}"), &shown, "must be a text", "write a single value");
            }
        }
        pairs
    }
}

/// The text form of a scalar: a whole number keeps its digits, also when YAML read it as a float.
fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) => Some(match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                format!("{float:.0}")
            }
            _ => number.to_string(),
        }),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A value as shown in a problem: short, and nothing of nested values.
fn shorten(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
        Value::String(text) => format!("{:?}", text.chars().take(64).collect::<String>()),
        other => other.to_string(),
    }
}
