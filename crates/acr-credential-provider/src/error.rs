//! Why there are no credentials. Texts are one line and contain no secret.

use std::path::PathBuf;
use std::time::Duration;

use crate::challenge::ChallengeError;
use crate::command_line::UsageError;
use crate::identity_binding::BindingError;
use crate::install::InstallError;
use crate::protocol::RequestError;

/// Why there are no credentials.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// The installation on a node.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// Standard input or output.
    #[error("{stream}: {source}")]
    Stream {
        /// Which one.
        stream: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The kubelet's request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// azure.json cannot be read.
    #[error("failed to load config: {}: {source}: the argument must name a readable azure.json", .path.display())]
    ReadConfig {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// azure.json is invalid.
    #[error("failed to load config: {}: {source}", .path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// Its problem.
        source: cloud_config::ConfigError,
    },
    /// The identity binding.
    #[error(transparent)]
    Binding(#[from] BindingError),
    /// A required annotation of a service account is missing.
    #[error(
        "{what} id annotation {name} is not found or the value is empty: annotate the service account, and list the \
         annotation in tokenAttributes of the kubelet's CredentialProviderConfig"
    )]
    Annotation {
        /// The kind of ID.
        what: &'static str,
        /// The annotation.
        name: &'static str,
    },
    /// The cloud's endpoints, the connection to them, or the sign-in to Entra.
    #[error(transparent)]
    Azure(#[from] arm::Error),
    /// The registry cannot be reached.
    #[error("error reaching registry endpoint {url}: {reason}")]
    Registry {
        /// The URL.
        url: String,
        /// The cause.
        reason: String,
    },
    /// The registry's answer is not a challenge.
    #[error("{server}: {source}")]
    Challenge {
        /// The login server.
        server: String,
        /// The answer's problem.
        source: ChallengeError,
    },
    /// The challenge leads to a host that must not get a token.
    #[error(
        "{server}: Www-Authenticate: realm {realm} is not the https URL of a registry of this cloud: no token is sent there"
    )]
    Realm {
        /// The login server.
        server: String,
        /// The realm.
        realm: String,
    },
    /// The registry refuses the token.
    #[error(
        "Www-Authenticate: auth url {url} responded with status code {status}: {text}: the identity ({identity}) needs \
         the role AcrPull on the registry"
    )]
    Exchange {
        /// The URL.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The text of the answer.
        text: String,
        /// The identity of the token.
        identity: String,
    },
    /// An answer without end.
    #[error("{url}: the read limit is reached")]
    ReadLimit {
        /// The URL.
        url: String,
    },
    /// An answer without a token.
    #[error("Www-Authenticate: {url} answered without refresh_token")]
    WithoutToken {
        /// The URL.
        url: String,
    },
    /// The deadline has passed.
    #[error("no answer from {service} in time: a pull may take {} s in all", .limit.as_secs())]
    Overdue {
        /// The service that did not answer.
        service: String,
        /// The time that all calls may take together.
        limit: Duration,
    },
}
