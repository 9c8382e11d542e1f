//! What programs with a cloud configuration share: its documents ([`configuration`], those of drivers [`driver`], which controllers follow: [`driver_connection`]) and their changes
//! ([`reload`]), metrics of calls to Azure, and who may read metrics.

mod calls;
pub mod configuration;
mod delegated;
pub mod driver;
pub mod driver_connection;
pub mod reload;

pub use calls::{Calls, show_budgets};
pub use delegated::DelegatedAuthorizer;
