//! The control API under `/_cerulean/`, over plain HTTP, for tests and users outside of this process. Paths and
//! documents are those of the simulated Azure wherever they have the same meaning.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fault::Fault;
use crate::kubernetes::Kubernetes;
use crate::server::{ServeError, listen};

type Parameters = BTreeMap<String, String>;

/// The text for a user who opens it in a browser.
const ABOUT: &str = "This is the control API of a simulated Kubernetes, below /_cerulean/: journal, faults, state, \
     state/snapshot, watches, compact. The Kubernetes API itself is where the kubeconfig says.\n";

impl Kubernetes {
    /// The control API as a router. Requests for a host with a domain name are refused: a page in a browser could send
    /// them after pointing its own name at this machine (DNS rebinding).
    pub fn control_router(&self) -> Router {
        Router::new()
            .route("/", get(|| async { ABOUT }))
            .route("/_cerulean/", get(|| async { ABOUT }))
            .route("/_cerulean/journal", get(journal).delete(clear_journal))
            .route("/_cerulean/faults", get(faults).post(inject).delete(clear_faults))
            .route("/_cerulean/state", get(state))
            .route("/_cerulean/state/snapshot", get(save).put(restore).layer(DefaultBodyLimit::disable()))
            .route("/_cerulean/watches", delete(drop_watches))
            .route("/_cerulean/compact", post(compact))
            .layer(middleware::from_fn(refuse_foreign_hosts))
            .with_state(self.clone())
    }

    /// Serves the control API over plain HTTP until `shutdown`. Returns the address that it listens on.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn serve_control(
        &self,
        address: SocketAddr,
        shutdown: CancellationToken,
    ) -> Result<SocketAddr, ServeError> {
        listen(address, None, self.control_router(), shutdown).await
    }
}

async fn refuse_foreign_hosts(request: Request, next: Next) -> Response {
    let named = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let host = named.or_else(|| request.uri().authority().map(|authority| authority.as_str()));
    // A request within this process has no host.
    if host.is_none_or(is_own) {
        return next.run(request).await;
    }
    let text = "The control API is for this machine: ask for it by address, or as localhost.";
    refused(StatusCode::FORBIDDEN, "Forbidden", text)
}

/// Whether no DNS server decides where the host is: it is an address, or `localhost`.
fn is_own(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

fn refused(status: StatusCode, code: &str, message: impl Into<String>) -> Response {
    let error = json!({ "error": { "code": code, "message": message.into() } });
    (status, Json(error)).into_response()
}

fn bad(message: impl Into<String>) -> Response {
    refused(StatusCode::BAD_REQUEST, "InvalidRequestContent", message)
}

/// `?after=N` leaves out the first N requests; `?format=lines` gives JSON Lines without counts.
async fn journal(State(kubernetes): State<Kubernetes>, Query(query): Query<Parameters>) -> Response {
    const KNOWN: [&str; 2] = ["after", "format"];
    if let Some(name) = query.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return bad(format!("there is no parameter `{name}`; there are {}", KNOWN.join(", ")));
    }
    let Ok(after) = query.get("after").map_or(Ok(0), |after| after.parse()) else {
        return bad("after must be the number of a request");
    };
    let journal = kubernetes.journal_after(after);
    match query.get("format").map(String::as_str) {
        None | Some("json") => Json(journal).into_response(),
        Some("lines") => ([(CONTENT_TYPE, "application/x-ndjson")], journal.to_lines()).into_response(),
        Some(other) => bad(format!("format is '{other}', but must be json (the default) or lines")),
    }
}

async fn clear_journal(State(kubernetes): State<Kubernetes>) -> StatusCode {
    kubernetes.clear_journal();
    StatusCode::NO_CONTENT
}

async fn faults(State(kubernetes): State<Kubernetes>) -> Json<Vec<Fault>> {
    Json(kubernetes.faults())
}

/// Declares one fault or a list of them.
async fn inject(State(kubernetes): State<Kubernetes>, Json(body): Json<Value>) -> Response {
    match faults::read::<Fault>(body) {
        Ok(faults) => {
            let count = faults.len();
            faults.into_iter().for_each(|fault| kubernetes.inject(fault));
            (StatusCode::CREATED, Json(json!({ "inForce": count }))).into_response()
        }
        Err(error) => bad(error.to_string()),
    }
}

async fn clear_faults(State(kubernetes): State<Kubernetes>) -> StatusCode {
    kubernetes.clear_faults();
    StatusCode::NO_CONTENT
}

/// Counts of the current objects.
async fn state(State(kubernetes): State<Kubernetes>) -> Json<Value> {
    let objects = kubernetes.shared.state.lock().store.counts();
    Json(json!({ "revision": kubernetes.resource_version(), "time": kubernetes.now(), "objects": objects }))
}

async fn save(State(kubernetes): State<Kubernetes>) -> Json<Value> {
    Json(kubernetes.save())
}

async fn restore(State(kubernetes): State<Kubernetes>, Json(saved): Json<Value>) -> Response {
    match kubernetes.restore(saved) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => bad(error.to_string()),
    }
}

async fn drop_watches(State(kubernetes): State<Kubernetes>) -> StatusCode {
    kubernetes.drop_watches();
    StatusCode::NO_CONTENT
}

async fn compact(State(kubernetes): State<Kubernetes>) -> StatusCode {
    kubernetes.compact();
    StatusCode::NO_CONTENT
}

#[cfg(test)]
mod tests {
    use super::is_own;

    #[test]
    fn hosts_with_names_of_their_own_are_foreign() {
        for own in ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080", "10.0.0.1"] {
            assert!(is_own(own), "{own}");
        }
        for foreign in ["", "example.com", "localhost.example.com:80", "127.0.0.1.example.com", "[evil]"] {
            assert!(!is_own(foreign), "{foreign}");
        }
    }
}
