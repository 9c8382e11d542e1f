//! `matchConditions`: a webhook is called only if all of these CEL expressions are true.

use kube_cel::cel::Value as Cel;
use serde_json::Value;

use crate::expression::{Program, compile};
use crate::object::{list_at, string_at};
use crate::structural::cel;

/// One condition. A condition that does not compile fails each time.
pub(super) struct Condition {
    expression: String,
    program: Result<Program, String>,
}

/// The conditions of a registered webhook.
pub(super) fn parse(webhook: &Value) -> Vec<Condition> {
    let expressions = list_at(webhook, &["matchConditions"]).iter();
    let expressions = expressions.filter_map(|condition| string_at(condition, &["expression"]));
    expressions.map(|text| Condition { expression: text.to_owned(), program: compile(text) }).collect()
}

/// Whether all conditions hold. A single false condition decides, whatever the others are.
///
/// # Errors
/// No condition is false, and one of them cannot be evaluated.
pub(super) fn all_hold(conditions: &[Condition], variables: &[(&str, &Value)]) -> Result<bool, String> {
    let mut failed = None;
    for Condition { expression, program } in conditions {
        let outcome = match program {
            Ok(program) => cel::evaluate_plain(program, variables).map_err(|error| error.to_string()),
            Err(why) => Err(why.clone()),
        };
        let why = match outcome {
            Ok(Cel::Bool(true)) => continue,
            Ok(Cel::Bool(false)) => return Ok(false),
            Ok(_) => "it is neither true nor false".to_owned(),
            Err(why) => why,
        };
        failed.get_or_insert_with(|| format!("expression '{expression}' resulted in error: {why}"));
    }
    failed.map_or(Ok(true), Err)
}
