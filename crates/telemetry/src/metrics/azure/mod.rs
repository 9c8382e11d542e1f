//! Calls to Azure, the budgets that pace them, and what is compared with Azure.

mod budgets;
mod calls;
mod configuration;
mod resync;

pub use budgets::{Budget, Closed, register_budgets};
pub use calls::{ArmOutcome, ArmRequest, AzureCall, CallMetrics};
pub use configuration::{ConfigMetrics, Reload};
pub use resync::ResyncMetrics;
