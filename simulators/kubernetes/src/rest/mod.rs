//! The API over HTTP.

mod answer;
mod body;
mod json;
mod path;
mod query;
mod representation;
mod resource;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use http::header::USER_AGENT;
use http::{Method, StatusCode};
use parking_lot::Mutex;
use tokio::time::Instant;

pub(crate) use representation::{Representation, bookmark, watch_line};

use crate::discovery;
use crate::fault::{Effect, FaultAction, Lag, Subject};
use crate::identity::User;
use crate::journal::JournalEntry;
use crate::kubernetes::Kubernetes;
use crate::status::ApiError;
use path::{Target, target};
use query::Query;

/// Warnings for the client, beside the response.
type Warnings = Arc<Mutex<Vec<String>>>;

impl Kubernetes {
    /// The API as an axum router: serve it, or pass it to `kube::Client::new`, which needs no sockets and works on
    /// paused time.
    pub fn router(&self) -> Router {
        Router::new().fallback(handle).with_state(self.clone())
    }
}

async fn handle(State(kubernetes): State<Kubernetes>, request: Request) -> Response<Body> {
    let begun = Instant::now();
    let user_agent = request.headers().get(USER_AGENT).and_then(|value| value.to_str().ok());
    let user = kubernetes.caller(&request);
    let mut entry = JournalEntry {
        sequence: kubernetes.shared.journal.lock().begin(),
        time: kubernetes.now(),
        method: request.method().as_str().to_owned(),
        path: request.uri().path().to_owned(),
        user: user.as_ref().map(|user| user.name.clone()).unwrap_or_default(),
        user_agent: user_agent.unwrap_or_default().to_owned(),
        ..JournalEntry::default()
    };
    let warnings = Warnings::default();
    let answer = conduct(&kubernetes, user, request, &warnings, &mut entry).await;
    kubernetes.keep_house();
    let Answer { mut response, lost } = answer.unwrap_or_else(|error| {
        (entry.code, entry.message) = (error.reason.clone(), error.message.clone());
        Answer::whole(answer::error(&error))
    });
    // An error response has warnings, too.
    warnings.lock().iter().for_each(|warning| answer::warn(&mut response, warning));
    entry.status = if lost { 0 } else { response.status().as_u16() };
    entry.answer_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    kubernetes.shared.journal.lock().record(entry, kubernetes.shared.options.journal);
    response
}

/// The response to a client.
struct Answer {
    response: Response<Body>,
    /// Whether the request was lost, and with it the response.
    lost: bool,
}

impl Answer {
    fn whole(response: Response<Body>) -> Self {
        Self { response, lost: false }
    }
}

/// Determines the target of a request, applies faults, and serves it.
async fn conduct(
    kubernetes: &Kubernetes,
    user: Option<User>,
    request: Request,
    warnings: &Warnings,
    entry: &mut JournalEntry,
) -> Result<Answer, ApiError> {
    let path = request.uri().path().to_owned();
    let user = match user {
        Some(user) => user,
        None if discovery::is_public(&path) => {
            return Ok(Answer::whole(outside(kubernetes, &path, &request)));
        }
        None => return Err(ApiError::unauthorized()),
    };
    let asked = match target(&path) {
        Target::Other => None,
        Target::Resource(target) => {
            let query = Query::parse(request.method(), request.uri().query().unwrap_or_default())?;
            let verb = verb(request.method(), &target, &query)?;
            kubernetes.count(verb, &target.resource());
            entry.verb = verb.to_owned();
            entry.resource_type = target.qualified_resource();
            entry.namespace.clone_from(&target.namespace);
            entry.resource.clone_from(&target.name);
            entry.field_manager = query.field_manager.clone().unwrap_or_default();
            Some((target, query, verb))
        }
    };
    let resource = asked.as_ref().map(|(target, ..)| target.resource()).unwrap_or_default();
    let effect = kubernetes.shared.faults.lock().affecting(
        &Subject {
            method: &entry.method,
            verb: &entry.verb,
            resource: &resource,
            qualified: &entry.resource_type,
            name: &entry.resource,
            namespace: &entry.namespace,
            path: &entry.path,
            user: &entry.user,
            user_agent: &entry.user_agent,
        },
        kubernetes.shared.options.seed,
    );
    let Some(Effect { name, action }) = effect else {
        return serve(kubernetes, user, asked, request, warnings, None).await;
    };
    entry.fault = Some(if name.is_empty() { "unnamed".to_owned() } else { name });
    match &action {
        FaultAction::Delay { ms } => tokio::time::sleep(Duration::from_millis(*ms)).await,
        FaultAction::DropRequest => return Ok(Answer { response: broken(), lost: true }),
        FaultAction::Interfere { patch } => {
            let kind = asked.as_ref().and_then(|(target, ..)| target.kind(kubernetes));
            if let Some(kind) = kind {
                // If the object does not exist, or refuses the change, it stays as it is.
                let _ = kubernetes.merge_at(&kind, &entry.namespace, &entry.resource, patch).await;
            }
        }
        _ => {}
    }
    if let Some(refusal) = action.refusal() {
        return Err(refusal);
    }
    let stale = match &action {
        FaultAction::Stale { changes } => Some(kubernetes.shared.faults.lock().lag(*changes)),
        _ => None,
    };
    let answer = serve(kubernetes, user, asked, request, warnings, stale).await;
    if let Some(refusal) = action.refusal_after() {
        return Err(refusal);
    }
    match action {
        FaultAction::DropAnswer => answer.map(|_| Answer::whole(broken())),
        FaultAction::DropWatch { after_ms } if entry.verb == "watch" => {
            answer.map(|Answer { response, lost }| Answer { response: cut(response, after_ms), lost })
        }
        _ => answer,
    }
}

async fn serve(
    kubernetes: &Kubernetes,
    user: User,
    asked: Option<(path::ResourcePath, Query, &str)>,
    request: Request,
    warnings: &Warnings,
    stale: Option<Lag>,
) -> Result<Answer, ApiError> {
    let Some((target, query, verb)) = asked else {
        let path = request.uri().path();
        return Ok(Answer::whole(outside(kubernetes, path, &request)));
    };
    let query = Query { stale, ..query };
    resource::serve(kubernetes.clone(), verb, target, query, user, request, Arc::clone(warnings))
        .await
        .map(Answer::whole)
}

/// Paths outside of the resources.
fn outside(kubernetes: &Kubernetes, path: &str, request: &Request) -> Response<Body> {
    if request.method() != Method::GET {
        return answer::error(&ApiError::method_not_allowed());
    }
    match discovery::answer(kubernetes, path, representation::accept(request.headers())) {
        Some((media_type, body)) => answer::bytes(StatusCode::OK, media_type, body),
        None => answer::text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

fn reset() -> std::io::Error {
    std::io::ErrorKind::ConnectionReset.into()
}

/// A response whose connection breaks before it is complete.
fn broken() -> Response<Body> {
    let never = futures::stream::once(async { Err::<Bytes, _>(reset()) });
    Response::new(Body::from_stream(never))
}

/// A response whose connection breaks after a time.
fn cut(response: Response<Body>, after_ms: u64) -> Response<Body> {
    let until = tokio::time::sleep(Duration::from_millis(after_ms));
    response.map(|body| {
        let parts = body.into_data_stream().map_err(std::io::Error::other);
        let end = futures::stream::once(async { Err(reset()) });
        Body::from_stream(parts.take_until(until).chain(end))
    })
}

/// The API's verb for an HTTP method on a path.
fn verb(method: &Method, target: &path::ResourcePath, query: &Query) -> Result<&'static str, ApiError> {
    let named = !target.name.is_empty();
    Ok(match *method {
        Method::GET if query.watch => "watch",
        Method::GET if named => "get",
        Method::GET => "list",
        Method::POST if !named || !target.subresource.is_empty() => "create",
        Method::PUT if named => "update",
        Method::PATCH if named => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ => return Err(ApiError::method_not_allowed()),
    })
}
