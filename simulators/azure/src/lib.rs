//! Azure in one process: Resource Manager, Entra, instance metadata, packet oracle.
//!
//! [`Azure`] holds documents and rules, not canned answers. A resource provider is a module with a list of resource
//! types (`providers.rs` names them); the engine knows none of them by name. It shares no code with our client or
//! planner beyond resource ids, so that it tests them independently.

mod azure;
mod base_url;
mod caller;
mod cloud;
mod control;
mod control_error;
mod control_requests;
mod data_plane;
mod directory;
mod guest;
mod host_routes;
mod http;
pub mod journal;
mod latency;
mod machines;
mod metadata_control;
pub mod page;
mod parameters;
mod published;
mod recording;
pub mod registry;
pub mod serve;
pub mod tunnel;

pub use azure::Azure;
pub use azure_engine::document::edit::{Edit, PathValue};
pub use azure_engine::document::reading::Documents;
pub use azure_engine::fault::{Fault, FaultAction};
pub use azure_engine::journal::{Counts, Journal, JournalEntry, RequestKind};
pub use azure_engine::operation::{OperationEnd, OperationState, OperationUrls, RetryAfterStyle};
pub use azure_engine::refusal::{Detail, Extra, Refusal};
pub use azure_engine::settings::actors::{Actor, ActorAction, Condition, Schedule, Selection};
pub use azure_engine::settings::budget::{BudgetScope, BudgetState, Budgets, PolicyFigures};
pub use azure_engine::settings::consistency::Consistency;
pub use azure_engine::settings::latency::{LatencyProfile, LatencyRule};
pub use azure_engine::settings::options::Options;
pub use azure_engine::state::snapshot::BadSnapshot;
pub use azure_engine::types::example::{ExampleRequest, ExampleScope};
pub use azure_entra as entra;
pub use azure_imds as imds;
pub use azure_packets as packet;
pub use azure_packets::view;
pub use azure_providers::compute::DiskContents;
pub use azure_providers::container_service as managed_clusters;
pub use azure_providers::examples;
pub use azure_providers::resources::{region_display_name, region_names};
pub use azure_providers::storage::{FileAccount, ShareFolders};
pub use guest::{Guest, GuestExtension, GuestReport, GuestStart};
pub use host_routes::HostRoutes;
pub use latency::{named_latency, typical_latency};
pub use machines::PowerState;
