//! The service Controller: shares and their snapshots in Azure, and the storage accounts that they are in.
//!
//! ```text
//! service        the calls of the interface
//! volumes        shares are created, grown, changed, deleted
//! snapshots      snapshots are created and deleted
//! accounts       accounts are listed once for many requests, made once for many, marked as full
//! secrets        an account's key in a Secret
//! azure          documents of Azure, and its errors as statuses
//! ```
//!
//! A file imports files of its own room and of those below it. What another replica would need is in Azure; a list of accounts in
//! memory is no more than that: whatever depends on it is decided by Azure's answers.

mod accounts;
mod azure;
mod options;
mod secrets;
mod service;
mod snapshots;
mod volumes;

pub use azure::{Azure, Connection};
pub use options::ControllerOptions;
pub use secrets::Secrets;
pub use service::ShareController;
