//! POST `checkNameAvailability`, for resources whose names are hosts.

use azure_engine::document::text;
use azure_engine::provider::ProviderCall;
use serde_json::{Value, json};

/// The name that a call asks about; `None` for other calls.
pub(crate) fn asked<'a>(call: &ProviderCall<'a>) -> Option<&'a str> {
    match call.segments {
        [action] if call.method == "POST" && action.eq_ignore_ascii_case("checkNameAvailability") => {
            Some(text(call.body, "name").unwrap_or_default())
        }
        _ => None,
    }
}

/// That the name is free.
pub(crate) fn free() -> Value {
    json!({ "nameAvailable": true })
}

/// That the name cannot be had, and why.
pub(crate) fn refused(reason: &str, message: impl Into<String>) -> Value {
    json!({ "nameAvailable": false, "reason": reason, "message": message.into() })
}
