//! Validates objects by a structural schema.

use serde_json::Value;

use super::{rules, uniqueness, values};
use crate::object::invalid::{Causes, Invalid};
use crate::schema::Schema;

/// Validates the values of an object that will be created or will replace `old`.
pub(crate) fn validate_values(tree: &Schema, old: Option<&Value>, object: &Value, causes: &mut Causes) {
    values::validate(tree, old, object, causes);
}

/// Validates the uniqueness of items, and the rules of the schema. `before` is the number of causes before the values
/// of this object were validated: rules are evaluated on structurally valid values alone.
pub(crate) fn validate_rules(
    tree: &Schema,
    old: Option<&Value>,
    object: &Value,
    before: usize,
    causes: &mut Causes,
) {
    let was_unique = old.is_none_or(|old| {
        let mut causes = Causes::default();
        uniqueness::validate(tree, old, &mut causes);
        causes.are_none()
    });
    if was_unique {
        uniqueness::validate(tree, object, causes);
    }
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

/// The errors in the default of a schema.
pub(crate) fn validate_default(tree: &Schema, default: &Value) -> Vec<Invalid> {
    let mut causes = Causes::default();
    values::validate(tree, None, default, &mut causes);
    causes.0
}
