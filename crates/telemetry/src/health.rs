//! Named health checks behind `/healthz` and `/readyz`.

use std::sync::Arc;

use axum::extract::{Path, RawQuery};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;

use crate::metrics::HealthMetrics;

/// A named check.
#[derive(Clone)]
pub struct Check {
    /// Its name, as it stands in URLs: `/healthz/leaderElection`.
    pub name: String,
    /// Runs the check: `Ok`, or what is wrong. It must return at once.
    pub run: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// Serves the checks that a function returns.
#[derive(Clone)]
pub struct Health {
    checks: Arc<dyn Fn() -> Vec<Check> + Send + Sync>,
    ready: &'static [&'static str],
    metrics: Option<HealthMetrics>,
}

/// What a request asks for.
#[derive(Clone, Copy)]
struct Endpoint {
    name: &'static str,
    ready_only: bool,
}

const ENDPOINTS: [Endpoint; 2] =
    [Endpoint { name: "healthz", ready_only: false }, Endpoint { name: "readyz", ready_only: true }];

impl Health {
    /// Serves the checks that `checks` returns for each request; those named in `ready` also decide about readiness.
    pub fn new(
        checks: impl Fn() -> Vec<Check> + Send + Sync + 'static,
        ready: &'static [&'static str],
    ) -> Self {
        Self { checks: Arc::new(checks), ready, metrics: None }
    }

    /// Counts each check that runs.
    #[must_use]
    pub fn counted(self, metrics: HealthMetrics) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    /// The routes `/healthz`, `/healthz/{check}`, `/readyz` and `/readyz/{check}`.
    pub fn router(&self) -> axum::Router {
        let mut router = axum::Router::new();
        for endpoint in ENDPOINTS {
            let (all, one) = (self.clone(), self.clone());
            let answer_all = move |RawQuery(query): RawQuery| async move {
                all.answer(endpoint, query.as_deref().unwrap_or_default())
            };
            let answer_one = move |Path(name): Path<String>| async move { one.answer_one(endpoint, &name) };
            router = router
                .route(&format!("/{}", endpoint.name), get(answer_all))
                .route(&format!("/{}/{{check}}", endpoint.name), get(answer_one));
        }
        router
    }

    fn run(&self, endpoint: Endpoint, check: &Check) -> Result<(), String> {
        let outcome = (check.run)();
        if let Some(metrics) = &self.metrics {
            metrics.checked(endpoint.name, &check.name, outcome.is_ok());
        }
        outcome
    }

    fn selected(&self, ready_only: bool) -> Vec<Check> {
        let mut checks = (self.checks)();
        checks.retain(|check| !ready_only || self.ready.contains(&check.name.as_str()));
        checks
    }

    fn answer_one(&self, endpoint: Endpoint, name: &str) -> Response {
        let check = self.selected(endpoint.ready_only).into_iter().find(|check| check.name == name);
        match check.map(|check| self.run(endpoint, &check)) {
            None => StatusCode::NOT_FOUND.into_response(),
            Some(Ok(())) => (StatusCode::OK, "ok").into_response(),
            Some(Err(reason)) => {
                (StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {reason}\n"))
                    .into_response()
            }
        }
    }

    fn answer(&self, endpoint: Endpoint, query: &str) -> Response {
        let mut checks = self.selected(endpoint.ready_only);
        checks.sort_by(|a, b| a.name.cmp(&b.name));
        let parameters: Vec<(&str, &str)> =
            query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
        let verbose = parameters.iter().any(|(key, _)| *key == "verbose");
        let excluded = |name: &str| parameters.iter().any(|(key, value)| *key == "exclude" && *value == name);
        let mut lines = String::new();
        let mut failed = false;
        for check in &checks {
            let name = &check.name;
            lines += &match (excluded(name), self.run(endpoint, check)) {
                (true, _) => format!("[+]{name} excluded: ok\n"),
                (false, Ok(())) => format!("[+]{name} ok\n"),
                (false, Err(reason)) => {
                    failed = true;
                    format!("[-]{name} failed: {reason}\n")
                }
            };
        }
        let endpoint = endpoint.name;
        if failed {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("{lines}{endpoint} check failed\n")).into_response()
        } else if verbose {
            (StatusCode::OK, format!("{lines}{endpoint} check passed\n")).into_response()
        } else {
            (StatusCode::OK, "ok").into_response()
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
        let check = |name: &str, outcome: Result<(), &'static str>| Check {
            name: name.to_owned(),
            run: Arc::new(move || outcome.map_err(str::to_owned)),
        };
        let checks =
            [check("service-lb-controller", Err("no watch for 60 s")), check("leaderElection", Ok(()))];
        Health::new(move || checks.to_vec(), &["leaderElection"])
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
        assert_eq!(ask(&health(), "/readyz/leaderElection").await.0, 200);
        assert_eq!(ask(&health(), "/readyz/service-lb-controller").await.0, 404);
    }

    #[tokio::test]
    async fn checks_are_counted() {
        let all = crate::metrics::Metrics::default();
        let health = health().counted(HealthMetrics::of(&all));
        ask(&health, "/healthz").await;
        ask(&health, "/readyz/leaderElection").await;
        let text = all.encode();
        for line in [
            "kubernetes_healthcheck{name=\"service-lb-controller\",type=\"healthz\"} 0",
            "kubernetes_healthcheck{name=\"leaderElection\",type=\"readyz\"} 1",
            "kubernetes_healthchecks_total{name=\"service-lb-controller\",status=\"error\",type=\"healthz\"} 1",
            "kubernetes_healthchecks_total{name=\"leaderElection\",status=\"success\",type=\"healthz\"} 1",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }

    #[tokio::test]
    async fn verbose_lists_the_checks() {
        let (status, body) = ask(&health(), "/readyz?verbose").await;
        assert_eq!((status, body.as_str()), (200, "[+]leaderElection ok\nreadyz check passed\n"));
    }
}
