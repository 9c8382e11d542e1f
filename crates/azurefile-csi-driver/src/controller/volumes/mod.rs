//! Calls about volumes.

mod create;
mod delete;
mod expand;
mod modify;
mod place;
mod unsupported;
mod validate;
mod volume_calls;

pub(super) use volume_calls::Volumes;
