//! Refusals as the vault's host words them.

use azure_engine::answer::data_plane::{DataAnswer, DataRequest};
use azure_engine::provider::AzureState;
use azure_engine::refusal::Refusal;
use serde_json::json;

/// The answer to a refused request.
pub(super) fn refuse(_azure: &AzureState, request: &DataRequest<'_>, refusal: &Refusal) -> DataAnswer {
    let mut error = json!({ "code": refusal.code, "message": refusal.message });
    if refusal.status == 401 {
        let what = match request.headers.contains_key("authorization") {
            true => format!("AKV10032: {}", refusal.message),
            false => "AKV10000: Request is missing a Bearer or PoP token.".to_owned(),
        };
        error = json!({ "code": "Unauthorized", "message": what });
    }
    if let Some(inner) = refusal.extra.as_ref().and_then(|extra| extra.inner.as_ref()) {
        error["innererror"] = inner.clone();
    }
    DataAnswer::json(refusal.status, &json!({ "error": error }))
        .with("x-ms-keyvault-service-version", "1.9.0.0")
}
