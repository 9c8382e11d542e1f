//! Sending one request: budget, token, retries, registration of providers, reports.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use http::{HeaderMap, HeaderValue, Method, Uri};
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use serde_json::Value;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::budget::MAX_WAIT;
use crate::call::{Answer, Call};
use crate::operation_watch::OperationDurations;
use crate::request::{self, Subject};
use crate::span;
use crate::{
    ApiVersion, Budgets, CallObserver, Class, Cloud, Credential, Error, OperationGroup, Purpose, RetryPolicy,
    Transport,
};

/// The interval at which a provider's registration is polled. It takes from seconds to a few minutes: after five the
/// call fails, and the next one asks again.
const REGISTRATION_INTERVAL: Duration = Duration::from_secs(15);
const MAX_REGISTRATION_POLLS: u32 = 20;

/// A request that is being sent.
pub(crate) type Sending<'a> = Pin<Box<dyn Future<Output = Result<Answer, Error>> + Send + 'a>>;

/// What all clones of a client share: its cloud, its rights, and its budgets.
pub(crate) struct Connection {
    pub(crate) cloud: Cloud,
    pub(crate) transport: Transport,
    pub(crate) credential: Credential,
    pub(crate) user_agent: HeaderValue,
    pub(crate) scope: String,
    pub(crate) budgets: Budgets,
    pub(crate) retry: RetryPolicy,
    pub(crate) rng: Mutex<SmallRng>,
    pub(crate) clock: Clock,
    pub(crate) observer: Option<Arc<dyn CallObserver>>,
    pub(crate) minimum_retry_after: bool,
    pub(crate) operation_deadline: Duration,
    pub(crate) operation_durations: OperationDurations,
}

/// How a client sends its writes.
#[derive(Clone, Default)]
pub(crate) struct Manner {
    /// Whether a write that Azure answers with an internal error (500) is left to the caller, who retries it.
    pub(crate) gives_faults_back: bool,
    /// Whether a call ends at once while Azure throttles.
    pub(crate) never_waits: bool,
    /// Headers of each write, besides those that every call has.
    pub(crate) headers: Option<Arc<HeaderMap>>,
    /// The `User-Agent` in place of the connection's.
    pub(crate) user_agent: Option<HeaderValue>,
}

impl Connection {
    /// Sends one request with everything it needs, including registration of a provider.
    ///
    /// The state of a request takes 2 kB. It is allocated for the duration of the request: thousands of tasks can send
    /// one, and nearly all of them are waiting for something else.
    ///
    pub(crate) fn send<'a>(&'a self, call: &'a Call<'a>, manner: &'a Manner) -> Sending<'a> {
        Box::pin(async move {
            match self.send_repeated(call, manner).await {
                Err(error)
                    if error.status() == Some(409) && error.has_code("MissingSubscriptionRegistration") =>
                {
                    self.register(call.subject, call.class).await?;
                    self.send_repeated(call, manner).await
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
        let uri = self.registration_url(&format!("{path}/register"))?;
        let call = Call::of(Method::POST, uri, &about, Purpose::Register, class);
        self.send_repeated(&call, &Manner::default()).await?;
        for _ in 0..MAX_REGISTRATION_POLLS {
            let uri = self.registration_url(&path)?;
            let answer = self
                .send_repeated(&Call::get(uri, &about, Purpose::Register, class), &Manner::default())
                .await?;
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

    fn registration_url(&self, path: &str) -> Result<Uri, Error> {
        request::url(&self.cloud.resource_manager, path, ApiVersion::REGISTRATION, &[])
    }

    /// Sends one request, and retries if that can help: after throttling when the budget opens, after passing failures
    /// by the policy. 400, 403, 404, 409 and 412 are answers, not failures.
    async fn send_repeated(&self, call: &Call<'_>, manner: &Manner) -> Result<Answer, Error> {
        let observer = self.observer.as_deref();
        let gate = self.budgets.gate(&call.subject.subscription, OperationGroup::of(&call.method));
        let longest = if manner.never_waits { Duration::ZERO } else { MAX_WAIT };
        let mut repeated = 0u32;
        let mut rejected = false;
        loop {
            let queued = Instant::now();
            let permit =
                gate.enter(call.class, &call.subject.namespace, longest).await.map_err(|retry_after| {
                    call.report_limited(observer, queued.elapsed());
                    Error::BudgetClosed { subject: call.subject.line(&call.method), retry_after }
                })?;
            let authorization = self.credential.authorization(&self.scope).await?;
            let waited = queued.elapsed();
            let sent = Instant::now();
            let span = span::of(call, repeated, waited);
            let user_agent = manner.user_agent.as_ref().unwrap_or(&self.user_agent);
            let mut request = call.request(authorization.clone(), user_agent.clone());
            if let Some(more) = manner.headers.as_ref().filter(|_| call.purpose == Purpose::Write) {
                for (name, value) in more.iter() {
                    request.headers_mut().entry(name).or_insert_with(|| value.clone());
                }
            }
            span::identify(&span, &mut request);
            let outcome = self.transport.send(request).instrument(span.clone()).await;
            let duration = sent.elapsed();
            let report = |answer, error| {
                call.report(observer, repeated + 1, waited, duration, answer, error);
            };
            let error = match outcome {
                Err(error) => {
                    drop(permit);
                    span::unanswered(&span, error.reason());
                    report(None, None);
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
                        report(Some((status, &parts.headers)), None);
                        return Ok(Answer { status, headers: parts.headers, body });
                    }
                    let error = call.error(status, &parts.headers, &body, &self.clock);
                    span::refused(&span, call.purpose, &error);
                    report(Some((status, &parts.headers)), Some(&error));
                    Error::Service(Arc::new(error))
                }
            };
            // A restored authority, or one with rotated keys, issues valid tokens again.
            if error.status() == Some(401) && !rejected {
                rejected = true;
                if self.credential.reject(&self.scope, &authorization) {
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
                        if repeated <= self.retry.retries && wait <= longest {
                            continue;
                        }
                        return Err(error);
                    }
                }
                // Only a write is given back: the caller changes its document.
                Error::Service(_)
                    if manner.gives_faults_back
                        && call.purpose == Purpose::Write
                        && error.status() == Some(500) =>
                {
                    return Err(error);
                }
                error if error.is_transient() => {}
                _ => return Err(error),
            }
            let pause = self.retry.pause(repeated, asked, &mut self.rng.lock());
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(error),
            }
        }
    }
}
