//! Options of a simulated Kubernetes.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

/// A bearer token. Only [`Token::reveal`] shows its text.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A token with this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// An unguessable token, from the system's random source.
    #[must_use]
    pub fn generate() -> Self {
        Self(uuid::Uuid::new_v4().simple().to_string())
    }

    /// The text, for a kubeconfig or an `Authorization` header.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Options of a simulated Kubernetes.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seed of everything random: UIDs, name suffixes, allocations, watch durations.
    pub seed: u64,
    /// The wall clock at the start; it then follows tokio's time.
    pub start: Timestamp,
    /// How many changes of each kind are kept for watches and old list pages.
    pub event_window: usize,
    /// Whether Services can have IPv6 addresses beside IPv4 ones.
    pub dual_stack: bool,
    /// When dependents and the contents of deleted namespaces are collected.
    pub collection: Collection,
    /// The certificate (PEM) by which pods verify the server. With it each namespace has a ServiceAccount `default` and
    /// a ConfigMap `kube-root-ca.crt`, which kube-controller-manager creates in a cluster.
    pub root_certificate: Option<String>,
    /// The capacity of the journal in requests.
    pub journal: usize,
    /// How long an Event stays after its last write; an hour in clusters. `None` for ever.
    pub event_ttl: Option<Duration>,
    /// The administrator's tokens. Without tokens the server is open to every client.
    pub tokens: Vec<Token>,
    /// Names and addresses in its certificate, beside those that [`crate::Kubernetes::serve_https`] adds.
    pub server_names: Vec<String>,
    /// Folder that keeps the certificate authority, and the key that signs tokens of service accounts, over restarts.
    /// Without it each server generates new ones.
    pub authority_dir: Option<PathBuf>,
}

impl Default for Options {
    /// Seed 1, start 2026-01-01T00:00:00Z, 10,000 changes a kind, both families, dependents collected at once, events
    /// without expiry, namespaces without contents, 10,000 requests in the journal, no tokens, no further names, a new
    /// authority.
    fn default() -> Self {
        // Seconds from 1970 to 2026-01-01T00:00:00Z.
        const START: i64 = 1_767_225_600;
        Self {
            seed: 1,
            start: Timestamp::from_second(START).unwrap_or_default(),
            event_window: 10_000,
            dual_stack: true,
            collection: Collection::Prompt,
            root_certificate: None,
            journal: 10_000,
            event_ttl: None,
            tokens: Vec::new(),
            server_names: Vec::new(),
            authority_dir: None,
        }
    }
}

/// When the dependents of deleted owners and the contents of deleted namespaces are collected, which
/// kube-controller-manager does in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Collection {
    /// Never, as with a kube-apiserver alone.
    Off,
    /// In the same step; the contents of a namespace that was deleted over HTTP stay a second.
    #[default]
    Prompt,
    /// After a random delay drawn from the seed, at most this long.
    Within(Duration),
}
