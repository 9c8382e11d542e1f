//! Why disks cannot be simulated as devices.

use std::path::PathBuf;

/// Why the hardware of machines cannot be simulated here.
#[derive(Debug, thiserror::Error)]
pub enum HardwareError {
    /// A file or folder cannot be written or read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Another simulation has its devices in the folder.
    #[error("{}: another simulation keeps its disks there; stop it, or name another folder", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// Device nodes cannot be made.
    #[error(
        "{}: cannot make device nodes there: {source}; run as root (in a container with the capability MKNOD), and name a \
         folder on a file system that is not mounted with nodev", path.display()
    )]
    Nodes {
        /// The node.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// There are no loop devices.
    #[error(
        "cannot attach loop devices: {reason}; run as root on Linux with the module loop (modprobe loop) and losetup of \
         util-linux, in a container with --privileged and --volume /dev:/dev"
    )]
    LoopDevices {
        /// The words of losetup or of the system.
        reason: String,
    },
    /// A program that copies failed.
    #[error("{program}: {reason}")]
    Program {
        /// The program.
        program: &'static str,
        /// Its words.
        reason: String,
    },
}

impl HardwareError {
    /// An error of a file.
    pub(crate) fn of_file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |source| Self::File { path, source }
    }
}
