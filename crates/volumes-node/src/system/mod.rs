//! The seam to the kernel: all that the other rooms ask of it. [`Kernel`] is the real one; tests have a simulated one.

mod blocking;
mod changes;
mod command;
mod file_kind;
mod kernel;
mod mount_call;
mod network;
mod ownership;
mod private_file;
mod programs;
mod seam;
mod statistics;

pub use changes::Changes;
pub use command::{Command, Output, RunError};
pub use file_kind::{DeviceNumber, FileKind};
pub use kernel::Kernel;
pub use mount_call::MountCall;
pub use ownership::OwnerChange;
pub use rustix::mount::MountFlags;
pub use seam::{MOUNT_TABLE, System};
pub use statistics::{Amount, Statistics};
