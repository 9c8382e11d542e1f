//! Spans of calls. No log subscribes to their target: they are created only where the program exports traces, and cost
//! nothing elsewhere.

use tonic::{Code, Status};
use tracing::field::Empty;
use tracing::{Span, info_span};

/// One call of this method, such as `/csi.v1.Controller/CreateVolume`.
pub(crate) fn call(method: &str) -> Span {
    let name = method.trim_start_matches('/');
    let (service, function) = name.rsplit_once('/').unwrap_or(("", name));
    info_span!(
        target: "spans::csi",
        "Call",
        otel.name = name,
        otel.kind = "server",
        otel.status_code = Empty,
        otel.status_description = Empty,
        rpc.system = "grpc",
        rpc.service = service,
        rpc.method = function,
        rpc.grpc.status_code = Empty,
    )
}

/// Records how the call ended.
pub(crate) fn ended(span: &Span, status: &Status) {
    span.record("rpc.grpc.status_code", i64::from(i32::from(status.code())));
    if status.code() != Code::Ok {
        span.record("otel.status_code", "error");
        span.record("otel.status_description", status.message());
    }
}
