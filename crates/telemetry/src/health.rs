//! Named health checks behind `/healthz` and `/readyz`: `spec/config-and-cli.md` 5.2.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use parking_lot::RwLock;

/// A check: nothing to say, or what is wrong.
pub type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The checks of a process. Cheap to clone; checks may be added while it is served.
#[derive(Clone, Default)]
pub struct Health(Arc<RwLock<Checks>>);

#[derive(Default)]
struct Checks {
    all: BTreeMap<String, Check>,
    /// Those that also decide about readiness.
    ready: Vec<String>,
}

impl Health {
    /// Adds a check that decides about health alone; a check of the same name is replaced.
    pub fn add(&self, name: &str, check: Check) {
        self.0.write().all.insert(name.to_owned(), check);
    }

    /// Adds a check that decides about health and readiness.
    pub fn add_to_readiness(&self, name: &str, check: Check) {
        self.add(name, check);
        let mut checks = self.0.write();
        if !checks.ready.iter().any(|known| known == name) {
            checks.ready.push(name.to_owned());
        }
    }

    /// The routes `/healthz`, `/healthz/{check}` and `/readyz`.
    pub fn router(&self) -> axum::Router {
        axum::Router::new()
            .route("/healthz", get(healthz))
            .route("/healthz/{check}", get(one))
            .route("/readyz", get(readyz))
            .with_state(self.clone())
    }

    fn answer(&self, endpoint: &str, ready_only: bool, query: &str) -> Response {
        let checks: Vec<(String, Check)> = {
            let inner = self.0.read();
            let wanted = |name: &String| !ready_only || inner.ready.contains(name);
            inner.all.iter().filter(|(name, _)| wanted(name)).map(|(n, c)| (n.clone(), c.clone())).collect()
        };
        let parameters: Vec<(&str, &str)> =
            query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
        let verbose = parameters.iter().any(|(key, _)| *key == "verbose");
        let excluded = |name: &str| parameters.iter().any(|(key, value)| *key == "exclude" && *value == name);
        let mut lines = String::new();
        let mut failed = false;
        for (name, check) in &checks {
            lines += &match (excluded(name), check()) {
                (true, _) => format!("[+]{name} excluded: ok\n"),
                (false, Ok(())) => format!("[+]{name} ok\n"),
                (false, Err(reason)) => {
                    failed = true;
                    format!("[-]{name} failed: {reason}\n")
                }
            };
        }
        if failed {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}{endpoint} check failed\n")).into_response()
        } else if verbose {
            (StatusCode::OK, format!("{lines}{endpoint} check passed\n")).into_response()
        } else {
            (StatusCode::OK, "ok").into_response()
        }
    }
}

async fn healthz(State(health): State<Health>, RawQuery(query): RawQuery) -> Response {
    health.answer("healthz", false, query.as_deref().unwrap_or_default())
}

async fn readyz(State(health): State<Health>, RawQuery(query): RawQuery) -> Response {
    health.answer("readyz", true, query.as_deref().unwrap_or_default())
}

async fn one(State(health): State<Health>, Path(name): Path<String>) -> Response {
    let check = health.0.read().all.get(&name).cloned();
    match check.map(|check| check()) {
        None => StatusCode::NOT_FOUND.into_response(),
        Some(Ok(())) => (StatusCode::OK, "ok").into_response(),
        Some(Err(reason)) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n")).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::Request;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    async fn ask(health: &Health, path: &str) -> (u16, String) {
        let response =
            health.router().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    fn health() -> Health {
        let health = Health::default();
        health.add_to_readiness("leaderElection", Arc::new(|| Ok(())));
        health.add("service-lb-controller", Arc::new(|| Err("no watch for 60 s".to_owned())));
        health
    }

    #[tokio::test]
    async fn one_failing_check_fails_health_but_not_readiness() {
        let (status, body) = ask(&health(), "/healthz").await;
        assert_eq!(status, 500);
        assert_eq!(
            body,
            "[+]leaderElection ok\n[-]service-lb-controller failed: no watch for 60 s\nhealthz check failed\n"
        );
        assert_eq!(ask(&health(), "/readyz").await, (200, "ok".to_owned()));
    }

    #[tokio::test]
    async fn a_check_can_be_excluded_or_asked_alone() {
        assert_eq!(ask(&health(), "/healthz?exclude=service-lb-controller").await.0, 200);
        assert_eq!(ask(&health(), "/healthz/leaderElection").await, (200, "ok".to_owned()));
        assert_eq!(ask(&health(), "/healthz/service-lb-controller").await.0, 500);
        assert_eq!(ask(&health(), "/healthz/nonsense").await.0, 404);
    }

    #[tokio::test]
    async fn verbose_lists_the_checks() {
        let (status, body) = ask(&health(), "/readyz?verbose").await;
        assert_eq!((status, body.as_str()), (200, "[+]leaderElection ok\nreadyz check passed\n"));
    }
}
