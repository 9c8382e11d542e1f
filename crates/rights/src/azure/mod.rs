//! Rights in Azure: actions of roles.

mod cluster_manager;
mod disk_driver;
mod file_driver;
mod grant;
mod grants;
mod role;

pub use grant::{Grant, Place};
pub use grants::GRANTS;
pub use role::{Definition, Role, definition};
