//! Custom resources: pruning, defaulting and validation by their schema.
//!
//! The order is the API server's: unknown members are removed, then nulls that the schema does not allow, and defaults
//! are set; then values are validated against the schema, lists are checked for duplicates, and rules are evaluated.
//! Invalid parts that an update does not change are accepted (KEP-4008, ratcheting).

pub(crate) mod cel;
mod correlate;
mod defaults;
mod formats;
mod rules;
mod uniqueness;
mod values;

use serde_json::Value;

use super::{Causes, Invalid};
use crate::registry::Kind;
use crate::schema::Schema;
use crate::schema::decode::remove_unknown;

/// Brings an object into its stored form: members that the schema does not know are removed, and missing members with a
/// default are set.
pub(crate) fn settle(tree: &Schema, object: &mut Value) {
    prune(tree, object);
    defaults::apply(tree, object);
}

/// Removes members that the schema does not know, and nulls that it does not allow.
pub(crate) fn prune(tree: &Schema, object: &mut Value) {
    remove_unknown(tree, object);
    defaults::drop_nulls(tree, object);
}

/// Validates an object that will be created or will replace `old`.
pub(super) fn validate(kind: &Kind, old: Option<&Value>, object: &Value, causes: &mut Causes) {
    let tree = kind.tree();
    let before = causes.0.len();
    values::validate(tree, old, object, causes);
    scale(kind, object, causes);
    let was_unique = old.is_none_or(|old| {
        let mut causes = Causes::default();
        uniqueness::validate(tree, old, &mut causes);
        causes.are_none()
    });
    if was_unique {
        uniqueness::validate(tree, object, causes);
    }
    // Rules are evaluated on structurally valid values alone.
    const BLOCKING: &[&str] = &["Required value", "Too long", "Too many"];
    let blocks = |cause: &Invalid| {
        BLOCKING.iter().any(|class| cause.message.starts_with(class)) || cause.is_wrong_type()
    };
    if causes.0.iter().skip(before).any(blocks) {
        if rules::any(tree) {
            causes.push(Invalid::text(
                "<nil>",
                "null",
                "some validation rules were not checked because the object was invalid; correct the existing errors to \
                 complete validation",
            ));
        }
    } else {
        rules::validate(tree, old, object, causes);
    }
}

/// The numbers of the `scale` subresource must be valid numbers of pods, whatever their path is.
fn scale(kind: &Kind, object: &Value, causes: &mut Causes) {
    let Some(paths) = &kind.scale_paths else { return };
    for path in [&paths.replicas, &paths.actual] {
        let found = path.iter().try_fold(object, |value, name| value.get(name));
        let Some(count) = found.and_then(Value::as_i64) else { continue };
        let why = match count {
            ..0 => "should be a non-negative integer".to_owned(),
            _ if i32::try_from(count).is_err() => format!("should be less than or equal to {}", i32::MAX),
            _ => continue,
        };
        causes.push(Invalid::value(format!(".{}", path.join(".")), &count.to_string(), &why));
    }
}

/// The errors in the default of a schema.
pub(super) fn validate_default(tree: &Schema, default: &Value) -> Vec<Invalid> {
    let mut causes = Causes::default();
    values::validate(tree, None, default, &mut causes);
    causes.0
}

#[cfg(test)]
mod tests;
