//! Why there is no server, or no node.

use std::path::{Path, PathBuf};

/// Why there is no server, or no node.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A program is not where it is looked for.
    #[error("KUBEBUILDER_ASSETS={}: there is no {name} in it", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// The program.
        name: &'static str,
    },
    /// A file or folder cannot be written, a program not be started, or no port be had.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The key for service accounts cannot be made.
    #[error("cannot make the key for service accounts: {0}")]
    Key(#[from] rcgen::Error),
    /// A program has ended by itself, or does not become ready.
    #[error("{name} {what}:\n{log}")]
    NotReady {
        /// The program.
        name: &'static str,
        /// What is wrong.
        what: String,
        /// The end of its log.
        log: String,
    },
    /// The server does not answer as it should.
    #[error("the API server: {0}")]
    Api(String),
    /// A command that prepares the machine fails.
    #[error("{command}: {said}")]
    Command {
        /// The command with its arguments.
        command: String,
        /// What it said.
        said: String,
    },
    /// Nodes are started in namespaces of their own alone.
    #[error("{0}")]
    NotEnclosed(String),
}

/// What could not be done with a path.
pub(crate) fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> StartError + use<> {
    let what = path.display().to_string();
    move |source| StartError::System { what, source }
}
