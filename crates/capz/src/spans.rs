//! Spans of what controllers do, named as those of the established provider. No log takes their target: they are made where
//! a program sends traces, and cost nothing elsewhere.

use std::fmt;

use azure_types::ResourceId;
use capz_planner::Action;
use capz_planner::service::Service;
use controllers::Reconciled;
use tracing::field::{Empty, display};
use tracing::{Span, info_span};
use uuid::Uuid;

use crate::controller::Controller;
use crate::store::Key;

/// One loop over an object; its calls to Azure bear this id.
pub fn reconcile(controller: &Controller, key: &Key, correlation: Uuid) -> Span {
    info_span!(
        target: "spans::controllers",
        "Reconcile",
        otel.name = controller.span,
        otel.status_code = Empty,
        otel.status_description = Empty,
        namespace = key.namespace,
        name = key.name,
        kind = controller.kind,
        "x-ms-correlation-request-id" = %correlation,
        result = Empty,
    )
}

/// How a loop has ended.
pub fn reconciled(span: &Span, result: Reconciled) {
    span.record("result", result.as_str());
    if result == Reconciled::Error {
        span.record("otel.status_code", "error");
    }
}

/// The work on one resource in Azure, from the request until Azure's operation is over. `resumed`: another loop sent the
/// request.
pub fn step(service: &Service, action: Action, target: &ResourceId, resumed: bool) -> Span {
    let name = match action {
        Action::Create | Action::Update => "async.Service.CreateOrUpdateResource",
        Action::Delete => "async.Service.DeleteResource",
    };
    info_span!(
        target: "spans::services",
        "Step",
        otel.name = name,
        otel.status_code = Empty,
        otel.status_description = Empty,
        service = service.name,
        resource = target.name(),
        id = target.as_str(),
        resumed = resumed.then_some(true),
    )
}

/// What the work of a span has come to.
pub fn ended<T, E: fmt::Display>(span: &Span, outcome: &Result<T, E>) {
    if let Err(error) = outcome {
        failed(span, error);
    }
}

/// A span's work has failed.
pub fn failed(span: &Span, why: impl fmt::Display) {
    span.record("otel.status_code", "error");
    span.record("otel.status_description", display(why));
}
