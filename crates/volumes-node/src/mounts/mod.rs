//! Mounts of this machine: the table, new mounts, their end, their statistics.

mod error;
mod mounter;
mod options;
mod release;
mod table;

pub use error::MountError;
pub use mounter::Mounts;
pub use options::{InvalidOption, MountOptions};
pub use table::{MountEntry, MountTable};
