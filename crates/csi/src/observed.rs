//! What every call has: one line in the log, its place in the metrics, a span, and a message that its caller can pass on if
//! it fails.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use telemetry::metrics::{Metrics, OperationMetrics};
use tokio::time::Instant;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::Service;
use tracing::{Instrument as _, Span};

use crate::call::{Call, Facts};
use crate::operation::{Driver, Operation};
use crate::spans;
use crate::status::limited;

/// Methods that are called all the time: their successes are logged on the lowest level.
const FREQUENT: [&str; 4] = [
    "/csi.v1.Identity/Probe",
    "/csi.v1.Node/NodeGetCapabilities",
    "/csi.v1.Node/NodeGetVolumeStats",
    "/csi.v1.Controller/ListVolumes",
];

/// Counts the calls of a driver. Cheap to clone.
#[derive(Clone)]
pub struct Observer {
    driver: Driver,
    metrics: OperationMetrics,
}

impl Observer {
    /// Registers the metrics of a driver.
    pub fn of(metrics: &Metrics, driver: Driver) -> Self {
        Self { driver, metrics: OperationMetrics::of(metrics, driver.metrics_prefix()) }
    }
}

/// Services whose calls are logged, counted and traced.
#[derive(Clone)]
pub struct Observed<S> {
    inner: S,
    observer: Observer,
}

impl<S> Observed<S> {
    /// Observes the calls of services.
    pub fn new(inner: S, observer: Observer) -> Self {
        Self { inner, observer }
    }
}

impl<S> Service<Request<Body>> for Observed<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = request.uri().path().to_owned();
        let call = Call::new(Operation::of(self.observer.driver, &method));
        let span = spans::call(&method);
        let answer = call.clone().scope(self.inner.call(request)).instrument(span.clone());
        let mut observed = Observation {
            method,
            call,
            span,
            started: Instant::now(),
            metrics: self.observer.metrics.clone(),
            has_ended: false,
        };
        Box::pin(async move {
            let Ok(response) = answer.await;
            // The status of a success is not here: it comes after the message.
            let Some(status) = Status::from_header_map(response.headers()) else {
                observed.end(&Status::ok(""));
                return Ok(response);
            };
            observed.end(&status);
            Ok(limited(status).into_http())
        })
    }
}

/// A call that is being served. The server drops it when the caller has gone or has waited as long as it wanted to.
struct Observation {
    method: String,
    call: Call,
    span: Span,
    started: Instant,
    metrics: OperationMetrics,
    has_ended: bool,
}

impl Observation {
    fn end(&mut self, status: &Status) {
        self.has_ended = true;
        let duration = self.started.elapsed();
        let Facts { operation, labels, request } = self.call.facts();
        let succeeded = status.code() == Code::Ok;
        if let Some(operation) = operation {
            self.metrics.completed(operation.label(), succeeded, duration, &labels);
        }
        spans::ended(&self.span, status);

        let method = self.method.as_str();
        let duration_ms = duration.as_millis();
        if !succeeded {
            let (status, error) = (format!("{:?}", status.code()), status.message());
            self.span.in_scope(|| {
                tracing::warn!(method, status, error, duration_ms, request, "a call failed");
            });
        } else if FREQUENT.contains(&method) {
            self.span.in_scope(|| tracing::trace!(method, duration_ms, request, "answered a call"));
        } else {
            self.span.in_scope(|| tracing::info!(method, duration_ms, request, "answered a call"));
        }
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end(&Status::cancelled("the caller has gone, or its deadline has passed"));
        }
    }
}
