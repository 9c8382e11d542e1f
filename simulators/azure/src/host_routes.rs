//! Services that are HTTP by themselves, under hosts of their own.

use axum::Router;
use axum::response::Response;
use azure_engine::error::Refusal;

/// Routes for all hosts with one suffix.
#[derive(Clone)]
pub struct HostRoutes {
    /// What hosts end with, without the dot before it, such as `azurecr.io`.
    pub suffix: String,
    /// What faults, latencies and the journal call it, such as `Microsoft.ContainerRegistry/registries`.
    pub resource_type: String,
    /// The largest body that is read, in bytes; without it, as Resource Manager reads.
    pub max_body_bytes: Option<u64>,
    /// Who answers.
    pub routes: Router,
    /// A refusal in the form of the service.
    pub refuse: fn(&Refusal) -> Response,
}
