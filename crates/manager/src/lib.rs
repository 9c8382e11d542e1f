//! Glue that the managers share between `telemetry`, which knows neither cloud nor Kubernetes, and both of them.

mod calls;
pub mod configuration;
mod delegated;

pub use calls::{Calls, show_budgets};
pub use delegated::DelegatedAuthorizer;
