//! The four kinds of patches: JSON merge patch (RFC 7386), JSON patch (RFC 6902), strategic merge patch and server-side
//! apply, on plain JSON values.
//!
//! This module does not store, default or validate objects: the caller does that with the result.

mod apply;
mod dispatch;
mod field_set;
mod kind;
mod managed_fields;
mod strategic;
mod typed;
mod types;

pub(crate) use dispatch::{patch, plain};
pub(crate) use managed_fields::track_update;
pub(crate) use types::{PatchTarget, PatchType};

#[cfg(test)]
mod tests;
