//! What the configuration of one cluster needs.

mod disks;
mod features;
mod needs;
mod report;
mod scopes;
mod subject;

pub use disks::disk_needs;
pub use needs::{AzureRole, Needs, Reasons, needs};
pub use report::Report;
pub use subject::{ObjectName, Run, Subject};
