//! Each attempt at a request as a span, with the names and attributes of Azure's SDK for Go. No log subscribes to this
//! target: the span is created only where the program exports traces, and costs nothing elsewhere.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, Request, Uri};
use tracing::field::{Empty, display};
use tracing::{Span, info_span};
use uuid::Uuid;

use crate::Purpose;
use crate::call::{Call, request_id};
use crate::correlation;
use crate::error::ServiceError;
use crate::meter;

/// An attempt that begins now. Queries are left out: those of operations and of pages contain proofs of identity.
pub(crate) fn of(call: &Call<'_>, repeated: u32, waited: Duration) -> Span {
    let id = correlation::id();
    info_span!(
        target: "spans::azure",
        "HTTP",
        otel.name = %format_args!("HTTP {}", call.method),
        otel.kind = "client",
        otel.status_code = Empty,
        otel.status_description = Empty,
        http.method = %call.method,
        http.url = %WithoutQuery(&call.uri),
        http.status_code = Empty,
        http.resend_count = (repeated > 0).then_some(i64::from(repeated)),
        net.peer.name = call.uri.host(),
        url.path = call.uri.path(),
        az.service_request_id = Empty,
        "x-ms-client-request-id" = Empty,
        "x-ms-correlation-request-id" = id.as_ref().and_then(|id| id.to_str().ok()),
        purpose = call.purpose.as_str(),
        waited_ms = i64::try_from(waited.as_millis()).ok(),
    )
}

/// The header by which Azure's own traces find a request.
const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");

/// Gives a request an ID of its own, if it is traced.
pub(crate) fn identify(span: &Span, request: &mut Request<Bytes>) {
    if span.is_disabled() {
        return;
    }
    let id = Uuid::new_v4().to_string();
    span.record(CLIENT_REQUEST_ID.as_str(), &id);
    // Digits and hyphens are a valid header value.
    if let Ok(id) = HeaderValue::try_from(id) {
        request.headers_mut().insert(CLIENT_REQUEST_ID, id);
    }
}

/// Records that there was no answer.
pub(crate) fn unanswered(span: &Span, reason: &str) {
    span.record("otel.status_code", "error");
    span.record("otel.status_description", reason);
}

/// Records an answer of any kind.
pub(crate) fn answered(span: &Span, status: u16, headers: &HeaderMap) {
    // Only signed numbers stay numbers in the export.
    span.record("http.status_code", i64::from(status));
    if let Some(id) = request_id(headers) {
        span.record("az.service_request_id", id);
    }
}

/// Records that the answer is an error.
pub(crate) fn refused(span: &Span, purpose: Purpose, error: &ServiceError) {
    if !meter::is_answer(purpose, error.status) {
        span.record("otel.status_code", "error");
        span.record("otel.status_description", display(&error.code));
    }
}

/// A URL without its query.
struct WithoutQuery<'a>(&'a Uri);

impl fmt::Display for WithoutQuery<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, host) = (self.0.scheme_str().unwrap_or_default(), self.0.authority());
        write!(f, "{scheme}://{}{}", host.map_or("", |host| host.as_str()), self.0.path())
    }
}
