//! Volumes: disks in Azure.

mod create;
mod delete;
mod expand;
mod list;
mod modify;
mod source;
mod validate;
mod volume_calls;

pub(crate) use volume_calls::Volumes;
