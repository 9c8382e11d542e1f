//! The files that programs are configured with, and the errors of setting up simulators.

use std::path::{Path, PathBuf};

use azure_simulator::entra::KeyError;
use azure_simulator::serve;
use kubernetes_simulator::Token;

/// Why the cluster could not be served.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A file or folder cannot be written or read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Certificates cannot be created.
    #[error("cannot create certificates: {0}")]
    Certificates(String),
    /// The key in the folder that signs tokens cannot be used.
    #[error("{}: {source}; remove the file to generate a new key, which invalidates earlier tokens", path.display())]
    TokenKey {
        /// Its file.
        path: PathBuf,
        /// Why not.
        source: KeyError,
    },
    /// A listener cannot be opened.
    #[error("{0}")]
    Listen(String),
    /// Azure refuses the cluster's own resources.
    #[error("cannot create the cluster's resources: {0}")]
    LayOut(String),
    /// The initial state cannot be restored.
    #[error(transparent)]
    State(#[from] kubernetes_simulator::BadSnapshot),
    /// The disks of machines cannot be devices on this machine.
    #[error(transparent)]
    Disks(#[from] machine_disks::HardwareError),
    /// Shares cannot be folders on this machine.
    #[error(transparent)]
    Shares(#[from] machine_shares::SharesError),
    /// Kubernetes cannot be reached.
    #[error("Kubernetes: {0}")]
    Kubernetes(String),
}

/// Who may read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Owner,
    Everyone,
}

/// Writes a file whole: a reader sees the old text or the new one.
pub(crate) fn write(path: &Path, text: &str, reader: Reader) -> Result<(), HostError> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let partial = path.with_extension("partial");
    remove(&partial)?;
    let mode = if reader == Reader::Owner { 0o600 } else { 0o644 };
    let failed = |source| HostError::File { path: path.to_path_buf(), source };
    let mut file =
        std::fs::OpenOptions::new().create_new(true).write(true).mode(mode).open(&partial).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    std::fs::rename(&partial, path).map_err(failed)
}

/// Reads the secret in a file; generates and writes it if the file does not exist.
pub(crate) fn kept_secret(
    path: &Path,
    make: impl FnOnce() -> Result<Token, HostError>,
) -> Result<Token, HostError> {
    match std::fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => Ok(Token::new(text.trim())),
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(HostError::File { path: path.to_path_buf(), source })
        }
        _ => {
            let secret = make()?;
            write(path, secret.reveal(), Reader::Owner)?;
            Ok(secret)
        }
    }
}

/// Removes a file if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), HostError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(HostError::File { path: path.to_path_buf(), source })
        }
        _ => Ok(()),
    }
}

pub(crate) fn certificates(error: impl std::fmt::Display) -> HostError {
    HostError::Certificates(error.to_string())
}

pub(crate) fn listen(error: serve::ServeError) -> HostError {
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    HostError::Listen(format!("{error}{cause}"))
}
