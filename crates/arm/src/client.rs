//! The client: typed calls over resource ids.

use std::sync::Arc;
use std::time::Duration;

use azure_types::ResourceId;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, IF_MATCH, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Uri};
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use crate::budget::LONGEST_WAIT;
use crate::error::ServiceError;
use crate::meter;
use crate::operation::{self, Operation, Progress, Start};
use crate::request::{self, Listing, Subject};
use crate::retry;
use crate::{
    ApiVersion, Budgets, CallObserver, CallRecord, Class, Clock, Cloud, Credential, Error, OperationGroup,
    OperationStyle, Purpose, RetryPolicy, Transport,
};

/// How long an operation is waited for, unless said otherwise.
const OPERATION_DEADLINE: Duration = Duration::from_secs(30 * 60);
/// With `enableMinimumRetryAfter`, what a success asks for below this is overlooked.
const MINIMUM_RETRY_AFTER: Duration = Duration::from_secs(5);
/// Pages of one list; a list that is longer goes in a circle.
const MOST_PAGES: usize = 10_000;
/// How often a provider's registration is looked at (`spec/arm-wire.md`, section 6).
const REGISTRATION_PAUSE: Duration = Duration::from_secs(15);
const REGISTRATION_LOOKS: u32 = 20;

/// What Azure answered to a write.
#[derive(Debug, Clone)]
pub struct Accepted<T> {
    /// The document as answered: the target values, possibly still being carried out. Deletes have none.
    pub body: Option<T>,
    /// What to wait for; `None` when everything is done.
    pub operation: Option<Operation>,
}

/// The client of one cloud. Clones share connections, token and budgets.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    cloud: Cloud,
    transport: Transport,
    credential: Credential,
    user_agent: HeaderValue,
    scope: String,
    budgets: Budgets,
    retry: RetryPolicy,
    rng: Mutex<SmallRng>,
    clock: Clock,
    observer: Option<Arc<dyn CallObserver>>,
    minimum_retry_after: bool,
    operation_deadline: Duration,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({})", self.inner.cloud.resource_manager)
    }
}

/// What a [`Client`] is made of.
pub struct ClientBuilder {
    cloud: Cloud,
    transport: Transport,
    credential: Credential,
    user_agent: String,
    budgets: Budgets,
    retry: RetryPolicy,
    seed: u64,
    clock: Clock,
    observer: Option<Arc<dyn CallObserver>>,
    minimum_retry_after: bool,
    operation_deadline: Duration,
}

impl ClientBuilder {
    /// The `User-Agent`; blank means the default, `kubernetes-cloudprovider/<version>`.
    pub fn user_agent(mut self, text: &str) -> Self {
        if !text.trim().is_empty() {
            self.user_agent = text.trim().to_owned();
        }
        self
    }

    /// Budgets to share with another client (of another credential on the same subscriptions).
    pub fn budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// How passing failures are repeated.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// The seed of the jitter between repetitions.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The wall clock.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Who is told of every attempt.
    pub fn observer(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// `enableMinimumRetryAfter`: a success that asks for less than 5 s is overlooked.
    pub fn minimum_retry_after(mut self, on: bool) -> Self {
        self.minimum_retry_after = on;
        self
    }

    /// How long operations are waited for; 30 minutes unless set.
    pub fn operation_deadline(mut self, deadline: Duration) -> Self {
        self.operation_deadline = deadline;
        self
    }

    /// Takes user agent, retries and minimum retry-after from a configuration.
    pub fn configure(self, config: &cloud_config::CloudConfig) -> Self {
        self.user_agent(&config.user_agent)
            .retry(RetryPolicy::from_config(config))
            .minimum_retry_after(config.enable_minimum_retry_after)
    }

    /// The client.
    pub fn build(self) -> Client {
        let fallback = HeaderValue::from_static("kubernetes-cloudprovider");
        Client {
            inner: Arc::new(Inner {
                scope: self.cloud.scope(),
                user_agent: HeaderValue::from_str(&self.user_agent).unwrap_or(fallback),
                cloud: self.cloud,
                transport: self.transport,
                credential: self.credential,
                budgets: self.budgets,
                retry: self.retry,
                rng: Mutex::new(retry::seeded(self.seed)),
                clock: self.clock,
                observer: self.observer,
                minimum_retry_after: self.minimum_retry_after,
                operation_deadline: self.operation_deadline,
            }),
        }
    }
}

/// One request, repeatable.
struct Call<'a> {
    method: Method,
    uri: Uri,
    body: Option<Bytes>,
    if_match: Option<HeaderValue>,
    subject: &'a Subject,
    purpose: Purpose,
    class: Class,
}

/// An answer with a 2xx status.
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl Client {
    /// Begins a client of this cloud.
    pub fn builder(cloud: Cloud, transport: Transport, credential: Credential) -> ClientBuilder {
        ClientBuilder {
            cloud,
            transport,
            credential,
            user_agent: format!("kubernetes-cloudprovider/{}", env!("CARGO_PKG_VERSION")),
            budgets: Budgets::new(),
            retry: RetryPolicy::default(),
            seed: 0,
            clock: Clock::system(),
            observer: None,
            minimum_retry_after: false,
            operation_deadline: OPERATION_DEADLINE,
        }
    }

    /// The cloud that it speaks to.
    pub fn cloud(&self) -> &Cloud {
        &self.inner.cloud
    }

    /// The budgets that its calls draw on.
    pub fn budgets(&self) -> &Budgets {
        &self.inner.budgets
    }

    /// Gets a token without calling Azure Resource Manager: at start, this tells wrong credentials from
    /// everything else, in one line.
    pub async fn check_credential(&self) -> Result<(), Error> {
        self.inner.credential.authorization(&self.inner.scope).await.map(|_| ())
    }

    /// Reads a resource.
    pub async fn get<T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        api_version: ApiVersion,
        class: Class,
    ) -> Result<T, Error> {
        self.get_with(id, api_version, &[], class).await
    }

    /// Reads a resource with query options, such as `("$expand", "instanceView")`.
    pub async fn get_with<T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        api_version: ApiVersion,
        query: &[(&str, &str)],
        class: Class,
    ) -> Result<T, Error> {
        let subject = Subject::of(id);
        let uri = self.url(id.as_str(), api_version, query)?;
        let answer = self.send(&Call::get(uri, &subject, Purpose::Read, class)).await?;
        answer.document(&subject)
    }

    /// Reads a resource that may not exist. `None` means that Azure said so of the resource, its parent
    /// or its group; whatever leaves it open is an error.
    pub async fn get_optional<T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        api_version: ApiVersion,
        class: Class,
    ) -> Result<Option<T>, Error> {
        match self.get(id, api_version, class).await {
            Ok(document) => Ok(Some(document)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a whole list, all pages of it. A missing group or parent is an error that
    /// [`Error::is_not_found`].
    pub async fn list<T: DeserializeOwned>(
        &self,
        listing: &Listing,
        api_version: ApiVersion,
        query: &[(&str, &str)],
        class: Class,
    ) -> Result<Vec<T>, Error> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Page<T> {
            #[serde(default = "Vec::new")]
            value: Vec<T>,
            #[serde(default)]
            next_link: Option<String>,
        }
        let subject = Subject::of_listing(listing);
        let mut uri = self.url(&listing.to_string(), api_version, query)?;
        let mut all = Vec::new();
        for _ in 0..MOST_PAGES {
            let answer = self.send(&Call::get(uri.clone(), &subject, Purpose::List, class)).await?;
            let page: Page<T> = answer.document(&subject)?;
            if all.is_empty() {
                all = page.value;
            } else {
                all.extend(page.value);
            }
            let Some(link) = page.next_link.filter(|link| !link.is_empty()) else { return Ok(all) };
            let next = request::follow(&self.inner.cloud.resource_manager, &link, &subject)?;
            if next == uri {
                return Err(subject.malformed("the list's next page is the page itself"));
            }
            uri = next;
        }
        Err(subject.malformed("the list has no end"))
    }

    /// Reads what a subscription knows of a resource provider, such as `Microsoft.Compute`: its types,
    /// regions and zones (`spec/arm-wire.md`, section 11).
    pub async fn resource_provider<T: DeserializeOwned>(
        &self,
        subscription: &str,
        namespace: &str,
        class: Class,
    ) -> Result<T, Error> {
        let listing = Listing::provider(subscription, namespace);
        let subject = Subject::of_listing(&listing);
        let uri = self.url(&listing.to_string(), ApiVersion::RESOURCES, &[])?;
        let answer = self.send(&Call::get(uri, &subject, Purpose::Read, class)).await?;
        answer.document(&subject)
    }

    /// Creates or replaces a resource. With `if_match` only the version with that ETag is replaced
    /// (`*`: any, but only an existing one); another one gives [`Error::is_precondition_failed`].
    pub async fn put<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        api_version: ApiVersion,
        body: &B,
        if_match: Option<&str>,
        class: Class,
    ) -> Result<Accepted<T>, Error> {
        self.write(Method::PUT, id, api_version, body, if_match, class).await
    }

    /// Changes members of a resource by a JSON merge patch.
    pub async fn patch<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        api_version: ApiVersion,
        body: &B,
        if_match: Option<&str>,
        class: Class,
    ) -> Result<Accepted<T>, Error> {
        self.write(Method::PATCH, id, api_version, body, if_match, class).await
    }

    async fn write<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        method: Method,
        id: &ResourceId,
        api_version: ApiVersion,
        body: &B,
        if_match: Option<&str>,
        class: Class,
    ) -> Result<Accepted<T>, Error> {
        let subject = Subject::of(id);
        let uri = self.url(id.as_str(), api_version, &[])?;
        let if_match = if_match
            .map(HeaderValue::from_str)
            .transpose()
            .map_err(|_| subject.malformed("the ETag holds characters that no header may have"))?;
        let call = Call {
            method,
            uri,
            body: Some(subject.encode(body)?),
            if_match,
            subject: &subject,
            purpose: Purpose::Write,
            class,
        };
        let answer = self.send(&call).await?;
        let operation = self.begun(&call, id, &answer)?;
        let body = if answer.body.is_empty() { None } else { Some(answer.document(&subject)?) };
        Ok(Accepted { body, operation })
    }

    /// Deletes a resource. One that does not exist counts as deleted.
    pub async fn delete(
        &self,
        id: &ResourceId,
        api_version: ApiVersion,
        if_match: Option<&str>,
        class: Class,
    ) -> Result<Accepted<()>, Error> {
        let subject = Subject::of(id);
        let if_match = if_match
            .map(HeaderValue::from_str)
            .transpose()
            .map_err(|_| subject.malformed("the ETag holds characters that no header may have"))?;
        let call = Call {
            method: Method::DELETE,
            uri: self.url(id.as_str(), api_version, &[])?,
            body: None,
            if_match,
            subject: &subject,
            purpose: Purpose::Delete,
            class,
        };
        match self.send(&call).await {
            Ok(answer) => Ok(Accepted { body: None, operation: self.begun(&call, id, &answer)? }),
            Err(error) if error.is_not_found() => Ok(Accepted { body: None, operation: None }),
            Err(error) => Err(error),
        }
    }

    /// Starts an action of a resource, such as `migrateToIpBased`.
    pub async fn post<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        action: &str,
        api_version: ApiVersion,
        body: Option<&B>,
        class: Class,
    ) -> Result<Accepted<T>, Error> {
        let subject = Subject::of_action(id, action);
        let call = Call {
            method: Method::POST,
            uri: self.url(&format!("{id}/{action}"), api_version, &[])?,
            body: body.map(|body| subject.encode(body)).transpose()?,
            if_match: None,
            subject: &subject,
            purpose: Purpose::Action,
            class,
        };
        let answer = self.send(&call).await?;
        let operation = self.begun(&call, id, &answer)?;
        let body = match operation {
            None if !answer.body.is_empty() => Some(answer.document(&subject)?),
            _ => None,
        };
        Ok(Accepted { body, operation })
    }

    /// Waits until an operation is done. Its failure is an [`Error::Service`] with Azure's own words.
    ///
    /// Polls as Azure asks, else after 1, 2, 4 and then every 5 s. Passing failures of polls are no
    /// failure of the operation. After the deadline, counted from the operation's start, the operation
    /// is given up with [`Error::OperationDeadline`].
    pub async fn wait(&self, operation: &Operation) -> Result<(), Error> {
        let mut subject = Subject::of(&operation.resource);
        let deadline = self.inner.operation_deadline;
        let age = self.inner.clock.now().saturating_sub(Duration::from_secs(operation.started));
        let until = Instant::now() + deadline.saturating_sub(age);
        let uri = request::follow(&self.inner.cloud.resource_manager, &operation.url, &subject)?;
        let mut pause = match operation.first_look.map(Duration::from_millis) {
            Some(asked) => asked.saturating_sub(age),
            None => operation::poll_pause(0),
        };
        subject.short.insert_str(0, &format!("{} ", operation.method));
        for polls in 1u32.. {
            if Instant::now() + pause > until {
                break;
            }
            tokio::time::sleep(pause).await;
            let call = Call::get(uri.clone(), &subject, Purpose::Poll, operation.class);
            let answer = match self.send(&call).await {
                Ok(answer) => answer,
                Err(error) if error.is_transient() || error.is_throttled() => {
                    pause = error.retry_after().unwrap_or(operation::poll_pause(u32::MAX));
                    continue;
                }
                Err(error) if error.status() == Some(404) && operation.style != OperationStyle::Resource => {
                    return Err(Error::OperationLost { subject: subject.short });
                }
                Err(error) => return Err(error),
            };
            let body = answer.value();
            match operation::poll(operation.style, answer.status, &body) {
                Some((Progress::Succeeded, _)) => return Ok(()),
                Some((Progress::Failed, word)) => {
                    return Err(failed_operation(&operation.method, operation, &word, &answer));
                }
                Some((Progress::Running, _)) => {}
                None => return Err(subject.malformed("the operation's state has no status")),
            }
            pause = self.asked_after_success(&answer).unwrap_or(operation::poll_pause(polls));
            // A server that asks for no pause at all is not asked in a tight loop.
            pause = pause.max(Duration::from_millis(500));
        }
        Err(Error::OperationDeadline { subject: subject.short, after: deadline })
    }

    /// Creates or replaces a resource, waits until Azure has done it, and reads it.
    pub async fn put_and_wait<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        api_version: ApiVersion,
        body: &B,
        if_match: Option<&str>,
        class: Class,
    ) -> Result<T, Error> {
        let accepted: Accepted<Value> = self.put(id, api_version, body, if_match, class).await?;
        if let Some(operation) = &accepted.operation {
            self.wait(operation).await?;
        }
        let subject = Subject::of(id);
        let uri = self.url(id.as_str(), api_version, &[])?;
        self.send(&Call::get(uri, &subject, Purpose::FinalRead, class)).await?.document(&subject)
    }

    /// Deletes a resource and waits until it is gone. One that does not exist counts as deleted.
    pub async fn delete_and_wait(
        &self,
        id: &ResourceId,
        api_version: ApiVersion,
        class: Class,
    ) -> Result<(), Error> {
        match self.delete(id, api_version, None, class).await?.operation {
            Some(operation) => self.wait(&operation).await,
            None => Ok(()),
        }
    }

    fn url(&self, path: &str, api_version: ApiVersion, query: &[(&str, &str)]) -> Result<Uri, Error> {
        request::url(&self.inner.cloud.resource_manager, path, api_version, query)
    }

    fn asked_after_success(&self, answer: &Answer) -> Option<Duration> {
        let asked = retry::retry_after(&answer.headers, &self.inner.clock)?;
        (!self.inner.minimum_retry_after || asked >= MINIMUM_RETRY_AFTER).then_some(asked)
    }

    /// The operation that a first answer began, if it did not end with it.
    fn begun(&self, call: &Call<'_>, id: &ResourceId, answer: &Answer) -> Result<Option<Operation>, Error> {
        let own_url = call.uri.to_string();
        match operation::start(&call.method, answer.status, &answer.headers, &answer.value(), &own_url) {
            Start::Done => Ok(None),
            Start::Running(style, url) => Ok(Some(Operation {
                url,
                style,
                resource: id.clone(),
                method: call.method.to_string(),
                started: self.inner.clock.now().as_secs(),
                first_look: self
                    .asked_after_success(answer)
                    .map(|asked| u64::try_from(asked.as_millis()).unwrap_or(u64::MAX)),
                class: call.class,
            })),
            Start::Failed(state) => {
                let mut error = call.error(answer.status, &answer.headers, &[], &self.inner.clock);
                error.status = 200;
                error.message = format!("Azure accepted the request and reports provisioning state {state}");
                error.code = state;
                Err(Error::Service(Box::new(error)))
            }
            Start::NoWhere => Err(call
                .subject
                .malformed("it is accepted, but the answer does not say where to look for its end")),
        }
    }

    /// Sends one request, with everything that belongs to it: registration of a provider included.
    async fn send(&self, call: &Call<'_>) -> Result<Answer, Error> {
        match self.send_repeated(call).await {
            Err(error)
                if error.status() == Some(409) && error.has_code("MissingSubscriptionRegistration") =>
            {
                self.register(call.subject, call.class).await?;
                self.send_repeated(call).await
            }
            other => other,
        }
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
            if_match: None,
            subject: &about,
            purpose: Purpose::Register,
            class,
        };
        self.send_repeated(&call).await?;
        for _ in 0..REGISTRATION_LOOKS {
            let uri = self.url(&path, ApiVersion::REGISTRATION, &[])?;
            let answer = self.send_repeated(&Call::get(uri, &about, Purpose::Register, class)).await?;
            let state = answer.value();
            let state = state.get("registrationState").and_then(Value::as_str).unwrap_or_default();
            if state.eq_ignore_ascii_case("Registered") {
                return Ok(());
            }
            tokio::time::sleep(REGISTRATION_PAUSE).await;
        }
        Err(Error::OperationDeadline { subject: about.short, after: REGISTRATION_PAUSE * REGISTRATION_LOOKS })
    }

    /// Sends one request, and again where that can help: after throttling when the budget opens, after
    /// passing failures as the policy says. 400, 403, 404, 409 and 412 are answers, not failures.
    async fn send_repeated(&self, call: &Call<'_>) -> Result<Answer, Error> {
        let inner = &*self.inner;
        let gate = inner.budgets.gate(&call.subject.subscription, OperationGroup::of(&call.method));
        let mut repeated = 0u32;
        loop {
            let queued = Instant::now();
            let permit = gate.enter(call.class, &call.subject.namespace).await.map_err(|retry_after| {
                Error::BudgetClosed { subject: call.subject.line(&call.method), retry_after }
            })?;
            let authorization = inner.credential.authorization(&inner.scope).await?;
            let waited = queued.elapsed();
            let sent = Instant::now();
            let outcome = inner.transport.send(call.request(authorization, inner.user_agent.clone())).await;
            let duration = sent.elapsed();
            let attempt = repeated + 1;
            let error = match outcome {
                Err(error) => {
                    drop(permit);
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
                    if parts.status.is_success() {
                        call.report(inner, attempt, waited, duration, Some((status, &parts.headers)), None);
                        return Ok(Answer { status, headers: parts.headers, body });
                    }
                    let error = call.error(status, &parts.headers, &body, &inner.clock);
                    call.report(
                        inner,
                        attempt,
                        waited,
                        duration,
                        Some((status, &parts.headers)),
                        Some(&error),
                    );
                    Error::Service(Box::new(error))
                }
            };
            repeated += 1;
            let asked = error.retry_after().filter(|asked| !asked.is_zero());
            match &error {
                Error::Service(service) if service.is_throttling() => {
                    if let Some(wait) = asked {
                        let namespace = call.subject.namespace.as_str();
                        gate.close((!service.throttles_subscription()).then_some(namespace), wait);
                        // The gate itself makes the call wait, in its class; it fails if that is too long.
                        if repeated <= inner.retry.retries && wait <= LONGEST_WAIT {
                            continue;
                        }
                        return Err(error);
                    }
                }
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
    fn get(uri: Uri, subject: &'a Subject, purpose: Purpose, class: Class) -> Self {
        Self { method: Method::GET, uri, body: None, if_match: None, subject, purpose, class }
    }

    fn request(&self, authorization: HeaderValue, user_agent: HeaderValue) -> http::Request<Bytes> {
        let mut request = http::Request::new(self.body.clone().unwrap_or_default());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        headers.insert(AUTHORIZATION, authorization);
        headers.insert(USER_AGENT, user_agent);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if self.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(etag) = &self.if_match {
            headers.insert(IF_MATCH, etag.clone());
        }
        request
    }

    fn error(&self, status: u16, headers: &HeaderMap, body: &[u8], clock: &Clock) -> ServiceError {
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
    /// The body as JSON; null when there is none or it is something else.
    fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    fn document<T: DeserializeOwned>(&self, subject: &Subject) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| {
            // serde's message names members and types; it quotes no values but unknown enum words.
            subject.malformed(&format!("the document does not parse: {error}"))
        })
    }
}

impl Subject {
    fn line(&self, method: &Method) -> String {
        format!("{method} {}", self.short)
    }

    fn malformed(&self, reason: &str) -> Error {
        Error::Malformed { subject: self.short.clone(), reason: reason.to_owned() }
    }

    fn encode<B: Serialize + ?Sized>(&self, body: &B) -> Result<Bytes, Error> {
        serde_json::to_vec(body).map(Bytes::from).map_err(|error| Error::Malformed {
            subject: self.short.clone(),
            reason: format!("the request's document cannot be written: {error}"),
        })
    }
}

fn request_id(headers: &HeaderMap) -> Option<&str> {
    headers.get("x-ms-request-id")?.to_str().ok()
}

fn failed_operation(method: &str, operation: &Operation, word: &str, answer: &Answer) -> Error {
    let mut error = ServiceError {
        method: method.to_owned(),
        subject: Subject::of(&operation.resource).short,
        resource: Some(operation.resource.clone()),
        status: 200,
        code: String::new(),
        message: String::new(),
        target: None,
        details: Vec::new(),
        request_id: request_id(&answer.headers).map(str::to_owned),
        retry_after: None,
    };
    error.read_body(&answer.body);
    if error.code.is_empty() {
        error.code = word.to_owned();
    }
    if error.message.is_empty() {
        error.message = format!("the operation ended as {word}");
    }
    Error::Service(Box::new(error))
}
