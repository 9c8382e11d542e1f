//! What the configuration of one cluster needs.

mod features;
mod needs;
mod report;
mod scopes;
mod subject;

pub use needs::{AzureRole, Needs, Reasons, needs};
pub use report::Report;
pub use subject::{ObjectName, Run, Subject};
