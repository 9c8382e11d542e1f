//! The transport below `azure_identity`, and the fixes that it applies.
//!
//! Two bugs of version 1.0 lose the authority's answer: an error whose description contains any JSON escape does not
//! parse, and an answer of the instance metadata service must spell numbers as text. So the authority's refusal is
//! recorded before the library sees it, and answers are converted to the form that the library reads.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::headers::{HeaderName, HeaderValue as CoreValue, Headers};
use azure_core::http::{AsyncRawResponse, Body, HttpClient, Request, StatusCode};
use bytes::Bytes;
use clock::Clock;
use parking_lot::Mutex;
use serde_json::Value;

use crate::Transport;

/// No authority has a reason to ask for a longer pause, and the library would sleep for as long as requested.
const MAX_RETRY_AFTER_SECONDS: u64 = 60;
/// No token is valid for longer; a larger figure is an authority's mistake, and the library adds it to a date.
const MAX_LIFETIME_SECONDS: i64 = 30 * 24 * 3600;

/// Why an authority gave no token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuthorityFailure {
    /// It answered with an error.
    Refused(Refusal),
    /// It could not be reached.
    Unreachable(String),
}

/// The refusal of an authority, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: Option<String>,
    /// Without the request IDs, which differ each time.
    pub(crate) description: String,
    /// The request IDs.
    pub(crate) request_id: Option<String>,
}

/// The last answer of an authority.
#[derive(Default)]
pub(crate) struct LastAnswer {
    /// Why it gave no token.
    pub(crate) failure: Option<AuthorityFailure>,
    /// The expiry of the token, since 1970. The library gets an expired token: otherwise it would return its own cached
    /// copy of a token that Azure rejects until it expires.
    pub(crate) expires: Option<Duration>,
}

/// The HTTP client of one credential.
pub(crate) struct IdentityClient {
    transport: Transport,
    last: Arc<Mutex<LastAnswer>>,
    /// Whether it was logged that the authority does not answer: the library retries silently for minutes.
    is_told: AtomicBool,
}

impl IdentityClient {
    pub(crate) fn new(transport: Transport, last: Arc<Mutex<LastAnswer>>) -> Self {
        Self { transport, last, is_told: AtomicBool::new(false) }
    }
}

impl fmt::Debug for IdentityClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdentityClient")
    }
}

#[async_trait]
impl HttpClient for IdentityClient {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let other = |text: String| azure_core::Error::with_message(ErrorKind::Other, text);
        let mut outgoing =
            http::Request::builder().method(request.method().as_str()).uri(request.url().as_str());
        for (name, value) in request.headers().iter() {
            outgoing = outgoing.header(name.as_str(), value.as_str());
        }
        let body = match request.body() {
            Body::Bytes(bytes) => bytes.clone(),
            Body::SeekableStream(_) => return Err(other("token requests have no streams".into())),
        };
        let outgoing = outgoing.body(body).map_err(|error| other(error.to_string()))?;
        *self.last.lock() = LastAnswer::default();
        let host = request.url().host_str().unwrap_or_default();
        let answer = self.transport.send(outgoing).await.map_err(|error| {
            let reason = no_answer(host, &error.to_string());
            if !self.is_told.swap(true, Ordering::Relaxed) {
                tracing::warn!("{reason}; trying again for up to two minutes");
            }
            self.last.lock().failure = Some(AuthorityFailure::Unreachable(reason.clone()));
            azure_core::Error::with_message(ErrorKind::Io, reason)
        })?;
        let (parts, body) = answer.into_parts();
        let status = parts.status.as_u16();
        let body = if parts.status.is_success() {
            let now = Clock::system().since_1970();
            let (token, expires) = readable_token(&body, now).ok_or_else(|| {
                let description = format!("{host} answered without a token");
                let refusal =
                    Refusal { status, code: None, description: description.clone(), request_id: None };
                self.last.lock().failure = Some(AuthorityFailure::Refused(refusal));
                azure_core::Error::with_message(ErrorKind::Credential, description)
            })?;
            self.last.lock().expires = Some(expires);
            token
        } else {
            let refusal = read_refusal(status, host, &body);
            let plain = plain_refusal(&refusal);
            self.last.lock().failure = Some(AuthorityFailure::Refused(refusal));
            plain
        };
        let mut headers = Headers::new();
        for (name, value) in &parts.headers {
            if asks_too_much(name.as_str(), value) {
                continue;
            }
            if let Ok(value) = value.to_str() {
                headers.insert(HeaderName::from(name.as_str().to_owned()), CoreValue::from(value.to_owned()));
            }
        }
        Ok(AsyncRawResponse::from_bytes(StatusCode::from(status), headers, body))
    }
}

/// The instance metadata service.
const INSTANCE_METADATA: &str = "169.254.169.254";

/// The message that an authority does not answer, with possible causes.
fn no_answer(host: &str, error: &str) -> String {
    let remedy = match host {
        INSTANCE_METADATA => {
            "; useManagedIdentityExtension=true needs the instance metadata service: run the program on an Azure machine in \
             the host's network, or set it to false and give aadClientId and aadClientSecret"
        }
        _ => "",
    };
    format!("no answer from {host}: {error}{remedy}")
}

/// Parses an authority's error. Its body contains no secret: codes, a description, request IDs.
pub(crate) fn read_refusal(status: u16, host: &str, body: &[u8]) -> Refusal {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(crate::error::one_line);
    let description = text("error_description")
        .or_else(|| text("error"))
        .unwrap_or_else(|| format!("{host} answered without saying why"));
    let (description, request_id) = match description.find(" Trace ID: ") {
        Some(at) => (description[..at].to_owned(), Some(description[at..].trim().to_owned())),
        None => (description, text("trace_id")),
    };
    let number = value.pointer("/error_codes/0").and_then(Value::as_u64).map(|code| format!("AADSTS{code}"));
    let word = description.split(':').next().filter(|word| word.starts_with("AADSTS")).map(str::to_owned);
    Refusal { status, code: number.or(word), description, request_id }
}

/// Whether a header asks for a longer pause than an authority may. Dates are left unchanged: the library measures them
/// against now.
fn asks_too_much(name: &str, value: &http::HeaderValue) -> bool {
    let unit = match name {
        "retry-after" => 1,
        "retry-after-ms" | "x-ms-retry-after-ms" => 1000,
        _ => return false,
    };
    let number = value.to_str().ok().and_then(|text| text.trim().parse::<u64>().ok());
    number.is_some_and(|number| number / unit > MAX_RETRY_AFTER_SECONDS)
}

/// The refusal in a form that needs no JSON escapes.
fn plain_refusal(refusal: &Refusal) -> Bytes {
    let plain: String = refusal
        .description
        .chars()
        .map(|c| if matches!(c, '"' | '\\') || c.is_control() { '\'' } else { c })
        .collect();
    let codes: Vec<i32> = refusal
        .code
        .as_deref()
        .and_then(|code| code.strip_prefix("AADSTS")?.parse().ok())
        .into_iter()
        .collect();
    Bytes::from(serde_json::json!({"error_codes": codes, "error_description": plain}).to_string())
}

/// A token answer in the one form that each of the library's credentials reads: seconds as numbers for the authority's,
/// `expires_on` as text with type and resource for the metadata service's. Both say that the token has expired; the
/// real expiry is returned next to it, since 1970.
///
/// `None` if it contains no token.
pub(crate) fn readable_token(body: &[u8], now: Duration) -> Option<(Bytes, Duration)> {
    let Ok(Value::Object(mut token)) = serde_json::from_slice::<Value>(body) else { return None };
    token.get("access_token")?.as_str().filter(|token| !token.is_empty())?;
    let seconds = |value: &Value| match value {
        Value::String(text) => text.trim().parse::<i64>().ok(),
        number => number.as_i64(),
    };
    let lifetime = |seconds: i64| Duration::from_secs(seconds.clamp(0, MAX_LIFETIME_SECONDS).unsigned_abs());
    let mut expires = now;
    if let Some(left) = token.get("expires_in").and_then(seconds) {
        expires = now + lifetime(left);
        token.insert("expires_in".into(), 0.into());
        token.remove("ext_expires_in");
    }
    // The metadata service's answer also has a date.
    if let Some(date) = token.get("expires_on").and_then(seconds) {
        let left = date.saturating_sub(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
        expires = now + lifetime(left);
        token.insert("expires_on".into(), Value::String(now.as_secs().to_string()));
        token.entry("token_type").or_insert_with(|| "Bearer".into());
        token.entry("resource").or_insert_with(|| "".into());
    }
    Some((Bytes::from(Value::Object(token).to_string()), expires))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_keep_code_and_description_whatever_the_escapes() {
        let body = br#"{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client \"secret\" provided.\r\nTrace ID: x","error_codes":[7000215]}"#;
        let refusal = read_refusal(401, "login", body);
        assert_eq!(refusal.code.as_deref(), Some("AADSTS7000215"));
        assert_eq!(refusal.description, "AADSTS7000215: Invalid client \"secret\" provided.");
        assert_eq!(refusal.request_id.as_deref(), Some("Trace ID: x"));
        let plain = plain_refusal(&refusal);
        assert!(!plain.contains(&b'\\'));
        let read: Value = serde_json::from_slice(&plain).unwrap();
        assert_eq!(read["error_codes"][0], 7000215);
        assert_eq!(
            read_refusal(
                400,
                "login",
                br#"{"error":"invalid_request","error_description":"Identity not found"}"#
            )
            .code,
            None
        );
        assert_eq!(read_refusal(502, "login", b"<html>").description, "login answered without saying why");
    }

    #[test]
    fn a_silent_metadata_service_is_told_with_its_remedy() {
        let text = no_answer("169.254.169.254", "timed out");
        assert!(
            text.starts_with("no answer from 169.254.169.254: timed out; useManagedIdentityExtension=true")
        );
        assert_eq!(no_answer("login.example", "timed out"), "no answer from login.example: timed out");
    }

    #[test]
    fn tokens_are_put_into_the_expected_shape() {
        let now = Duration::from_secs(1_506_480_000);
        let read = |text: &str| -> (Value, u64) {
            let (token, expires) = readable_token(text.as_bytes(), now).unwrap();
            (serde_json::from_slice(&token).unwrap(), (expires - now).as_secs())
        };
        let longest = MAX_LIFETIME_SECONDS.unsigned_abs();
        for (answer, lifetime) in [
            (r#""expires_on":1506484173"#, 4173),
            (r#""expires_on":"1506484173""#, 4173),
            (r#""expires_on":"1506484173","expires_in":"86400""#, 4173),
            (r#""expires_on":"1""#, 0),
            (r#""expires_in":"3599""#, 3599),
            (r#""expires_in":3599"#, 3599),
            (r#""expires_in":9223372036854775807"#, longest),
            (r#""expires_in":-5"#, 0),
        ] {
            let (token, expires) = read(&format!(r#"{{"access_token":"t",{answer}}}"#));
            assert_eq!(expires, lifetime, "{answer}");
            if answer.contains("expires_on") {
                assert_eq!(
                    (&token["expires_on"], &token["token_type"]),
                    (&"1506480000".into(), &"Bearer".into())
                );
            } else {
                assert_eq!(token["expires_in"], 0, "{answer}");
            }
        }
        for none in ["no json", "[]", "{}", r#"{"access_token":""}"#, r#"{"access_token":5}"#] {
            assert_eq!(readable_token(none.as_bytes(), now), None, "{none}");
        }
    }
}
