//! A snapshot of a disk: what is written next, and whether it is ready.

pub mod create;
mod create_document;
pub mod observed;
