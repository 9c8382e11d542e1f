//! Options that read files.

use std::path::Path;

use kubernetes_simulator::Token;
use serde::de::DeserializeOwned;

/// Reads a JSON file.
///
/// # Errors
/// The file's name, and what is wrong with it.
pub fn json<T: DeserializeOwned>(path: &str) -> Result<T, String> {
    let text = std::fs::read_to_string(Path::new(path)).map_err(|error| format!("{path}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))
}

/// Reads a JSON file with one item or a list of them.
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

/// A chosen secret, instead of a random one.
///
/// # Errors
/// It is empty or has characters that are not allowed in HTTP headers.
pub fn secret(text: &str) -> Result<Token, String> {
    let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| Token::new(text)).ok_or_else(|| "must be printable ASCII without spaces".to_owned())
}

pub fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "must be a whole number from 1 on".to_owned())
}
