//! Locations: names of regions as documents and paths spell them.

use serde_json::Value;

use crate::document::Object;
use crate::refusal::{Code, Result};

/// `West Europe` and `westeurope` are one.
pub fn normal_location(location: &str) -> String {
    location.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

/// The location that a document names, normal.
///
/// # Errors
/// Refuses a document without one.
pub fn location_of(body: &Object) -> Result<String> {
    body.get("location").and_then(Value::as_str).map(normal_location).ok_or_else(|| {
        Code::azures(400, "LocationRequired").says("The location property is required for this definition.")
    })
}
