//! Snapshots in Azure.

mod create;
mod delete;
mod list;
mod snapshot_calls;

pub(crate) use snapshot_calls::Snapshots;
