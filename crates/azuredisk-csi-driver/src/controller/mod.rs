//! The service Controller: disks and snapshots in Azure, and which machines have them.
//!
//! ```text
//! service        the calls of the interface
//! volumes        disks are created, copied, grown, changed, deleted, listed
//! snapshots      snapshots are created, deleted, listed
//! limits         nodes hear how many data disks their machines take
//! attach         a machine's list of disks: one writer for each machine
//! kubernetes     what Kubernetes says about nodes, volumes and attachments
//! azure          documents of Azure, and its errors as statuses
//! messages       between messages and values
//! ```
//!
//! A file imports files of its own room and of those below it. Nothing that a second replica would need is kept in memory: what
//! is known of a machine or a disk is read from Azure again.

mod attach;
mod azure;
mod kubernetes;
mod limits;
mod messages;
mod options;
mod service;
mod snapshots;
mod volumes;

pub use azure::{Azure, Connection};
pub use kubernetes::KubernetesView;
pub use options::ControllerOptions;
pub use service::DiskController;
