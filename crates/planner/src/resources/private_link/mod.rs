//! Private link services: a Service's frontend, offered to private endpoints in other networks.
//!
//! A private link service belongs to one Service of one cluster, as its tags say. It is created after the frontend that
//! it offers, and is removed before that frontend: first its connections, then itself. Azure keeps a frontend that a
//! private link service offers.

mod document;
mod ownership;
mod plan;

pub(crate) use document::{at, name_of};
pub(crate) use ownership::is_unmanaged;
pub use plan::{concerns, has_unmanaged, is_open, keeps_frontend, plan, plan_removal, unreadable};
