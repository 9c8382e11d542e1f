//! Why a listener does not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the listener could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is in use or not an address of this host.
    #[error("cannot listen on {address}: {reason}; choose another {flag}")]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The flag that requests it.
        flag: &'static str,
        /// The error of the operating system.
        reason: io::Error,
    },
    /// A certificate or key file is unreadable or invalid.
    #[error("cannot use {}: {reason}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate could not be created or used.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
}
