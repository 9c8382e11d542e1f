//! Errors of starting servers and nodes.

use std::path::{Path, PathBuf};

/// Why servers or nodes cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A program is missing in a folder.
    #[error("KUBEBUILDER_ASSETS={}: there is no {name} in it", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// The program.
        name: &'static str,
    },
    /// A file or folder cannot be written, a program cannot be started, or a port is not available.
    #[error("{what}: {source}")]
    System {
        /// The failed action.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The key for service accounts cannot be generated.
    #[error("cannot make the key for service accounts: {0}")]
    Key(#[from] rcgen::Error),
    /// A program has ended by itself, or is not ready in time.
    #[error("{name} {what}:\n{log}")]
    NotReady {
        /// The program.
        name: &'static str,
        /// What is wrong.
        what: String,
        /// The end of its log.
        log: String,
    },
    /// The server gives an unexpected answer.
    #[error("the API server: {0}")]
    Api(String),
    /// A command that prepares the machine fails.
    #[error("{command}: {said}")]
    Command {
        /// The command with its arguments.
        command: String,
        /// The output of the command.
        said: String,
    },
    /// Nodes are only started in separate namespaces.
    #[error("{0}")]
    NotEnclosed(String),
}

/// The error for a failed action with a path.
pub(crate) fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> StartError + use<> {
    let what = path.display().to_string();
    move |source| StartError::System { what, source }
}
