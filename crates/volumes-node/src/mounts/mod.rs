//! Mounts of this machine: the table, new mounts, their end, their statistics.

mod error;
mod helper;
mod mounter;
mod options;
mod publish;
mod release;
mod table;

pub use error::MountError;
pub use helper::HelperMount;
pub use mounter::Mounts;
pub use options::{InvalidOption, MountOptions};
pub use publish::{Publication, PublishError, Stale};
pub use table::{MountEntry, MountTable};
