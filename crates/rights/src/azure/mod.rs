//! Rights in Azure: actions of roles.

mod cluster_manager;
mod grant;
mod grants;
mod role;

pub use grant::{Grant, Place};
pub use grants::GRANTS;
pub use role::{Definition, Role, definition};
