//! Spans of the controllers, named like those of the established provider. No log subscribes to their target: they are
//! created only where the program exports traces, and cost nothing elsewhere.

use std::fmt;

use azure_types::ResourceId;
use capz_planner::Action;
use capz_planner::service::Service;
use controllers::Reconciled;
use tracing::field::{Empty, display};
use tracing::{Span, info_span};
use uuid::Uuid;

use crate::kubernetes::controller::Controller;
use crate::kubernetes::store::Key;

/// One reconcile of an object; its calls to Azure bear this correlation ID.
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

/// Records the result of a reconcile.
pub fn reconciled(span: &Span, result: Reconciled) {
    span.record("result", result.as_str());
    if result == Reconciled::Error {
        span.record("otel.status_code", "error");
    }
}

/// The work on one resource in Azure, from the request until Azure's operation has ended. `resumed`: an earlier
/// reconcile sent the request.
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

/// Records the result of a span's work.
pub fn ended<T, E: fmt::Display>(span: &Span, outcome: &Result<T, E>) {
    if let Err(error) = outcome {
        failed(span, error);
    }
}

/// Records that a span's work has failed.
pub fn failed(span: &Span, why: impl fmt::Display) {
    span.record("otel.status_code", "error");
    span.record("otel.status_description", display(why));
}
