//! Azure in one process: Resource Manager, Entra, instance metadata, packet oracle.
//!
//! [`Azure`] holds documents and rules, not canned answers. A resource provider is a module with a
//! list of resource types (`providers.rs` names them); the engine knows none of them by name.
//! It shares no code with our client or planner beyond resource ids, so that it stays an independent
//! witness of what they do.

mod azure;
mod base_url;
mod caller;
mod cloud;
mod compute;
mod control;
mod directory;
mod engine;
pub mod entra;
mod http;
mod identity;
pub mod imds;
pub mod journal;
mod machines;
mod network;
pub mod packet;
pub mod page;
mod parameters;
mod profiles;
mod providers;
pub mod registry;
mod resources;
pub mod serve;
pub mod tunnel;
pub mod view;

pub use azure::Azure;
pub use engine::actors::{Actor, ActorAction, Condition, Schedule, Selection};
pub use engine::budget::{BudgetScope, BudgetState, Budgets, PolicyFigures};
pub use engine::consistency::Consistency;
pub use engine::documents::Documents;
pub use engine::edit::{Edit, Place};
pub use engine::error::{Detail, Extra, Refusal};
pub use engine::fault::{Fault, FaultAction};
pub use engine::journal::{Counts, Journal, JournalEntry, RequestKind};
pub use engine::latency::{LatencyProfile, LatencyRule};
pub use engine::operation::{OperationEnd, OperationState, OperationUrls, RetryAfterStyle};
pub use engine::options::Options;
pub use engine::snapshot::BadSnapshot;
pub use machines::PowerState;
pub use resources::{region_display_name, region_names};
