//! Requests to resources, from a path to an answer.

pub(crate) mod action;
pub(crate) mod admission;
pub(crate) mod conflict;
pub(crate) mod delete;
pub mod dispatch;
pub(crate) mod limit_checks;
pub(crate) mod precondition;
pub(crate) mod present;
pub(crate) mod read;
pub(crate) mod references;
pub mod resolve;
pub(crate) mod system_data;
pub(crate) mod tables;
pub(crate) mod tags;
pub mod write;
