//! Services under hosts of their own: the `Host` of a request, before its path, decides which service answers it.
//!
//! A provider's [`DataPlane`] is a table of functions on the state; [`HostRoutes`] lead to a service that is HTTP by
//! itself, such as container registries. Faults, latencies and the journal know both in the words of Resource Manager.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::{Router, http::request::Parts};
use azure_engine::answer::Note;
use azure_engine::answer::data_plane::{DataAnswer, DataCaller, DataRequest, DataSubject};
use azure_engine::document::merge;
use azure_engine::fault::{self, Effect, FaultAction, Subject};
use azure_engine::journal::{JournalEntry, RequestKind};
use azure_engine::provider::{AzureState, DataPlane};
use azure_engine::refusal::{Extra, Refusal, Result};
use azure_engine::settings::latency::bounded;
use azure_entra::{AuthFailure, Scheme};
use bytes::Bytes;
use http::header::{HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use jiff::Timestamp;
use tower::ServiceExt as _;

use crate::azure::Azure;
use crate::caller::Credentials;
use crate::host_routes::HostRoutes;
use crate::http::{lost, read_body};

/// The service that answers requests for a host.
#[derive(Clone)]
enum Service {
    Plane(&'static DataPlane),
    Routes(HostRoutes),
}

impl Azure {
    /// Serves hosts with a suffix by routes; they replace those for the same suffix.
    pub fn serve_hosts(&self, routes: HostRoutes) {
        let mut all = self.inner.host_routes.write();
        all.retain(|known| known.suffix != routes.suffix);
        all.push(routes);
    }

    /// The suffixes of all hosts that are served beside Resource Manager, as certificates and name servers need them.
    pub fn host_suffixes(&self) -> Vec<String> {
        let planes = self.inner.data_planes.iter().map(|plane| plane.suffix.to_owned());
        planes.chain(self.inner.host_routes.read().iter().map(|routes| routes.suffix.clone())).collect()
    }

    /// Wraps routes: requests for hosts of data planes are answered by these planes. [`Azure::router`] is wrapped
    /// already; use this after merging more routes into it.
    pub fn with_data_planes(&self, routes: Router) -> Router {
        routes.layer(middleware::from_fn_with_state(self.clone(), by_host))
    }

    fn service(&self, host: &str) -> Option<Service> {
        let plane = self.inner.data_planes.iter().find(|plane| plane.account_of(host).is_some());
        if let Some(plane) = plane {
            return Some(Service::Plane(plane));
        }
        let routes = self.inner.host_routes.read();
        let named = |routes: &&HostRoutes| {
            host.strip_suffix(&routes.suffix).is_some_and(|name| name.len() > 1 && name.ends_with('.'))
        };
        routes.iter().find(named).cloned().map(Service::Routes)
    }
}

async fn by_host(State(azure): State<Azure>, request: Request, next: Next) -> Response {
    let host = host(&request);
    match azure.service(&host) {
        None => next.run(request).await,
        Some(service) => answer(&azure, &service, host, request).await,
    }
}

/// The host that a request is for, in lower case and without a port.
fn host(request: &Request) -> String {
    let named = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let host = named.or_else(|| request.uri().authority().map(|authority| authority.as_str()));
    let host = host.unwrap_or_default();
    host.split(':').next().unwrap_or_default().to_ascii_lowercase()
}

/// A request, with its body.
struct HostRequest {
    parts: Parts,
    host: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    credentials: Credentials,
    body: Bytes,
    caller: Option<DataCaller>,
}

impl HostRequest {
    fn new(host: String, parts: Parts, body: Bytes) -> Self {
        let query = url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.into_owned()))
            .collect();
        let mut headers: BTreeMap<String, String> = parts
            .headers
            .iter()
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
            .collect();
        headers.entry(HOST.as_str().to_owned()).or_insert_with(|| host.clone());
        let credentials = Credentials::new(headers.get("authorization").map(String::as_str), None);
        Self { parts, host, query, headers, credentials, body, caller: None }
    }

    fn of<'a>(&'a self, plane: &DataPlane) -> DataRequest<'a> {
        DataRequest {
            method: self.parts.method.as_str(),
            host: &self.host,
            account: plane.account_of(&self.host).unwrap_or_default(),
            path: self.parts.uri.path(),
            raw_query: self.parts.uri.query().unwrap_or_default(),
            query: &self.query,
            headers: &self.headers,
            body: &self.body,
            secure: self.parts.extensions.get::<Scheme>() != Some(&Scheme::Http),
            caller: self.caller.as_ref(),
        }
    }

    /// The request in the form that routes take.
    fn request(&self) -> Request {
        let mut parts = self.parts.clone();
        if let Ok(host) = HeaderValue::from_str(&self.host) {
            parts.headers.entry(HOST).or_insert(host);
        }
        Request::from_parts(parts, Body::from(self.body.clone()))
    }
}

/// The result of admission, before a request is performed.
struct Admitted {
    sequence: u64,
    time: Timestamp,
    subject: DataSubject,
    refusal: Option<Refusal>,
    effect: Option<Effect>,
    pause: Duration,
}

async fn answer(azure: &Azure, service: &Service, host: String, request: Request) -> Response {
    let largest = match service {
        Service::Plane(plane) => plane.max_body_bytes,
        Service::Routes(routes) => routes
            .max_body_bytes
            .unwrap_or_else(|| azure.change(|state| state.limit("resources.requestBytes"))),
    };
    let (parts, body) = request.into_parts();
    let (body, unread) = match read_body(body, largest).await {
        Ok(body) => (body, None),
        Err(refusal) => (Bytes::new(), Some(refusal)),
    };
    let mut request = HostRequest::new(host, parts, body);
    let mut admitted = azure.change(|state| admit(azure, state, service, &mut request));
    admitted.refusal = admitted.refusal.or(unread);
    let action = admitted.effect.as_ref().map(|effect| effect.action.clone());
    let delay = match &action {
        Some(FaultAction::Delay { ms }) => bounded(*ms),
        _ => Duration::ZERO,
    };
    let wait = admitted.pause + delay;
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    let outcome = match &action {
        Some(FaultAction::DropRequest) => {
            azure.change(|state| record(state, &request, &admitted, 0, None, Note::default()));
            return lost();
        }
        Some(FaultAction::Pretend { status }) => Some(Ok(DataAnswer::empty(*status))),
        Some(FaultAction::Interfere { id, patch }) => {
            if let Some(id) = id.as_ref().or(admitted.subject.resource.as_ref()) {
                // A resource that is absent, or cannot be changed like this, stays as it is.
                let _ = azure.edit(id, |document| merge(document, patch.clone()));
            }
            None
        }
        other => other.as_ref().and_then(FaultAction::refusal).map(Err),
    };
    let outcome = outcome.or_else(|| admitted.refusal.clone().map(Err));
    let response = match service {
        Service::Plane(plane) => azure.change(|state| {
            let asked_plane = request.of(plane);
            let outcome = outcome.unwrap_or_else(|| (plane.perform)(state, &asked_plane));
            let note = outcome.as_ref().map(|answer| answer.note.clone()).unwrap_or_default();
            let after = action.as_ref().and_then(FaultAction::refusal_after);
            let outcome = after.map_or(outcome, Err);
            let (answer, refusal) = match outcome {
                Ok(answer) => (answer, None),
                Err(refusal) => ((plane.refuse)(state, &asked_plane, &refusal), Some(refusal)),
            };
            record(state, &request, &admitted, answer.status, refusal.as_ref(), note);
            respond(state, &request.parts.method, &admitted, answer, refusal.as_ref())
        }),
        Service::Routes(routes) => {
            let done = match outcome {
                None => {
                    routes.routes.clone().oneshot(request.request()).await.map_err(|never| match never {})
                }
                Some(Ok(answer)) => Ok(with_status(answer.status, Response::default())),
                Some(Err(refusal)) => Err(refusal),
            };
            let after = action.as_ref().and_then(FaultAction::refusal_after);
            let done = after.map_or(done, Err);
            let refusal = done.as_ref().err().cloned();
            let response = done.unwrap_or_else(|refusal| (routes.refuse)(&refusal));
            let status = response.status().as_u16();
            azure.change(|state| {
                record(state, &request, &admitted, status, refusal.as_ref(), Note::default())
            });
            response
        }
    };
    if matches!(action, Some(FaultAction::DropAnswer)) { lost() } else { response }
}

/// Numbers a request, finds its caller and its subject, and the fault that strikes it.
fn admit(azure: &Azure, state: &mut AzureState, service: &Service, request: &mut HostRequest) -> Admitted {
    state.requests += 1;
    let (sequence, time) = (state.requests, state.now());
    let (subject, name, refusal) = match service {
        Service::Plane(plane) => {
            let subject = (plane.locate)(state, &request.of(plane));
            let name = subject.resource.as_ref().filter(|_| !subject.list);
            let name = name.map(|id| id.name().to_owned()).unwrap_or_default();
            match caller(azure, plane, &request.credentials, time) {
                Ok(caller) => {
                    request.caller = caller;
                    (subject, name, None)
                }
                Err(refusal) => (subject, name, Some(refusal)),
            }
        }
        Service::Routes(routes) => {
            let subject =
                DataSubject { resource_type: routes.resource_type.clone(), ..DataSubject::default() };
            (subject, request.host.split('.').next().unwrap_or_default().to_owned(), None)
        }
    };
    let method = request.parts.method.as_str();
    let path = location(request);
    let faulty = Subject { method, resource_type: &subject.resource_type, name: &name, path: &path };
    // As with Resource Manager, no fault strikes an unauthenticated request.
    let seed = state.seed;
    let effect = match &refusal {
        None => fault::affecting(&mut state.faults, &faulty, seed),
        Some(_) => None,
    };
    let verb = match method {
        "GET" | "HEAD" if subject.list => "LIST",
        "HEAD" => "GET",
        method => method,
    };
    let draw = state.seed.number("answer", &path, sequence);
    let pause = match &refusal {
        None => state.latency.answer(verb, &subject.resource_type, draw),
        Some(_) => Duration::ZERO,
    };
    Admitted { sequence, time, subject, refusal, effect, pause }
}

/// The path of a request in the journal and for faults: with its host before it.
fn location(request: &HostRequest) -> String {
    format!("https://{}{}", request.host, request.parts.uri.path())
}

/// Verifies the bearer token of a request; `None` where the service checks a signature itself.
fn caller(
    azure: &Azure,
    plane: &DataPlane,
    credentials: &Credentials,
    now: Timestamp,
) -> Result<Option<DataCaller>> {
    let options = azure.options();
    let refuse = |failure: &AuthFailure| {
        let authority = format!("{}/{}", options.authority.trim_end_matches('/'), options.tenant);
        let challenge = Some((plane.challenge)(&authority));
        let mut refusal = Refusal::new(401, failure.code(), failure.to_string());
        refusal.extra = Some(Box::new(Extra { inner: None, challenge }));
        refusal
    };
    match (&credentials.bearer, azure.verifier()) {
        (Some(bearer), Some(verifier)) => {
            let principal = verifier
                .verify_for(bearer, now, &|audience| plane.accepts(audience))
                .map_err(|failure| refuse(&failure))?;
            Ok(Some(DataCaller {
                object_id: principal.object_id,
                client_id: principal.client_id,
                tenant: principal.tenant_id,
            }))
        }
        (None, _) if plane.own_authentication => Ok(None),
        (None, verifier) if options.require_auth || verifier.is_some() => Err(refuse(&AuthFailure::Missing)),
        // Tokens are not verified.
        _ => Ok(Some(DataCaller { tenant: options.tenant.clone(), ..DataCaller::default() })),
    }
}

fn record(
    state: &mut AzureState,
    request: &HostRequest,
    admitted: &Admitted,
    status: u16,
    refusal: Option<&Refusal>,
    note: Note,
) {
    let text = |name: &str| request.headers.get(name).cloned();
    let kind = match request.parts.method.as_str() {
        "GET" | "HEAD" => RequestKind::Read,
        "DELETE" => RequestKind::Delete,
        _ => RequestKind::Write,
    };
    state.revision += 1;
    state.journal.record(JournalEntry {
        sequence: admitted.sequence,
        time: admitted.time,
        method: request.parts.method.to_string(),
        path: location(request),
        api_version: request.query.get("api-version").cloned().or_else(|| text("x-ms-version")),
        status,
        code: refusal.map(|refusal| refusal.code.clone()),
        message: refusal.map(|refusal| refusal.message.clone()),
        kind,
        resource_type: Some(admitted.subject.resource_type.clone()),
        resource: admitted
            .subject
            .resource
            .as_ref()
            .filter(|_| !admitted.subject.list)
            .map(ToString::to_string),
        answer_ms: u64::try_from(admitted.pause.as_millis()).ok().filter(|pause| *pause > 0),
        operation_ms: note.operation_ms,
        client_request_id: text("x-ms-client-request-id"),
        user_agent: text(USER_AGENT.as_str()),
        changes: note.changes,
        fault: admitted.effect.as_ref().map(|effect| effect.name.clone()),
        principal: None,
    });
}

fn respond(
    state: &AzureState,
    method: &Method,
    admitted: &Admitted,
    answer: DataAnswer,
    refusal: Option<&Refusal>,
) -> Response {
    let body = if method == Method::HEAD { Vec::new() } else { answer.body };
    let mut response = with_status(answer.status, Response::new(Body::from(body)));
    let headers = response.headers_mut();
    set(headers, "x-ms-request-id", &state.seed.guid("request", "", admitted.sequence));
    set(headers, "date", &admitted.time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
    if let Some(seconds) = refusal.and_then(|refusal| refusal.retry_after) {
        set(headers, "retry-after", &seconds.to_string());
    }
    let challenge = refusal.and_then(|refusal| refusal.extra.as_ref()?.challenge.as_deref());
    if let Some(challenge) = challenge {
        set(headers, "www-authenticate", challenge);
    }
    for (name, value) in &answer.headers {
        set(headers, name, value);
    }
    response
}

fn set(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
        headers.insert(name, value);
    }
}

/// A declared fault may name any number; a status that is not final becomes 500.
fn with_status(status: u16, mut response: Response) -> Response {
    let status = StatusCode::from_u16(status).ok().filter(|status| !status.is_informational());
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}
