//! Why shares cannot be simulated as folders.

use std::path::{Path, PathBuf};

/// Why the shares of an Azure cannot be folders here.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct SharesError {
    /// The file or folder.
    path: PathBuf,
    /// The system's error.
    source: std::io::Error,
}

impl SharesError {
    pub(crate) fn of(path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self { path, source }
    }
}
