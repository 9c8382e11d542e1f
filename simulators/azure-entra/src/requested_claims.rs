//! The parameter `claims` of a token request: the client's capabilities, and the answer to a challenge of continuous
//! access evaluation ("Claims challenges, claims requests and client capabilities").

use serde_json::Value;

/// The requested claims.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RequestedClaims {
    /// The client's capabilities, such as `CP1`: to answer challenges.
    pub(super) capabilities: Vec<String>,
    /// The second before which the token must not be issued.
    pub(super) not_before: Option<i64>,
}

/// How far ahead a token may begin, in seconds: a challenge names the end of the second it is from.
const MAX_SECONDS_AHEAD: i64 = 60;

impl RequestedClaims {
    /// Reads the form field; `None` if it is not a JSON object.
    pub(super) fn parse(text: &str, now: i64) -> Option<Self> {
        let claims: Value = serde_json::from_str(text).ok().filter(Value::is_object)?;
        let capabilities = claims.pointer("/access_token/xms_cc/values").and_then(Value::as_array);
        let capabilities = capabilities.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        let not_before = claims
            .pointer("/access_token/nbf/value")
            .and_then(|value| value.as_i64().or_else(|| value.as_str().and_then(|text| text.parse().ok())));
        let last = now.saturating_add(MAX_SECONDS_AHEAD);
        Some(Self {
            capabilities: capabilities.collect(),
            not_before: not_before.filter(|second| *second <= last),
        })
    }
}
