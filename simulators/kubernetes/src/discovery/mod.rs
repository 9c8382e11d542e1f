//! The server's description of itself.

mod aggregated;
mod openapi;
mod plain;

pub(crate) use plain::{answer, is_public};
