//! `{scope}/providers/Microsoft.Authorization/permissions`: the caller's permissions at the scope.

use serde_json::json;

use super::access::permissions_at;
use azure_engine::answer::Answer;
use azure_engine::error::Refusal;
use azure_engine::provider::{AzureState, Extension};

/// Answers that request.
pub(super) fn answer(azure: &mut AzureState, asked: &Extension<'_>) -> Option<Result<Answer, Refusal>> {
    let [kind] = asked.segments else { return None };
    if !kind.eq_ignore_ascii_case("permissions") {
        return None;
    }
    Some(match asked.method {
        "GET" => Ok(Answer::ok(json!({ "value": permissions_at(azure, asked.caller, asked.scope) }))),
        other => Err(Refusal::method_not_allowed(other)),
    })
}
