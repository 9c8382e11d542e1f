//! Services with HTTP routes of their own, under hosts of their own.

use axum::Router;
use axum::response::Response;
use azure_engine::refusal::Refusal;

/// Routes for all hosts with one suffix.
#[derive(Clone)]
pub struct HostRoutes {
    /// The end of their hosts, without the dot before it, such as `azurecr.io`.
    pub suffix: String,
    /// Their type for faults, latencies and the journal, such as `Microsoft.ContainerRegistry/registries`.
    pub resource_type: String,
    /// The largest body that is read, in bytes; by default Resource Manager's limit.
    pub max_body_bytes: Option<u64>,
    /// The routes.
    pub routes: Router,
    /// A refusal in the form of the service.
    pub refuse: fn(&Refusal) -> Response,
}
