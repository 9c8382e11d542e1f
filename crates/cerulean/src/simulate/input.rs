//! What options take from files.

use std::path::Path;

use serde::de::DeserializeOwned;

/// A JSON file.
///
/// # Errors
/// The file's name, and what is wrong with it.
pub fn json<T: DeserializeOwned>(path: &str) -> Result<T, String> {
    let text = std::fs::read_to_string(Path::new(path)).map_err(|error| format!("{path}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))
}

/// A JSON file with one thing or a list of them.
///
/// # Errors
/// As [`json`].
pub fn one_or_many<T: DeserializeOwned>(path: &str) -> Result<Vec<T>, String> {
    let list = match json(path)? {
        serde_json::Value::Array(list) => list,
        one => vec![one],
    };
    let things = list.into_iter().enumerate();
    things
        .map(|(index, thing)| {
            serde_json::from_value(thing).map_err(|error| format!("{path}: number {}: {error}", index + 1))
        })
        .collect()
}
