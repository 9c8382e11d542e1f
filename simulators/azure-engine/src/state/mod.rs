//! Work on the state beside requests: time, operations, actors, snapshots.

pub(crate) mod actor_actions;
pub(crate) mod clock;
pub(crate) mod index;
pub mod inner_request;
pub(crate) mod lookup;
pub mod make;
pub(crate) mod outside_work;
pub mod overrides;
pub(crate) mod profiles;
pub(crate) mod progress;
pub(crate) mod read_lag;
pub(crate) mod shown_state;
pub mod snapshot;
