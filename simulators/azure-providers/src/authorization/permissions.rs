//! `{scope}/providers/Microsoft.Authorization/permissions`: the caller's permissions at the scope.

use serde_json::json;

use super::access::permissions_at;
use azure_engine::answer::Answer;
use azure_engine::provider::{AzureState, ExtensionRequest};
use azure_engine::refusal::Refusal;

/// Answers that request.
pub(super) fn answer(
    azure: &mut AzureState,
    request: &ExtensionRequest<'_>,
) -> Option<Result<Answer, Refusal>> {
    let [kind] = request.segments else { return None };
    if !kind.eq_ignore_ascii_case("permissions") {
        return None;
    }
    Some(match request.method {
        "GET" => Ok(Answer::ok(json!({ "value": permissions_at(azure, request.caller, request.scope) }))),
        other => Err(Refusal::method_not_allowed(other)),
    })
}
