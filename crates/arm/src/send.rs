//! Sending one request: budget, token, retries, registration of providers, reports.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Uri};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::budget::MAX_WAIT;
use crate::client::Inner;
use crate::correlation;
use crate::error::ServiceError;
use crate::meter;
use crate::request::Subject;
use crate::retry;
use crate::span;
use crate::{ApiVersion, CallRecord, Class, Client, Clock, Error, OperationGroup, Purpose};

/// The interval at which a provider's registration is polled. It takes from seconds to a few minutes: after five the
/// call fails, and the next one asks again.
const REGISTRATION_INTERVAL: Duration = Duration::from_secs(15);
const MAX_REGISTRATION_POLLS: u32 = 20;

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

/// A request that is being sent.
pub(crate) type Sending<'a> = Pin<Box<dyn Future<Output = Result<Answer, Error>> + Send + 'a>>;

/// An answer with a 2xx status.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Client {
    /// Sends one request with everything it needs, including registration of a provider.
    ///
    /// The state of a request takes 2 kB. It is allocated for the duration of the request: thousands of tasks can send
    /// one, and nearly all of them are waiting for something else.
    pub(crate) fn send<'a>(&'a self, call: &'a Call<'a>) -> Sending<'a> {
        Box::pin(async move {
            match self.send_repeated(call).await {
                Err(error)
                    if error.status() == Some(409) && error.has_code("MissingSubscriptionRegistration") =>
                {
                    self.register(call.subject, call.class).await?;
                    self.send_repeated(call).await
                }
                other => other,
            }
        })
    }

    /// Registers the resource provider with the subscription and waits until that is done.
    async fn register(&self, subject: &Subject, class: Class) -> Result<(), Error> {
        let path = format!("/subscriptions/{}/providers/{}", subject.subscription, subject.namespace);
        let about = Subject {
            resource: None,
            resource_type: "Microsoft.Resources/providers".into(),
            name: subject.namespace.clone(),
            short: format!("providers/{}/register", subject.namespace),
            ..subject.clone()
        };
        tracing::info!(
            provider = subject.namespace,
            "registering the resource provider with the subscription"
        );
        let call = Call {
            method: Method::POST,
            uri: self.url(&format!("{path}/register"), ApiVersion::REGISTRATION, &[])?,
            body: None,
            condition: None,
            subject: &about,
            purpose: Purpose::Register,
            class,
        };
        self.send_repeated(&call).await?;
        for _ in 0..MAX_REGISTRATION_POLLS {
            let uri = self.url(&path, ApiVersion::REGISTRATION, &[])?;
            let answer = self.send_repeated(&Call::get(uri, &about, Purpose::Register, class)).await?;
            let state = answer.value();
            let state = state.get("registrationState").and_then(Value::as_str).unwrap_or_default();
            if state.eq_ignore_ascii_case("Registered") {
                return Ok(());
            }
            tokio::time::sleep(REGISTRATION_INTERVAL).await;
        }
        Err(Error::OperationDeadline {
            subject: about.short,
            after: REGISTRATION_INTERVAL * MAX_REGISTRATION_POLLS,
        })
    }

    /// Whether an internal error of Azure's is left to the caller.
    fn is_given_back(&self, call: &Call<'_>, error: &Error) -> bool {
        self.gives_faults_back && call.purpose == Purpose::Write && error.status() == Some(500)
    }

    /// Sends one request, and retries if that can help: after throttling when the budget opens, after passing failures
    /// by the policy. 400, 403, 404, 409 and 412 are answers, not failures.
    async fn send_repeated(&self, call: &Call<'_>) -> Result<Answer, Error> {
        let inner = &*self.inner;
        let gate = inner.budgets.gate(&call.subject.subscription, OperationGroup::of(&call.method));
        let mut repeated = 0u32;
        let mut rejected = false;
        loop {
            let queued = Instant::now();
            let permit = gate.enter(call.class, &call.subject.namespace).await.map_err(|retry_after| {
                Error::BudgetClosed { subject: call.subject.line(&call.method), retry_after }
            })?;
            let authorization = inner.credential.authorization(&inner.scope).await?;
            let waited = queued.elapsed();
            let sent = Instant::now();
            let span = span::of(call, repeated, waited);
            let sending = inner.transport.send(call.request(authorization.clone(), inner.user_agent.clone()));
            let outcome = sending.instrument(span.clone()).await;
            let duration = sent.elapsed();
            let attempt = repeated + 1;
            let error = match outcome {
                Err(error) => {
                    drop(permit);
                    span::unanswered(&span, error.reason());
                    call.report(inner, attempt, waited, duration, None, None);
                    Error::Transport {
                        subject: call.subject.line(&call.method),
                        reason: error.reason().to_owned(),
                    }
                }
                Ok(answer) => {
                    let (parts, body) = answer.into_parts();
                    let status = parts.status.as_u16();
                    gate.observe(permit, &parts.headers);
                    span::answered(&span, status, &parts.headers);
                    if parts.status.is_success() {
                        call.report(inner, attempt, waited, duration, Some((status, &parts.headers)), None);
                        return Ok(Answer { status, headers: parts.headers, body });
                    }
                    let error = call.error(status, &parts.headers, &body, &inner.clock);
                    span::refused(&span, call.purpose, &error);
                    call.report(
                        inner,
                        attempt,
                        waited,
                        duration,
                        Some((status, &parts.headers)),
                        Some(&error),
                    );
                    Error::Service(Arc::new(error))
                }
            };
            // A restored authority, or one with rotated keys, issues valid tokens again.
            if error.status() == Some(401) && !rejected {
                rejected = true;
                if inner.credential.reject(&inner.scope, &authorization) {
                    continue;
                }
            }
            repeated += 1;
            let asked = error.retry_after().filter(|asked| !asked.is_zero());
            match &error {
                Error::Service(service) if service.is_throttling() => {
                    if let Some(wait) = asked {
                        let namespace = call.subject.namespace.as_str();
                        gate.close((!service.throttles_subscription()).then_some(namespace), wait);
                        // The gate itself makes the call wait, in its class; it fails if that is too long.
                        if repeated <= inner.retry.retries && wait <= MAX_WAIT {
                            continue;
                        }
                        return Err(error);
                    }
                }
                error if self.is_given_back(call, error) => return Err(error.clone()),
                error if error.is_transient() => {}
                _ => return Err(error),
            }
            let pause = inner.retry.pause(repeated, asked, &mut inner.rng.lock());
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(error),
            }
        }
    }
}

impl<'a> Call<'a> {
    pub(crate) fn get(uri: Uri, subject: &'a Subject, purpose: Purpose, class: Class) -> Self {
        Self { method: Method::GET, uri, body: None, condition: None, subject, purpose, class }
    }

    fn request(&self, authorization: HeaderValue, user_agent: HeaderValue) -> http::Request<Bytes> {
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
            code: String::new(),
            message: String::new(),
            target: None,
            details: Vec::new(),
            request_id: request_id(headers).map(str::to_owned),
            retry_after: retry::retry_after(headers, clock),
        };
        error.read_body(body);
        error
    }

    fn report(
        &self,
        inner: &Inner,
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
            method: self.method.as_str(),
            resource_type: &self.subject.resource_type,
            resource_name: &self.subject.name,
            subscription: &self.subject.subscription,
            resource_group: self.subject.group.as_deref(),
            purpose: self.purpose,
            class: self.class,
            status: answer.map(|(status, _)| status),
            duration,
            waited,
            attempt,
            reason,
            request_id: answer.and_then(|(_, headers)| request_id(headers)),
            throttled: error.is_some_and(ServiceError::is_throttling),
        };
        meter::log(&record);
        if let Some(observer) = &inner.observer {
            observer.on_call(&record);
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
    fn line(&self, method: &Method) -> String {
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
