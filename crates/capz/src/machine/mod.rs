//! Machines and their templates.

pub mod reconcile;
pub mod template;
