//! Azure, as the controller asks it: documents of disks, snapshots and machines, with errors as statuses.

mod client;
mod failure;
mod size_list;
mod sizes;

pub use client::{Azure, Connection};
pub(super) use failure::{is_gone, says_full, status_of, status_of_failure, was_canceled};
pub(super) use sizes::Sizes;
