//! Calls about snapshots.

mod create;
mod delete;
mod snapshot_calls;

pub(super) use snapshot_calls::Snapshots;
