//! Rules that many kinds have for a member.

use serde_json::Value;

use crate::kinds::shared::names::qualified_name;
use crate::object::invalid::{Causes, Invalid};
use crate::object::pointer::{members, text_at};
use crate::object::quantity::Quantity;

/// Validates a member with a fixed set of values.
pub(crate) fn one_of(object: &Value, pointer: &str, supported: &[&str], causes: &mut Causes) {
    let value = text_at(object, pointer);
    let field = pointer.trim_start_matches('/').replace('/', ".");
    if value.is_empty() {
        causes.push(Invalid::required(field, ""));
    } else {
        causes.check_one_of(field, value, supported);
    }
}

/// Validates that a member is a text that is not empty.
pub(crate) fn required(object: &Value, pointer: &str, causes: &mut Causes) {
    if text_at(object, pointer).is_empty() {
        causes.push(Invalid::required(pointer.trim_start_matches('/').replace('/', "."), ""));
    }
}

/// Validates that a number is not negative.
pub(crate) fn not_negative(object: &Value, pointer: &str, causes: &mut Causes) {
    if let Some(number) = object.pointer(pointer).and_then(Value::as_i64)
        && number < 0
    {
        let field = pointer.trim_start_matches('/').replace('/', ".");
        causes.push(Invalid::value(field, number, "must be greater than or equal to 0"));
    }
}

/// Validates a map of resources to quantities.
pub(crate) fn amounts(object: &Value, pointer: &str, causes: &mut Causes) {
    let field = pointer.trim_start_matches('/').replace('/', ".");
    for (resource, amount) in members(object, pointer) {
        let text = amount.as_str().unwrap_or_default();
        let at = format!("{field}[{resource}]");
        causes.check(at.as_str(), resource, qualified_name);
        if Quantity::parse(text).is_some_and(|amount| amount.nanos() < 0) {
            causes.push(Invalid::text(at, text, "must be greater than or equal to 0"));
        }
    }
}
