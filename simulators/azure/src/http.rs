//! Resource Manager over HTTP: authentication, faults, budgets, headers.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

use crate::azure::Azure;
use crate::base_url::base_url;
use crate::caller::{Caller, Credentials};
use crate::control_requests::{guarded, nothing_at};
use crate::published::ContractSubject;
use azure_engine::answer::{Answer, Note};
use azure_engine::document::merge;
use azure_engine::fault::{self, Effect, FaultAction, Subject};
use azure_engine::journal::{JournalEntry, RequestKind};
use azure_engine::operation::RetryAfterStyle;
use azure_engine::operation::execution::Execution;
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::request::Conditions;
use azure_engine::request::Request as ArmRequest;
use azure_engine::request::body::Body as ParsedBody;
use azure_engine::request::target::{BadPath, Target};
use azure_engine::settings::budget::{Class, Remaining};
use azure_engine::settings::latency::bounded;
use azure_engine::verbs::dispatch::Located;

impl Azure {
    /// The HTTP surface: Resource Manager, cloud metadata, the control API under `/_cerulean/`, and the services under
    /// hosts of their own. Also a tower service for callers in the same process.
    pub fn router(&self) -> Router {
        let control =
            crate::control::router().merge(crate::caller::router()).merge(crate::metadata_control::router());
        let routes = Router::new()
            .route("/metadata/endpoints", get(crate::cloud::endpoints))
            .merge(guarded(control))
            .fallback(answer_recorded)
            .with_state(self.clone());
        self.with_data_planes(routes)
    }
}

/// The head of a request.
#[derive(Clone)]
struct Head {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    /// The target of the path, or why it names none.
    target: Result<Target, BadPath>,
    conditions: Conditions,
    credentials: Credentials,
    client_request_id: Option<String>,
    user_agent: Option<String>,
    correlation: Option<String>,
    base: String,
    /// The caller's object id, once its token was verified.
    caller: Option<String>,
}

/// Headers that count as query options: the part of a resource, features of one request.
const PART_HEADERS: [&str; 2] = ["x-ms-snapshot", "akshttpcustomfeatures"];

impl Head {
    fn of(azure: &Azure, request: &Request) -> Self {
        let headers = request.headers();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let credentials = Credentials::new(
            headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()),
            text("x-ms-authorization-auxiliary").as_deref(),
        );
        let named = PART_HEADERS.into_iter().filter_map(|name| Some((name.to_owned(), text(name)?)));
        let query = url::form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.into_owned()))
            .chain(named)
            .collect();
        Self {
            method: request.method().as_str().to_owned(),
            path: request.uri().path().to_owned(),
            target: Target::parse(request.uri().path()),
            query,
            conditions: Conditions { if_match: text("if-match"), if_none_match: text("if-none-match") },
            credentials,
            client_request_id: text("x-ms-client-request-id"),
            user_agent: headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).map(str::to_owned),
            correlation: text("x-ms-correlation-request-id"),
            base: base_url(azure, request),
            caller: None,
        }
    }

    fn request<'a>(&'a self, body: &'a ParsedBody) -> ArmRequest<'a> {
        ArmRequest {
            method: &self.method,
            path: &self.path,
            target: self.target.as_ref().map_err(|bad| *bad),
            query: &self.query,
            conditions: &self.conditions,
            body,
            caller: self.caller.as_deref(),
        }
    }

    /// The same for the contract that Azure publishes.
    fn contract_subject<'a>(&'a self, located: &'a Located) -> ContractSubject<'a> {
        ContractSubject {
            method: &self.method,
            version: self.version().map(String::as_str).unwrap_or_default(),
            user_agent: self.user_agent.as_deref(),
            located,
        }
    }

    fn version(&self) -> Option<&String> {
        self.query.get("api-version").filter(|version| !version.is_empty())
    }
}

/// The path of the control API and the page.
const CONTROL: &str = "/_cerulean";

/// The result of admission, before a request is performed.
struct Admitted {
    sequence: u64,
    time: Timestamp,
    located: Result<Located>,
    effect: Option<Effect>,
    remaining: Option<Remaining>,
    /// How long the answer takes.
    pause: Duration,
    /// The caller's application, where tokens are verified.
    caller: Option<String>,
}

/// Answers a request to Resource Manager, and records the exchange if that is on.
async fn answer_recorded(State(azure): State<Azure>, request: Request) -> Response {
    let recording = azure.inner.recording.read().clone();
    match recording {
        Some(recording) => {
            let exchange = recording.exchange(request, |request| answer(State(azure), request));
            exchange.await.unwrap_or_else(lost)
        }
        None => answer(State(azure), request).await,
    }
}

async fn answer(State(azure): State<Azure>, request: Request) -> Response {
    // Paths of the control API that this listener does not serve are no requests to Resource Manager.
    if request.uri().path().starts_with(CONTROL) {
        return nothing_at(request.uri().path());
    }
    let mut head = Head::of(&azure, &request);
    let media = unsupported_media(request.headers());
    let largest = azure.change(|state| state.limit("resources.requestBytes"));
    let body = match media {
        Some(refusal) => Err(refusal),
        None => read_body(request.into_body(), largest).await.map(|bytes| ParsedBody::parse(&bytes)),
    };
    let mut admitted = azure.change(|state| admit(&azure, state, &mut head, body.as_ref()));
    let action = admitted.effect.as_ref().map(|effect| effect.action.clone());
    let mut execution = action.as_ref().map(FaultAction::execution).unwrap_or_default();
    execution.caller = admitted.caller.take();
    let refusal = action.as_ref().and_then(FaultAction::refusal);
    let delay = match &action {
        Some(FaultAction::Delay { ms }) => bounded(*ms),
        _ => Duration::ZERO,
    };
    let wait = admitted.pause + delay;
    if let (true, Ok(located)) = (wait > GATEWAY_TIMEOUT, &admitted.located) {
        tokio::time::sleep(GATEWAY_TIMEOUT).await;
        let late = LateRequest {
            head: head.clone(),
            located: located.clone(),
            body: body.unwrap_or_else(|_| ParsedBody::parse(&[])),
            execution,
        };
        let timeout = Err(Refusal::gateway_timeout(&located.resource_type));
        // The request is performed all the same, unless the fault drops it.
        if refusal.is_none() && !matches!(action, Some(FaultAction::DropRequest)) {
            late.do_after(azure.clone(), wait - GATEWAY_TIMEOUT);
        }
        return azure.change(|state| {
            record(state, &head, &mut admitted, &timeout, Note::default());
            respond(state, &head, &admitted, timeout)
        });
    }
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    match &action {
        Some(FaultAction::DropRequest) => {
            let nothing = Ok(Answer::empty(0));
            azure.change(|state| record(state, &head, &mut admitted, &nothing, Note::default()));
            return lost();
        }
        Some(FaultAction::Interfere { id, patch }) => {
            let subject = admitted.located.as_ref().ok().and_then(|located| located.resolved.as_ref());
            if let Some(id) = id.as_ref().or(subject.map(|resolved| &resolved.id)) {
                // A resource that is absent, or cannot be changed like this, stays as it is.
                let _ = azure.edit(id, |document| merge(document, patch.clone()));
            }
        }
        _ => {}
    }
    let pretended = match &action {
        Some(FaultAction::Pretend { status }) => Some(*status),
        _ => None,
    };
    let drop_answer = matches!(action, Some(FaultAction::DropAnswer));
    let body = body.unwrap_or_else(|_| ParsedBody::parse(&[]));
    let (response, due) = azure.change(|state| {
        let outcome = match (&admitted.located, refusal, pretended) {
            (_, Some(refusal), _) => Err(refusal),
            (Err(refusal), None, _) => Err(refusal.clone()),
            (Ok(_), None, Some(status)) => Ok(Answer::empty(status)),
            (Ok(located), None, None) => {
                let answer = state.perform(&head.request(&body), located, &execution);
                let mut deviating = azure.inner.deviating.lock();
                answer.and_then(|answer| {
                    head.contract_subject(located)
                        .check_answer(&body, &answer, &mut deviating)
                        .map(|()| answer)
                })
            }
        };
        let due = due(state, &outcome);
        let note = outcome.as_ref().map(|answer| answer.note.clone()).unwrap_or_default();
        let outcome = match action.as_ref().and_then(FaultAction::refusal_after) {
            Some(refusal) => Err(refusal),
            None => outcome,
        };
        record(state, &head, &mut admitted, &outcome, note);
        state.revision += 1;
        (respond(state, &head, &admitted, outcome), due)
    });
    if let Some(due) = due.filter(|due| *due > Instant::now()) {
        azure.wake_at(due);
    }
    if drop_answer { lost() } else { response }
}

/// When the started operation ends.
fn due(state: &AzureState, outcome: &Result<Answer>) -> Option<Instant> {
    let links = outcome.as_ref().ok()?.operation.as_ref()?;
    state.operations.get(&links.key).filter(|operation| operation.ended.is_none())?.due
}

/// How long ARM waits for a provider.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(60);

/// A request that its provider goes on with after ARM has given up on the answer.
struct LateRequest {
    head: Head,
    located: Located,
    body: ParsedBody,
    execution: Execution,
}

impl LateRequest {
    fn do_after(self, azure: Azure, wait: Duration) {
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            let due = azure.change(|state| {
                let outcome = state.perform(&self.head.request(&self.body), &self.located, &self.execution);
                state.revision += 1;
                due(state, &outcome)
            });
            if let Some(due) = due.filter(|due| *due > Instant::now()) {
                azure.wake_at(due);
            }
        });
    }
}

/// ARM reads JSON only. A request without a content type counts as JSON.
fn unsupported_media(headers: &HeaderMap) -> Option<Refusal> {
    let given = headers.get(CONTENT_TYPE)?;
    let text = String::from_utf8_lossy(given.as_bytes());
    let media = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let json =
        media.is_empty() || media == "application/json" || media == "text/json" || media.ends_with("+json");
    (!json).then(|| {
        let text = format!(
            "The content media type '{media}' is not supported. Only 'application/json' is supported."
        );
        Code::azures(415, "UnsupportedMediaType").says(text)
    })
}

pub(crate) async fn read_body(body: Body, largest: u64) -> Result<Bytes> {
    let limit = usize::try_from(largest).unwrap_or(usize::MAX);
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let text = match largest % (1024 * 1024) {
                0 => format!("{} MB", largest / (1024 * 1024)),
                _ => format!("{largest} bytes"),
            };
            let text = format!("The request content size exceeds the maximum size of {text}.");
            Err(Code::azures(413, "RequestContentTooLarge").says(text))
        }
        Err(error) => Err(Refusal::bad_content(error)),
    }
}

/// Numbers a request, finds its subject and decides whether it is admitted.
fn admit(
    azure: &Azure,
    state: &mut AzureState,
    head: &mut Head,
    body: Result<&ParsedBody, &Refusal>,
) -> Admitted {
    state.requests += 1;
    let (sequence, time) = (state.requests, state.now());
    let mut admitted = Admitted {
        sequence,
        time,
        located: Err(Refusal::new(500, "", "")),
        effect: None,
        remaining: None,
        pause: Duration::ZERO,
        caller: None,
    };
    // A challenge names the tenant of the subscription in the path.
    let tenant = match &head.target {
        Ok(Target::Within(subscription, _)) => state.tenant_of(subscription),
        _ => &state.options.tenant,
    };
    let caller = match Caller::of(azure, &head.credentials, tenant, (time, state.enforce_authorization)) {
        Ok(caller) => caller,
        Err(refusal) => {
            admitted.located = Err(refusal);
            return admitted;
        }
    };
    admitted.caller = caller.application();
    head.caller = caller.object_id().map(str::to_owned);
    let head = &*head;
    let request = match body {
        Ok(body) => head.request(body),
        Err(refusal) => {
            admitted.located = Err(refusal.clone());
            return admitted;
        }
    };
    admitted.located = state.locate(&request).and_then(|located| {
        caller.check(state, &located, &head.method, &head.path, request.body)?;
        head.contract_subject(&located).check(request.body).map(|()| located)
    });
    let Ok(located) = &admitted.located else { return admitted };
    let resource = located.resource().unwrap_or_default();
    let subject = Subject {
        method: &head.method,
        resource_type: &located.resource_type,
        name: resource.rsplit('/').next().unwrap_or_default(),
        path: &head.path,
    };
    let seed = state.seed;
    admitted.effect = fault::affecting(&mut state.faults, &subject, seed);
    let verb = match head.method.as_str() {
        "GET" | "HEAD" if located.resolved.as_ref().is_some_and(|resolved| resolved.list) => "LIST",
        "HEAD" => "GET",
        method => method,
    };
    let draw = state.seed.number("answer", &head.path, sequence);
    admitted.pause = state.latency.answer(verb, &located.resource_type, draw);
    let (remaining, passed) = state.admission(&request, located, &caller.name);
    admitted.remaining = Some(remaining);
    if let Err(refusal) = passed {
        admitted.located = Err(refusal);
    }
    admitted
}

/// Writes a request into the journal. `note` has what was done, even where the answer says otherwise.
fn record(
    state: &mut AzureState,
    head: &Head,
    admitted: &mut Admitted,
    outcome: &Result<Answer>,
    note: Note,
) {
    let located = admitted.located.as_ref().ok();
    let kind = match head.method.as_str() {
        "GET" | "HEAD" if located.is_some_and(|located| located.poll) => RequestKind::Poll,
        "GET" | "HEAD" => RequestKind::Read,
        "DELETE" => RequestKind::Delete,
        _ => RequestKind::Write,
    };
    let (status, code, message) = match outcome {
        Ok(answer) => (answer.status, None, None),
        Err(refusal) => (refusal.status, Some(refusal.code.clone()), Some(refusal.message.clone())),
    };
    state.journal.record(JournalEntry {
        sequence: admitted.sequence,
        time: admitted.time,
        method: head.method.clone(),
        path: head.path.clone(),
        api_version: head.version().cloned(),
        status,
        code,
        message,
        kind,
        resource_type: located
            .map(|located| located.resource_type.clone())
            .or_else(|| head.target.as_ref().ok()?.requested_type()),
        resource: located.and_then(Located::resource),
        answer_ms: u64::try_from(admitted.pause.as_millis()).ok().filter(|pause| *pause > 0),
        operation_ms: note.operation_ms,
        client_request_id: head.client_request_id.clone(),
        user_agent: head.user_agent.clone(),
        changes: note.changes,
        fault: admitted.effect.as_ref().map(|effect| effect.name.clone()),
        principal: None,
    });
}

fn header(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

/// Sets the header with the time until the next poll.
fn retry_after(headers: &mut HeaderMap, style: RetryAfterStyle, seconds: u64, now: Timestamp) {
    let milliseconds = || (seconds * 1_000).to_string();
    match style {
        RetryAfterStyle::Seconds | RetryAfterStyle::OnPolls => {
            header(headers, "retry-after", &seconds.to_string());
        }
        RetryAfterStyle::HttpDate => {
            let wait = jiff::SignedDuration::from_secs(i64::try_from(seconds).unwrap_or_default());
            let then = now.checked_add(wait).unwrap_or(now);
            header(headers, "retry-after", &then.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
        }
        RetryAfterStyle::Milliseconds => header(headers, "retry-after-ms", &milliseconds()),
        RetryAfterStyle::MsMilliseconds => header(headers, "x-ms-retry-after-ms", &milliseconds()),
        RetryAfterStyle::Absent => {}
    }
}

fn respond(state: &AzureState, head: &Head, admitted: &Admitted, outcome: Result<Answer>) -> Response {
    let mut headers = HeaderMap::new();
    let sequence = admitted.sequence;
    let guid = |purpose: &str| state.seed.guid(purpose, "", sequence);
    let request_id = guid("request");
    let correlation = head.correlation.clone().unwrap_or_else(|| guid("correlation"));
    let stamp = admitted.time.strftime("%Y%m%dT%H%M%SZ");
    let region = state.options.region.to_ascii_uppercase();
    header(&mut headers, "x-ms-routing-request-id", &format!("{region}:{stamp}:{correlation}"));
    header(&mut headers, "x-ms-request-id", &request_id);
    header(&mut headers, "x-ms-correlation-request-id", &correlation);
    if let Some(id) = &head.client_request_id {
        header(&mut headers, "x-ms-client-request-id", id);
    }
    header(&mut headers, "cache-control", "no-cache");
    header(&mut headers, "pragma", "no-cache");
    header(&mut headers, "expires", "-1");
    header(&mut headers, "x-content-type-options", "nosniff");
    header(&mut headers, "strict-transport-security", "max-age=31536000; includeSubDomains");
    let gateway = outcome.as_ref().is_err_and(|refusal| refusal.gateway);
    if let Some(remaining) = admitted.remaining.as_ref().filter(|_| !gateway) {
        let class = Class::of(&head.method);
        for (name, left) in class.headers(remaining.tenant).into_iter().zip([remaining.own, remaining.global])
        {
            if let Ok(name) = HeaderName::try_from(name) {
                headers.insert(name, HeaderValue::from(left));
            }
        }
        for (policy, left) in &remaining.policies {
            if let Ok(value) = HeaderValue::from_str(&format!("{policy};{left}")) {
                headers.append(HeaderName::from_static("x-ms-ratelimit-remaining-resource"), value);
            }
        }
    }
    let version = head.version().map(String::as_str).unwrap_or_default();
    let (status, body) = match outcome {
        Ok(answer) => {
            if let Some(etag) = &answer.etag {
                header(&mut headers, "etag", etag);
            }
            if let (Some(links), Ok(Located { target: Target::Within(subscription, _), .. })) =
                (&answer.operation, &admitted.located)
            {
                let operation_style = state
                    .operations
                    .get(&links.key)
                    .map(|operation| operation.operation_style)
                    .unwrap_or_default();
                let (status_url, result_url) =
                    state.operation_urls(&head.base, subscription, version, links, operation_style);
                if let Some(url) = status_url {
                    header(&mut headers, "azure-asyncoperation", &url);
                    header(&mut headers, "azure-asyncnotification", "Enabled");
                }
                if let Some(url) = result_url {
                    header(&mut headers, "location", &url);
                }
                if let Some(seconds) = links.retry_after {
                    let style = operation_style.retry_after.unwrap_or(state.options.retry_after);
                    if style != RetryAfterStyle::OnPolls {
                        retry_after(&mut headers, style, seconds, admitted.time);
                    }
                }
            }
            if let Some(path) = &answer.location {
                let url = format!("{}{path}?api-version={version}", head.base);
                header(&mut headers, "location", &url);
            }
            if let Some(seconds) = answer.poll_again {
                let style = answer.operation_style.retry_after.unwrap_or(state.options.retry_after);
                retry_after(&mut headers, style, seconds, admitted.time);
                if answer.status == 202 {
                    header(
                        &mut headers,
                        "location",
                        &format!("{}{}{}", head.base, head.path, query_text(head, None)),
                    );
                }
            }
            let link = |token| format!("{}{}{}", head.base, head.path, query_text(head, Some(token)));
            let next_link = answer.next_page.as_deref().map(link);
            let body = match answer.list {
                Some(list) => Some(list.into_body(next_link.as_deref())),
                None => answer.body.as_ref().map(written),
            };
            (answer.status, body)
        }
        Err(refusal) => {
            if let Some(seconds) = refusal.retry_after {
                retry_after(&mut headers, state.options.retry_after, seconds.into(), admitted.time);
            }
            if let Some(challenge) = refusal.extra.as_ref().and_then(|extra| extra.challenge.as_ref()) {
                header(&mut headers, "www-authenticate", challenge);
            }
            if refusal.gateway {
                header(&mut headers, "x-ms-failure-cause", "gateway");
            }
            (refusal.status, Some(written(&refusal.body())))
        }
    };
    let bytes = match body {
        Some(body) if head.method != "HEAD" => {
            header(&mut headers, "content-type", "application/json; charset=utf-8");
            Bytes::from(body)
        }
        _ => Bytes::new(),
    };
    let mut response = Response::new(Body::from(bytes));
    // A declared fault may name any number; a status that is not final becomes 500.
    let status = StatusCode::from_u16(status).ok().filter(|status| !status.is_informational());
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.headers_mut() = headers;
    response
}

/// A document as JSON. Writing a `Value` cannot fail: its keys are texts.
fn written(document: &Value) -> Vec<u8> {
    serde_json::to_vec(document).unwrap_or_default()
}

/// The query of a request again, with another page token.
fn query_text(head: &Head, token: Option<&str>) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in head.query.iter().filter(|(name, _)| *name != "$skiptoken") {
        query.append_pair(name, value);
    }
    if let Some(token) = token {
        query.append_pair("$skiptoken", token);
    }
    format!("?{}", query.finish())
}

/// An answer that breaks off: the body fails as soon as it is read, so that the connection ends
/// without a complete answer.
pub(crate) fn lost() -> Response {
    let broken = futures::stream::once(async {
        Err::<Bytes, _>(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
    });
    Response::new(Body::from_stream(broken))
}
