//! The calls of the seam.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use rustix::mount::MountFlags;

use super::changes::Changes;
use super::command::{Command, Output, RunError};
use super::file_kind::FileKind;
use super::mount_call::MountCall;
use super::ownership::OwnerChange;
use super::statistics::Statistics;

/// The mounts that this process sees (proc(5), `/proc/pid/mountinfo`).
pub const MOUNT_TABLE: &str = "/proc/self/mountinfo";

/// What is asked of the kernel and of the programs beside it. Calls that a dead device could hold up have a limit.
///
/// Errors are the kernel's, with its number ([`io::Error::raw_os_error`]) where it gave one.
#[async_trait]
pub trait System: Debug + Send + Sync + 'static {
    /// Runs a program, without a shell, until it ends or its limit is over.
    async fn run(&self, command: &Command) -> Result<Output, RunError>;

    /// The names in a folder, sorted, at most so many.
    async fn entries(&self, folder: &Path, most: usize) -> io::Result<Vec<String>>;

    /// The text of a file of the kernel.
    async fn read(&self, file: &Path) -> io::Result<String>;

    /// Writes a text into a file of the kernel, which exists.
    async fn write(&self, file: &Path, text: &str) -> io::Result<()>;

    /// What a path leads to, with all links followed.
    async fn canonical(&self, path: &Path) -> io::Result<PathBuf>;

    /// What is at a path, with links followed.
    async fn kind(&self, path: &Path) -> io::Result<FileKind>;

    /// Creates a folder and its parents with mode 0755, as far as they are missing.
    async fn create_folder(&self, path: &Path) -> io::Result<()>;

    /// Creates an empty file, unless it exists.
    async fn create_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a file or an empty folder, if it exists.
    async fn remove(&self, path: &Path) -> io::Result<()>;

    /// The size of a block device in bytes.
    async fn size(&self, device: &Path) -> io::Result<u64>;

    /// Whether the first MiB of a block device has only zeros, as a new disk has. Most file systems, tables of partitions and
    /// databases have something there.
    async fn starts_with_zeros(&self, device: &Path) -> io::Result<bool>;

    /// Mounts a file system.
    async fn mount(&self, call: &MountCall) -> io::Result<()>;

    /// Shows a file or folder at a second path.
    async fn bind(&self, source: &Path, target: &Path) -> io::Result<()>;

    /// Sets the flags of one mount, without those of its file system.
    async fn remount_bind(&self, target: &Path, flags: MountFlags) -> io::Result<()>;

    /// Takes the topmost mount off a path.
    async fn unmount(&self, target: &Path) -> io::Result<()>;

    /// Whether a plain file is at a path, without following a link there.
    async fn is_plain_file(&self, path: &Path) -> io::Result<bool>;

    /// Writes a file that the program's own user alone may read; one that is there is replaced.
    async fn write_private(&self, file: &Path, text: &str) -> io::Result<()>;

    /// The permissions of a file or folder, as the lowest twelve bits of its mode.
    async fn permissions(&self, path: &Path) -> io::Result<u32>;

    /// Changes the permissions of a file or folder.
    async fn set_permissions(&self, path: &Path, mode: u32) -> io::Result<()>;

    /// Makes a folder and all below it a group's, readable and writable for it.
    async fn change_group(&self, folder: &Path, group: u32, when: OwnerChange) -> io::Result<()>;

    /// The addresses of a host's name.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;

    /// Whether a connection over TCP can be made.
    async fn reach(&self, address: SocketAddr) -> io::Result<()>;

    /// Space and inodes of the file system at a path.
    async fn statistics(&self, path: &Path) -> io::Result<Statistics>;

    /// Subscribes to changes of devices and of these folders, as far as they exist. What happens after this has returned is
    /// not missed.
    async fn changes(&self, folders: &[PathBuf]) -> io::Result<Box<dyn Changes>>;
}
