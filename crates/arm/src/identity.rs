//! The transport under `azure_identity`, and what it mends on the way.
//!
//! Two flaws of version 1.0 (`rust-stack.md` 2.2) lose what the authority says: an error whose
//! description holds any JSON escape does not parse, and an answer of the instance metadata service
//! must spell numbers as text. Here the authority's refusal is taken note of before the library sees
//! it, and answers are put into the shape that the library reads.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::headers::{HeaderName, HeaderValue as CoreValue, Headers};
use azure_core::http::{AsyncRawResponse, Body, HttpClient, Request, StatusCode};
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use crate::Transport;

/// What an authority refused, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: Option<String>,
    pub(crate) description: String,
}

/// The HTTP client of one credential.
pub(crate) struct IdentityClient {
    transport: Transport,
    last: Arc<Mutex<Option<Refusal>>>,
}

impl IdentityClient {
    pub(crate) fn new(transport: Transport, last: Arc<Mutex<Option<Refusal>>>) -> Self {
        Self { transport, last }
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
        self.last.lock().take();
        let answer = self
            .transport
            .send(outgoing)
            .await
            .map_err(|error| azure_core::Error::with_message(ErrorKind::Io, error.to_string()))?;
        let (parts, body) = answer.into_parts();
        let status = parts.status.as_u16();
        let body = if parts.status.is_success() {
            readable_token(body)
        } else {
            let refusal = read_refusal(status, &body);
            let plain = plain_refusal(&refusal);
            *self.last.lock() = Some(refusal);
            plain
        };
        let mut headers = Headers::new();
        for (name, value) in &parts.headers {
            if let Ok(value) = value.to_str() {
                headers.insert(HeaderName::from(name.as_str().to_owned()), CoreValue::from(value.to_owned()));
            }
        }
        Ok(AsyncRawResponse::from_bytes(StatusCode::from(status), headers, body))
    }
}

/// Reads an authority's error. Its body holds no secret: codes, a description, ids of the request.
fn read_refusal(status: u16, body: &[u8]) -> Refusal {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(crate::error::one_line);
    let description =
        text("error_description").or_else(|| text("error")).unwrap_or_else(|| format!("status {status}"));
    let number = value.pointer("/error_codes/0").and_then(Value::as_u64).map(|code| format!("AADSTS{code}"));
    let word = description.split(':').next().filter(|word| word.starts_with("AADSTS")).map(str::to_owned);
    Refusal { status, code: number.or(word), description }
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

/// A token answer in the one shape that each of the library's credentials reads: seconds as numbers for
/// the authority's, `expires_on` as text with type and resource beside it for the metadata service's.
fn readable_token(body: Bytes) -> Bytes {
    let Ok(Value::Object(mut token)) = serde_json::from_slice::<Value>(&body) else { return body };
    if !token.contains_key("access_token") {
        return body;
    }
    let managed = token.contains_key("expires_on");
    if managed {
        if let Some(Value::Number(number)) = token.get("expires_on").cloned() {
            token.insert("expires_on".into(), Value::String(number.to_string()));
        }
        token.entry("token_type").or_insert_with(|| "Bearer".into());
        token.entry("resource").or_insert_with(|| "".into());
    } else {
        for name in ["expires_in", "ext_expires_in"] {
            let seconds =
                token.get(name).and_then(Value::as_str).and_then(|text| text.trim().parse::<i64>().ok());
            if let Some(seconds) = seconds {
                token.insert(name.into(), seconds.into());
            }
        }
    }
    Bytes::from(Value::Object(token).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_keep_code_and_description_whatever_the_escapes() {
        let body = br#"{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client \"secret\" provided.\r\nTrace ID: x","error_codes":[7000215]}"#;
        let refusal = read_refusal(401, body);
        assert_eq!(refusal.code.as_deref(), Some("AADSTS7000215"));
        assert_eq!(refusal.description, "AADSTS7000215: Invalid client \"secret\" provided. Trace ID: x");
        let plain = plain_refusal(&refusal);
        assert!(!plain.contains(&b'\\'));
        let read: Value = serde_json::from_slice(&plain).unwrap();
        assert_eq!(read["error_codes"][0], 7000215);
        assert_eq!(
            read_refusal(400, br#"{"error":"invalid_request","error_description":"Identity not found"}"#)
                .code,
            None
        );
        assert_eq!(read_refusal(502, b"<html>").description, "status 502");
    }

    #[test]
    fn tokens_are_put_into_the_expected_shape() {
        let read = |text: &str| -> Value {
            serde_json::from_slice(&readable_token(text.to_owned().into())).unwrap()
        };
        let managed = read(r#"{"access_token":"t","expires_on":1506484173}"#);
        assert_eq!(managed["expires_on"], "1506484173");
        assert_eq!(managed["token_type"], "Bearer");
        let authority = read(r#"{"access_token":"t","expires_in":"3599"}"#);
        assert_eq!(authority["expires_in"], 3599);
        assert_eq!(readable_token(Bytes::from_static(b"no json")), Bytes::from_static(b"no json"));
    }
}
