//! What may fail with mounts.

use std::io;
use std::path::PathBuf;

/// A mount cannot be made, ended or asked.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The kernel refuses a step.
    #[error("cannot {step} {}: {source}", path.display())]
    Step {
        /// The step.
        step: &'static str,
        /// The path.
        path: PathBuf,
        /// The kernel's words.
        source: io::Error,
    },
    /// A device is not mounted.
    #[error("cannot mount {} at {} as {kind} with {options}: {source}", device.display(), target.display())]
    Mount {
        /// The device.
        device: PathBuf,
        /// Where.
        target: PathBuf,
        /// The type of the file system.
        kind: String,
        /// Flags and options.
        options: String,
        /// The kernel's words.
        source: io::Error,
    },
    /// The path does not exist.
    #[error("{} does not exist", .0.display())]
    NotFound(PathBuf),
}

impl MountError {
    pub(super) fn step(step: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Step { step, path, source }
    }
}
