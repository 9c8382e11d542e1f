//! Hosts of webhooks that are overridden in this process.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use axum::Router;
use parking_lot::Mutex;

/// The server that overrides a webhook's host.
#[derive(Clone)]
pub enum WebhookHost {
    /// A service in this process: requests reach it without a socket and without TLS.
    InProcess(Router),
    /// The server at this address. Its certificate must still be valid for the host's name.
    At(SocketAddr),
}

impl fmt::Debug for WebhookHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InProcess(_) => f.write_str("InProcess(…)"),
            Self::At(address) => f.debug_tuple("At").field(address).finish(),
        }
    }
}

/// The overridden hosts, by name.
pub(crate) type Hosts = Mutex<BTreeMap<String, WebhookHost>>;
