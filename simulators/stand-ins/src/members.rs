//! Reads members of objects as the types that they should have.

use jiff::Timestamp;
use serde_json::Value;

/// A text; empty if there is no text.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A list; empty if there is no list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A number; 0 if there is no number.
pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// A time.
pub fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// A time as objects carry it: whole seconds.
pub fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
