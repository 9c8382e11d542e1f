//! From text to typed values: YAML or JSON, keys without regard to case, scalars coerced to text.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::keys::{self, ValueType};
use crate::secret::HIDDEN;
use crate::values::Word;
use crate::{ConfigError, Problem, Remedy, Secret};

/// Parses the text into a mapping. An empty document is an empty mapping.
pub(crate) fn parse(text: &str) -> Result<Map<String, Value>, ConfigError> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    // JSON first: installers write it, and it needs none of YAML's rules.
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
    // Snippets would quote lines of the document, which may contain a secret.
    let options = serde_saphyr::options! {
        with_snippet: false,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
    };
    let looks_like_json = text.trim_start().starts_with('{');
    match serde_saphyr::from_str_with_options::<Value>(text, options) {
        Ok(Value::Object(object))
            if looks_like_json && object.keys().any(|key| key.contains(['"', '\n'])) =>
        {
            // Such as a // comment, which this parser treats as a part of the next key.
        }
        Ok(value) => return Ok(value),
        Err(_) if looks_like_json => {}
        Err(yaml) => {
            let (line, column) = yaml.location().map_or((0, 0), |at| (at.line(), at.column()));
            return Err(syntax_error(text, line, column, &yaml.to_string()));
        }
    }
    Err(syntax_error(text, json.line() as u64, json.column() as u64, &json.to_string()))
}

fn syntax_error(text: &str, line: u64, column: u64, said: &str) -> ConfigError {
    let said = said.lines().next().unwrap_or_default();
    // Both parsers append the position, which is added here.
    let said = [" at line ", " (line ", "error: line "]
        .iter()
        .fold(said, |said, end| said.find(end).map_or(said, |at| &said[..at]));
    let what = if said.is_empty() || quotes(said, text) { "this cannot be read" } else { said };
    ConfigError::Syntax { line, column, key: key_before(text, line), what: what.to_owned() }
}

/// Whether a parser's message repeats a word of the document, which may be a secret.
fn quotes(said: &str, text: &str) -> bool {
    let words = |text: &str| -> std::collections::HashSet<String> {
        let split = text.split(|c: char| !c.is_alphanumeric());
        split.filter(|word| word.len() > 2).map(str::to_owned).collect()
    };
    !words(said).is_disjoint(&words(text))
}

/// The last known key on this line or above it.
fn key_before(text: &str, line: u64) -> Option<&'static str> {
    let lines: Vec<&str> = text.lines().take(usize::try_from(line).unwrap_or(usize::MAX)).collect();
    lines.iter().rev().find_map(|line| {
        let name = line.split(':').next()?.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        keys::find(name).map(|key| key.name)
    })
}

/// A mapping from which keys are taken one by one; the remaining ones are unknown.
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

    /// The unknown keys, and the spellings that another one shadows.
    pub(crate) fn remaining(self) -> (Vec<String>, Vec<String>) {
        (self.map.into_iter().map(|(key, _)| key).collect(), self.shadowed)
    }

    /// Takes the value of a key: the exact spelling if it exists, otherwise the last one that is equal without regard
    /// to case. Null counts as not set.
    fn take(&mut self, key: &str) -> Option<Value> {
        debug_assert!(self.path.is_some() || keys::find(key).is_some(), "{key} is not in the table of keys");
        let mut spellings: Vec<String> =
            self.map.keys().filter(|spelling| spelling.eq_ignore_ascii_case(key)).cloned().collect();
        let chosen = match spellings.iter().position(|spelling| spelling == key) {
            Some(exact) => spellings.swap_remove(exact),
            None => spellings.pop()?,
        };
        for other in spellings {
            self.map.remove(&other);
            self.shadowed.push(other);
        }
        self.map.remove(&chosen).filter(|value| !value.is_null())
    }

    fn wrong(&mut self, key: &str, value: &str, reason: &str, remedy: Remedy) {
        let key = self.path(key);
        self.problems.push(Problem::new(key, value, reason, remedy));
    }

    /// The full path of a key here.
    fn path(&self, key: &str) -> String {
        match &self.path {
            Some(path) => format!("{path}.{key}"),
            None => key.to_owned(),
        }
    }

    fn text(&mut self, key: &str, secret: bool) -> Option<String> {
        let value = self.take(key)?;
        match scalar_text(&value) {
            Some(text) => Some(text),
            None => {
                let shown = if secret { HIDDEN.to_owned() } else { shorten(&value) };
                let remedy = Remedy::give(&self.path(key), "a single value");
                self.wrong(key, &shown, "must be a text", remedy);
                None
            }
        }
    }

    /// A text; numbers and booleans are converted to text. Empty if not set.
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
                let meant = other.as_str().and_then(|text| text.parse::<bool>().ok());
                self.unquote(key, &other, meant, "must be true or false", "true or false, without quotes");
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
            let meant = value.as_str().and_then(|text| text.parse::<i64>().ok());
            self.unquote(key, &value, meant, "must be a whole number", "a whole number, without quotes");
            0
        })
    }

    /// A text, or the default if it is empty.
    pub(crate) fn string_or(&mut self, key: &str, default: &str) -> String {
        let text = self.string(key);
        if text.is_empty() { default.to_owned() } else { text }
    }

    /// A count; zero and below mean the default.
    pub(crate) fn count(&mut self, key: &str, default: u32) -> u32 {
        let value = self.integer(key);
        if value <= 0 { default } else { u32::try_from(value).unwrap_or(u32::MAX) }
    }

    /// Whole seconds; zero and below mean the default.
    pub(crate) fn seconds(&mut self, key: &str, default: u64) -> Duration {
        let value = u64::try_from(self.integer(key)).unwrap_or_default();
        Duration::from_secs(if value == 0 { default } else { value })
    }

    /// A port; 0 means the default.
    pub(crate) fn port(&mut self, key: &str, default: u16) -> u16 {
        let value = self.integer(key);
        if value == 0 {
            return default;
        }
        u16::try_from(value).unwrap_or_else(|_| {
            let remedy = Remedy::give(key, "a port from 1 to 65535");
            self.problems.push(Problem::new(key, value, "is not a port", remedy));
            default
        })
    }

    /// One of the key's words; an empty text means the default.
    pub(crate) fn word<T: Word>(&mut self, key: &str, default: T) -> T {
        let text = self.string(key);
        if text.is_empty() {
            return default;
        }
        T::parse(&text).unwrap_or_else(|| {
            self.not_a_word(key, &text, T::WORDS, &default.to_string());
            default
        })
    }

    /// A number; 0 when not set.
    pub(crate) fn float(&mut self, key: &str) -> f64 {
        let Some(value) = self.take(key) else { return 0.0 };
        value.as_f64().unwrap_or_else(|| {
            let meant = value.as_str().and_then(|text| text.parse::<f64>().ok()).filter(|f| f.is_finite());
            self.unquote(key, &value, meant, "must be a number", "a number, without quotes");
            0.0
        })
    }

    /// Refuses a value of the wrong type; one that is right except for its quotes is proposed without them.
    fn unquote<T: ToString>(&mut self, key: &str, value: &Value, meant: Option<T>, reason: &str, what: &str) {
        let path = self.path(key);
        let remedy = match meant {
            Some(meant) => Remedy::set(&path, meant.to_string()).note(", without quotes"),
            None => Remedy::give(&path, what),
        };
        self.wrong(key, &shorten(value), reason, remedy);
    }

    /// A mapping.
    pub(crate) fn object(&mut self, key: &str) -> Option<Map<String, Value>> {
        match self.take(key)? {
            Value::Object(object) => Some(object),
            other => {
                let remedy = Remedy::give(&self.path(key), "keys and values");
                self.wrong(key, &shorten(&other), "must be a mapping", remedy);
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
                let remedy = Remedy::give(&self.path(key), "a list of entries");
                self.wrong(key, &shorten(&other), "must be a list", remedy);
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
                let inner = format!("{key}.{name}");
                let remedy = Remedy::give(&inner, "a single value");
                self.wrong(&inner, &shorten(&value), "must be a text", remedy);
            }
        }
        pairs
    }

    /// Takes a key without an effect and validates its value by its type, since a new release should not make a
    /// document valid that is refused today. Returns whether the value differs from a neutral one: empty texts,
    /// `false`, 0 and the default are neutral.
    pub(crate) fn judge(&mut self, key: &str, value_type: ValueType, default: &str) -> bool {
        match value_type {
            ValueType::Any => self.take(key).is_some_and(|value| asks_for_something(&value)),
            ValueType::Text | ValueType::Secret => {
                let text = self.string(key);
                !text.is_empty() && text != default
            }
            ValueType::Boolean => self.boolean(key),
            ValueType::Whole => {
                let value = self.integer(key);
                value != 0 && value.to_string() != default
            }
            ValueType::Number => {
                let value = self.float(key);
                value != 0.0 && default.parse() != Ok(value)
            }
            ValueType::List => !self.list(key).is_empty(),
            ValueType::Mapping(inner) => self.object(key).is_some_and(|object| {
                let mut keys = Keys::new(object, Some(self.path(key)), self.problems);
                let judged: Vec<bool> =
                    inner.iter().map(|(name, value_type)| keys.judge(name, *value_type, "")).collect();
                judged.contains(&true)
            }),
            ValueType::MapOf(value_type) => self.object(key).is_some_and(|object| {
                let names: Vec<String> = object.keys().cloned().collect();
                let mut keys = Keys::new(object, Some(self.path(key)), self.problems);
                let judged: Vec<bool> = names.iter().map(|name| keys.judge(name, *value_type, "")).collect();
                judged.contains(&true)
            }),
        }
    }

    /// Refuses a text that is not one of the key's words, and proposes one that this release supports.
    fn not_a_word(&mut self, key: &str, text: &str, words: &[&str], proposed: &str) {
        let reason = format!("is not one of {}", words.join(", "));
        let remedy = Remedy::set(&self.path(key), proposed);
        self.wrong(key, &shorten(&Value::String(text.to_owned())), &reason, remedy);
    }
}

/// Whether a value is not empty.
fn asks_for_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(object) => !object.is_empty(),
    }
}

/// The text form of a scalar: a whole number keeps its digits, even if YAML parsed it as a float.
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

/// A value for a problem's text: short, and without nested values.
fn shorten(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
        Value::String(text) => format!("{:?}", text.chars().take(64).collect::<String>()),
        other => other.to_string(),
    }
}
