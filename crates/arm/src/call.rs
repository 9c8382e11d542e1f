//! One request to Azure, its report, and its answer.

use std::time::Duration;

use bytes::Bytes;
use clock::Clock;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Uri};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::correlation;
use crate::error::ServiceError;
use crate::meter;
use crate::request::Subject;
use crate::retry;
use crate::{CallObserver, CallRecord, Class, Error, Purpose};

/// One request, repeatable.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) body: Option<Bytes>,
    /// The condition of the request: the header, and its value.
    pub(crate) condition: Option<(HeaderName, HeaderValue)>,
    pub(crate) subject: &'a Subject,
    pub(crate) purpose: Purpose,
    pub(crate) class: Class,
}

/// An answer with a 2xx status.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl<'a> Call<'a> {
    /// A request without a body.
    pub(crate) fn of(method: Method, uri: Uri, subject: &'a Subject, purpose: Purpose, class: Class) -> Self {
        Self { method, uri, body: None, condition: None, subject, purpose, class }
    }

    pub(crate) fn get(uri: Uri, subject: &'a Subject, purpose: Purpose, class: Class) -> Self {
        Self::of(Method::GET, uri, subject, purpose, class)
    }

    pub(crate) fn request(
        &self,
        authorization: HeaderValue,
        user_agent: HeaderValue,
    ) -> http::Request<Bytes> {
        let mut request = http::Request::new(self.body.clone().unwrap_or_default());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        headers.insert(AUTHORIZATION, authorization);
        headers.insert(USER_AGENT, user_agent);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(id) = correlation::id() {
            headers.insert(correlation::HEADER, id);
        }
        if self.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some((name, value)) = &self.condition {
            headers.insert(name.clone(), value.clone());
        }
        request
    }

    pub(crate) fn error(&self, status: u16, headers: &HeaderMap, body: &[u8], clock: &Clock) -> ServiceError {
        let mut error = ServiceError {
            method: self.method.to_string(),
            subject: self.subject.short.clone(),
            resource: self.subject.resource.clone(),
            status,
            request_id: request_id(headers).map(str::to_owned),
            retry_after: retry::retry_after(headers, clock),
            ..ServiceError::default()
        };
        error.read_body(body);
        error
    }

    pub(crate) fn report(
        &self,
        observer: Option<&dyn CallObserver>,
        attempt: u32,
        waited: Duration,
        duration: Duration,
        answer: Option<(u16, &HeaderMap)>,
        error: Option<&ServiceError>,
    ) {
        let reason = match (answer, error) {
            (None, _) => Some("transport"),
            (Some(_), Some(error)) if error.code.is_empty() => Some("(no code)"),
            (Some(_), Some(error)) => Some(error.code.as_str()),
            (Some(_), None) => None,
        };
        let record = CallRecord {
            status: answer.map(|(status, _)| status),
            reason,
            request_id: answer.and_then(|(_, headers)| request_id(headers)),
            throttled: error.is_some_and(ServiceError::is_throttling),
            ..self.record(attempt, waited, duration)
        };
        meter::log(&record);
        if let Some(observer) = observer {
            observer.on_call(&record);
        }
    }

    /// Reports that the call is not sent, because the budget is closed.
    pub(crate) fn report_limited(&self, observer: Option<&dyn CallObserver>, waited: Duration) {
        if let Some(observer) = observer {
            observer.on_limited(&self.record(1, waited, Duration::ZERO));
        }
    }

    /// The record of an attempt without an answer.
    fn record(&self, attempt: u32, waited: Duration, duration: Duration) -> CallRecord<'_> {
        CallRecord {
            method: self.method.as_str(),
            resource_type: &self.subject.resource_type,
            resource_name: &self.subject.name,
            subscription: &self.subject.subscription,
            resource_group: self.subject.group.as_deref(),
            purpose: self.purpose,
            class: self.class,
            status: None,
            duration,
            waited,
            attempt,
            reason: None,
            request_id: None,
            throttled: false,
        }
    }
}

impl Answer {
    /// The body as JSON; null if it is empty or not JSON.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The `properties.provisioningState` of the body, without reading the rest into memory.
    pub(crate) fn provisioning_state(&self) -> Option<String> {
        #[derive(serde::Deserialize)]
        struct Body {
            properties: Option<Properties>,
        }
        #[derive(serde::Deserialize)]
        struct Properties {
            #[serde(rename = "provisioningState")]
            provisioning_state: Option<String>,
        }
        serde_json::from_slice::<Body>(&self.body).ok()?.properties?.provisioning_state
    }

    pub(crate) fn document<T: DeserializeOwned>(&self, subject: &Subject) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| {
            // serde's message names members and types; the only values it quotes are unknown enum words.
            subject.malformed(&format!("the document does not parse: {error}"))
        })
    }
}

impl Subject {
    pub(crate) fn line(&self, method: &Method) -> String {
        format!("{method} {}", self.short)
    }

    pub(crate) fn malformed(&self, reason: &str) -> Error {
        Error::Malformed { subject: self.short.clone(), reason: reason.to_owned() }
    }

    pub(crate) fn encode<B: Serialize + ?Sized>(&self, body: &B) -> Result<Bytes, Error> {
        serde_json::to_vec(body).map(Bytes::from).map_err(|error| Error::Malformed {
            subject: self.short.clone(),
            reason: format!("the request's document cannot be written: {error}"),
        })
    }
}

pub(crate) fn request_id(headers: &HeaderMap) -> Option<&str> {
    headers.get("x-ms-request-id")?.to_str().ok()
}
