//! The API over HTTP.

mod answer;
mod body;
mod json;
mod path;
mod query;
mod representation;
mod resource;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{Method, StatusCode};

pub(crate) use representation::{Representation, bookmark, watch_line};

use crate::discovery;
use crate::fault::{self, Effect};
use crate::identity::User;
use crate::kubernetes::Kubernetes;
use crate::status::ApiError;
use path::{Target, target};
use query::Query;

impl Kubernetes {
    /// The API as an axum router: serve it, or give it to `kube::Client::new` as it is, which needs no
    /// sockets and works on paused time.
    pub fn router(&self) -> Router {
        Router::new().fallback(handle).with_state(self.clone())
    }
}

async fn handle(State(kubernetes): State<Kubernetes>, request: Request) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let user = kubernetes.caller(request.headers());
    if user.is_none() && !discovery::is_public(&path) {
        return answer::error(&ApiError::unauthorized());
    }
    match (target(&path), user) {
        (Target::Resource(target), Some(user)) => {
            serve(kubernetes, target, user, request).await.unwrap_or_else(|e| answer::error(&e))
        }
        _ if request.method() != Method::GET => answer::error(&ApiError::method_not_allowed()),
        _ => {
            let accept = representation::accept(request.headers());
            match discovery::answer(&kubernetes, &path, accept) {
                Some((media_type, body)) => answer::bytes(StatusCode::OK, media_type, body),
                None => answer::text(StatusCode::NOT_FOUND, "404 page not found\n"),
            }
        }
    }
}

async fn serve(
    kubernetes: Kubernetes,
    target: path::ResourcePath,
    user: User,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let query = Query::parse(request.method(), request.uri().query().unwrap_or_default())?;
    let verb = verb(request.method(), &target, &query)?;
    let resource = target.resource();
    kubernetes.count(verb, &resource);
    let effect = kubernetes.shared.faults.lock().take(verb, &resource, &target.name);
    match effect {
        None => resource::serve(kubernetes, verb, target, query, user, request).await,
        Some(Effect::Refuse { code, reason, message, retry_after }) => {
            Err(fault::refusal(code, &reason, &message, retry_after))
        }
        Some(Effect::Delay(delay)) => {
            tokio::time::sleep(delay).await;
            resource::serve(kubernetes, verb, target, query, user, request).await
        }
        Some(Effect::LoseAnswer) => {
            let answer = resource::serve(kubernetes, verb, target, query, user, request).await;
            tracing::debug!(verb, resource, served = answer.is_ok(), "an answer is lost");
            Err(fault::refusal(504, "Timeout", "injected fault: the answer was lost", None))
        }
    }
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
