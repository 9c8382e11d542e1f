//! Azure in one process: Resource Manager, Entra, instance metadata, packet oracle.
//!
//! [`Azure`] holds documents and rules, not canned answers. A resource provider is a module with a
//! list of resource types (`providers.rs` names them); the engine knows none of them by name.
//! It shares no code with our client or planner beyond resource ids, so that it stays an independent
//! witness of what they do.

mod actors;
mod azure;
mod caller;
mod cloud;
mod compute;
mod control;
mod documents;
mod edit;
mod engine;
pub mod entra;
mod http;
mod identity;
pub mod imds;
pub mod journal;
mod network;
mod options;
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

pub use actors::{Actor, ActorAction, Condition, Schedule, Selection};
pub use azure::{Azure, PowerState};
pub use documents::Documents;
pub use edit::{Edit, Place};
pub use engine::budget::policy::PolicyFigures;
pub use engine::budget::{BudgetScope, BudgetState};
pub use engine::error::{Detail, Extra, Refusal};
pub use engine::fault::{Fault, FaultAction};
pub use engine::history::Consistency;
pub use engine::journal::{Counts, Journal, JournalEntry, RequestKind};
pub use engine::latency::{LatencyProfile, LatencyRule};
pub use engine::operation::{OperationEnd, OperationState, OperationUrls, RetryAfterStyle};
pub use engine::snapshot::BadSnapshot;
pub use options::{Budgets, Options};
pub use resources::{region_display_name, region_names};
