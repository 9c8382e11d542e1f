//! Resource ids and the documents of Azure Resource Manager.
//!
//! Every document keeps the members it does not know, at every level, so that a read-modify-write
//! never loses what somebody else (or a newer Azure) put there.

mod resource_id;

pub use resource_id::{ResourceId, ResourceIdError};
