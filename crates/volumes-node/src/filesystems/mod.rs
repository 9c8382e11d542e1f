//! File systems on block devices: what a device contains, how it gets a file system, and how that grows.

mod check;
mod content;
mod error;
mod existing;
mod format;
mod grow;
mod kind;
mod prepare;

pub use content::Content;
pub use error::FileSystemError;
pub use format::FormatLimits;
pub use kind::{FileSystem, UnknownFileSystem};
pub use prepare::{FileSystems, Prepared};
