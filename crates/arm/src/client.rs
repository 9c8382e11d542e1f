//! The client: typed calls over resource ids.

use std::sync::Arc;
use std::time::Duration;

use azure_types::ResourceId;
use http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Method, Uri};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::time::Instant;

use crate::call::{Answer, Call, request_id};
use crate::error::ServiceError;
use crate::operation::{self, Operation, Progress, Start};
use crate::operation_watch::OperationWatch;
use crate::request::{self, Listing, Subject};
use crate::retry;
use crate::send::{Connection, Manner, Sending};
use crate::{ApiVersion, Budgets, Class, Cloud, Error, OperationStyle, Purpose};

/// With `enableMinimumRetryAfter`, a `Retry-After` of a success below this is ignored.
const MIN_RETRY_AFTER: Duration = Duration::from_secs(5);
/// The maximum number of pages of one list: more than any subscription fills, so a longer list is a loop.
const MAX_PAGES: usize = 10_000;

/// Azure's answer to a write.
#[derive(Debug, Clone)]
pub struct Accepted<T> {
    /// The document in the answer: the target values, possibly still being applied. Deletes have none.
    pub body: Option<T>,
    /// The operation to wait for; `None` if everything is done.
    pub operation: Option<Operation>,
}

/// The client of one cloud. Clones share connections, token and budgets.
#[derive(Clone)]
pub struct Client {
    pub(crate) connection: Arc<Connection>,
    pub(crate) manner: Manner,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({})", self.connection.cloud.resource_manager)
    }
}

/// The condition that only the version with this ETag is written.
fn matching(id: &ResourceId, if_match: Option<&str>) -> Result<Option<(HeaderName, HeaderValue)>, Error> {
    let value = if_match.map(HeaderValue::from_str).transpose();
    let value =
        value.map_err(|_| Subject::of(id).malformed("the ETag holds characters that no header may have"))?;
    Ok(value.map(|value| (IF_MATCH, value)))
}

impl Client {
    /// A clone whose writes are not retried when Azure answers with an internal error (500): for a caller that changes
    /// its document before it retries.
    #[must_use]
    pub fn giving_faults_back(&self) -> Self {
        let manner = Manner { gives_faults_back: true, ..self.manner.clone() };
        Self { connection: Arc::clone(&self.connection), manner }
    }

    /// A clone whose calls do not wait while Azure throttles, but end at once with the time that is left: for a caller whose own
    /// caller repeats the call.
    #[must_use]
    pub fn without_waiting(&self) -> Self {
        let manner = Manner { never_waits: true, ..self.manner.clone() };
        Self { connection: Arc::clone(&self.connection), manner }
    }

    /// A clone whose writes have these headers, too. A header that every call has keeps its value.
    #[must_use]
    pub fn with_headers(&self, headers: HeaderMap) -> Self {
        let manner = Manner { headers: Some(Arc::new(headers)), ..self.manner.clone() };
        Self { connection: Arc::clone(&self.connection), manner }
    }

    /// A clone whose calls name this `User-Agent`. Text that no header may have changes nothing.
    #[must_use]
    pub fn with_user_agent(&self, text: &str) -> Self {
        let user_agent = HeaderValue::from_str(text).ok().or_else(|| self.manner.user_agent.clone());
        let manner = Manner { user_agent, ..self.manner.clone() };
        Self { connection: Arc::clone(&self.connection), manner }
    }

    /// The client's cloud.
    pub fn cloud(&self) -> &Cloud {
        &self.connection.cloud
    }

    /// The budgets of the client's calls.
    pub fn budgets(&self) -> &Budgets {
        &self.connection.budgets
    }

    /// Gets a token without calling Azure Resource Manager: at start, this distinguishes wrong credentials from all
    /// other failures, in one line.
    pub async fn check_credential(&self) -> Result<(), Error> {
        self.connection.credential.authorization(&self.connection.scope).await.map(|_| ())
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
        let uri = self.url(id.as_str(), api_version, query)?;
        self.read(uri, &Subject::of(id), Purpose::Read, class).await
    }

    async fn read<T: DeserializeOwned>(
        &self,
        uri: Uri,
        subject: &Subject,
        purpose: Purpose,
        class: Class,
    ) -> Result<T, Error> {
        self.send(&Call::get(uri, subject, purpose, class)).await?.document(subject)
    }

    /// Reads a resource that may not exist. `None` means that Azure reported that the resource, its parent or its group
    /// does not exist; every other failure is an error.
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

    /// Reads a whole list, all pages of it. A missing group or parent is an error that [`Error::is_not_found`].
    pub async fn list<T: DeserializeOwned>(
        &self,
        listing: &Listing,
        api_version: ApiVersion,
        query: &[(&str, &str)],
        class: Class,
    ) -> Result<Vec<T>, Error> {
        self.list_map(listing, api_version, query, class, |document| document).await
    }

    /// Reads a whole list, and keeps the result of `keep` for each document. Documents are dropped page by page: a list
    /// of a thousand machines is never in memory as a whole.
    pub async fn list_map<T: DeserializeOwned, K>(
        &self,
        listing: &Listing,
        api_version: ApiVersion,
        query: &[(&str, &str)],
        class: Class,
        keep: impl Fn(T) -> K,
    ) -> Result<Vec<K>, Error> {
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
        for _ in 0..MAX_PAGES {
            let answer = self.send(&Call::get(uri.clone(), &subject, Purpose::List, class)).await?;
            let page: Page<T> = answer.document(&subject)?;
            drop(answer);
            all.extend(page.value.into_iter().map(&keep));
            let Some(link) = page.next_link.filter(|link| !link.is_empty()) else { return Ok(all) };
            let next = request::follow(&self.connection.cloud.resource_manager, &link, &subject)?;
            if next == uri {
                return Err(subject.malformed("the list's next page is the page itself"));
            }
            uri = next;
        }
        Err(subject.malformed("the list has no end"))
    }

    /// Reads the registration of a resource provider in a subscription, such as `Microsoft.Compute`: its types, regions
    /// and zones.
    pub async fn resource_provider<T: DeserializeOwned>(
        &self,
        subscription: &str,
        namespace: &str,
        class: Class,
    ) -> Result<T, Error> {
        let listing = Listing::provider(subscription, namespace);
        let uri = self.url(&listing.to_string(), ApiVersion::RESOURCES, &[])?;
        self.read(uri, &Subject::of_listing(&listing), Purpose::Read, class).await
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
        self.write(Method::PUT, id, api_version, &[], body, matching(id, if_match)?, class).await
    }

    /// Creates or replaces a resource with query options, such as `("$expand", "snapshots")`.
    pub async fn put_with<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        api_version: ApiVersion,
        query: &[(&str, &str)],
        body: &B,
        class: Class,
    ) -> Result<Accepted<T>, Error> {
        self.write(Method::PUT, id, api_version, query, body, None, class).await
    }

    /// Creates a resource; one that exists is left as it is and gives [`Error::is_precondition_failed`].
    pub async fn create<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        api_version: ApiVersion,
        body: &B,
        class: Class,
    ) -> Result<Accepted<T>, Error> {
        let absent = Some((IF_NONE_MATCH, HeaderValue::from_static("*")));
        self.write(Method::PUT, id, api_version, &[], body, absent, class).await
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
        self.write(Method::PATCH, id, api_version, &[], body, matching(id, if_match)?, class).await
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one request")]
    async fn write<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        method: Method,
        id: &ResourceId,
        api_version: ApiVersion,
        query: &[(&str, &str)],
        body: &B,
        condition: Option<(HeaderName, HeaderValue)>,
        class: Class,
    ) -> Result<Accepted<T>, Error> {
        let subject = Subject::of(id);
        let uri = self.url(id.as_str(), api_version, query)?;
        let body = Some(subject.encode(body)?);
        let call = Call { body, condition, ..Call::of(method, uri, &subject, Purpose::Write, class) };
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
        self.delete_with(id, api_version, &[], if_match, class).await
    }

    /// Deletes a resource with query options, such as `("forceDeletion", "true")`. One that does not exist counts as
    /// deleted.
    pub async fn delete_with(
        &self,
        id: &ResourceId,
        api_version: ApiVersion,
        query: &[(&str, &str)],
        if_match: Option<&str>,
        class: Class,
    ) -> Result<Accepted<()>, Error> {
        self.remove(id, api_version, query, matching(id, if_match)?, class).await
    }

    async fn remove(
        &self,
        id: &ResourceId,
        api_version: ApiVersion,
        query: &[(&str, &str)],
        condition: Option<(HeaderName, HeaderValue)>,
        class: Class,
    ) -> Result<Accepted<()>, Error> {
        let subject = Subject::of(id);
        let uri = self.url(id.as_str(), api_version, query)?;
        let call = Call { condition, ..Call::of(Method::DELETE, uri, &subject, Purpose::Delete, class) };
        match self.send(&call).await {
            Ok(answer) => Ok(Accepted { body: None, operation: self.begun(&call, id, &answer)? }),
            Err(error) if error.is_not_found() => Ok(Accepted { body: None, operation: None }),
            Err(error) => Err(error),
        }
    }

    /// Deletes a part of a resource that a header names, such as `x-ms-snapshot` for a share's snapshot. One that does not exist
    /// counts as deleted.
    pub async fn delete_part(
        &self,
        id: &ResourceId,
        api_version: ApiVersion,
        part: (HeaderName, HeaderValue),
        class: Class,
    ) -> Result<Accepted<()>, Error> {
        self.remove(id, api_version, &[], Some(part), class).await
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
        self.post_with(id, action, api_version, &[], body, class).await
    }

    /// Starts an action of a resource with query parameters.
    pub async fn post_with<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        action: &str,
        api_version: ApiVersion,
        query: &[(&str, &str)],
        body: Option<&B>,
        class: Class,
    ) -> Result<Accepted<T>, Error> {
        let subject = Subject::of_action(id, action);
        let uri = self.url(&format!("{id}/{action}"), api_version, query)?;
        let body = body.map(|body| subject.encode(body)).transpose()?;
        let call = Call { body, ..Call::of(Method::POST, uri, &subject, Purpose::Action, class) };
        let answer = self.send(&call).await?;
        let operation = self.begun(&call, id, &answer)?;
        let body = match operation {
            None if !answer.body.is_empty() => Some(answer.document(&subject)?),
            _ => None,
        };
        Ok(Accepted { body, operation })
    }

    /// Waits until an operation is done. Its failure is an [`Error::Service`] with Azure's own message.
    ///
    /// It is polled when operations of its kind were done before, at once if that is unknown, and never before Azure's
    /// `Retry-After`. Passing failures of polls are no failure of the operation. After the deadline, counted from the
    /// operation's start, the operation is given up with [`Error::OperationDeadline`].
    pub async fn wait(&self, operation: &Operation) -> Result<(), Error> {
        let subject = Subject::of_operation(&operation.resource);
        let line = || format!("{} {}", operation.method, Subject::of(&operation.resource).short);
        let deadline = self.connection.operation_deadline;
        let uri = request::follow(&self.connection.cloud.resource_manager, &operation.url, &subject)?;
        let mut watch = self.watch(operation);
        let asked = operation.first_look.map(Duration::from_millis).unwrap_or_default();
        let mut pause = watch.first_pause().max(asked.saturating_sub(watch.age()));
        let (begin, allowed) = (Instant::now(), deadline.saturating_sub(watch.age()));
        while begin.elapsed().saturating_add(pause) <= allowed {
            tokio::time::sleep(pause).await;
            let call = Call::get(uri.clone(), &subject, Purpose::Poll, operation.class);
            let answer = match self.send(&call).await {
                Ok(answer) => answer,
                Err(error) if error.is_transient() || error.is_throttled() => {
                    pause = watch.unanswered(error.retry_after());
                    continue;
                }
                // A status URL that answers 4xx says nothing about the change itself, so it must not count as a refusal
                // of the change.
                Err(error)
                    if operation.style != OperationStyle::Resource
                        && error.service().is_some()
                        && !error.is_authentication() =>
                {
                    tracing::warn!(%error, request_id = error.request_id(), "the state of an operation cannot be read");
                    return Err(Error::OperationLost { subject: line() });
                }
                Err(error) => return Err(error),
            };
            let body = answer.value();
            match operation::poll(operation.style, answer.status, &body) {
                Some((Progress::Succeeded, _)) => {
                    watch.succeeded();
                    return Ok(());
                }
                Some((Progress::Failed, word)) => {
                    return Err(failed_operation(&operation.method, operation, &word, &answer));
                }
                Some((Progress::Running, _)) => {}
                None => return Err(subject.malformed("the operation's state has no status")),
            }
            pause = watch.still_runs().max(self.asked_after_success(&answer).unwrap_or_default());
        }
        Err(Error::OperationDeadline { subject: line(), after: deadline })
    }

    /// Paces reads of the resource that an operation changes, for callers that do not [`Self::wait`] for its status.
    pub fn watch(&self, operation: &Operation) -> OperationWatch {
        OperationWatch::new(&self.connection.operation_durations, &self.connection.clock, operation)
    }

    /// Creates or replaces a resource, waits until Azure is done, and reads it.
    pub async fn put_and_wait<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        api_version: ApiVersion,
        body: &B,
        if_match: Option<&str>,
        class: Class,
    ) -> Result<T, Error> {
        let accepted = self.put(id, api_version, body, if_match, class).await?;
        self.written(id, api_version, accepted, class).await
    }

    /// Creates a resource like [`Self::create`], waits until Azure is done, and reads it.
    pub async fn create_and_wait<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        api_version: ApiVersion,
        body: &B,
        class: Class,
    ) -> Result<T, Error> {
        let accepted = self.create(id, api_version, body, class).await?;
        self.written(id, api_version, accepted, class).await
    }

    /// Waits until Azure has completed a write, and reads the result.
    async fn written<T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        api_version: ApiVersion,
        accepted: Accepted<IgnoredAny>,
        class: Class,
    ) -> Result<T, Error> {
        if let Some(operation) = &accepted.operation {
            self.wait(operation).await?;
        }
        let uri = self.url(id.as_str(), api_version, &[])?;
        self.read(uri, &Subject::of(id), Purpose::FinalRead, class).await
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

    /// Sends one request with everything it needs, including registration of a provider.
    fn send<'a>(&'a self, call: &'a Call<'a>) -> Sending<'a> {
        self.connection.send(call, &self.manner)
    }

    fn url(&self, path: &str, api_version: ApiVersion, query: &[(&str, &str)]) -> Result<Uri, Error> {
        request::url(&self.connection.cloud.resource_manager, path, api_version, query)
    }

    fn asked_after_success(&self, answer: &Answer) -> Option<Duration> {
        let asked = retry::retry_after(&answer.headers, &self.connection.clock)?;
        (!self.connection.minimum_retry_after || asked >= MIN_RETRY_AFTER).then_some(asked)
    }

    /// The operation that a first answer began, unless it is already complete.
    fn begun(&self, call: &Call<'_>, id: &ResourceId, answer: &Answer) -> Result<Option<Operation>, Error> {
        let own_url = call.uri.to_string();
        let state = answer.provisioning_state();
        match operation::start(&call.method, answer.status, &answer.headers, state.as_deref(), &own_url) {
            Start::Done => Ok(None),
            Start::Running(style, url) => Ok(Some(Operation {
                url,
                style,
                resource: id.clone(),
                method: call.method.to_string(),
                started: milliseconds(self.connection.clock.since_1970()),
                first_look: self.asked_after_success(answer).map(milliseconds),
                class: call.class,
            })),
            Start::Failed(state) => {
                let mut error = call.error(answer.status, &answer.headers, &[], &self.connection.clock);
                error.status = 200;
                error.message = format!("Azure accepted the request and reports provisioning state {state}");
                error.code = state;
                Err(Error::Service(Arc::new(error)))
            }
            Start::NoWhere => Err(call
                .subject
                .malformed("it is accepted, but the answer does not say where to look for its end")),
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn failed_operation(method: &str, operation: &Operation, word: &str, answer: &Answer) -> Error {
    let mut error = ServiceError {
        method: method.to_owned(),
        subject: Subject::of(&operation.resource).short,
        resource: Some(operation.resource.clone()),
        status: 200,
        request_id: request_id(&answer.headers).map(str::to_owned),
        ..ServiceError::default()
    };
    error.read_body(&answer.body);
    if error.code.is_empty() {
        error.code = word.to_owned();
    }
    if error.message.is_empty() {
        error.message = format!("the operation ended as {word}");
    }
    Error::Service(Arc::new(error))
}
