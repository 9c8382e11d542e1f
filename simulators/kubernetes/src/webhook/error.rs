//! Why the call of a webhook failed.

/// Why the call of a webhook failed. The messages are the API server's.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The configuration names neither a Service nor a URL.
    #[error("webhook configuration must have either service or URL")]
    NoAddress,
    /// The configuration contains an invalid URL.
    #[error("Unparsable URL: {0}")]
    Url(String),
    /// The certificates in `caBundle` cannot be read.
    #[error("unable to load root certificates: unable to parse bytes as PEM block")]
    Bundle,
    /// There was no response.
    #[error("Post {url:?}: {why}")]
    Unanswered {
        /// The URL of the request.
        url: String,
        /// The error.
        why: DialError,
    },
    /// The response was an error.
    #[error("{0}")]
    Refused(String),
    /// The response was not JSON.
    #[error("couldn't get version/kind; json parse error: {0}")]
    Unreadable(String),
}

/// Why there was no response from a webhook.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// The Service does not exist.
    #[error("service {0:?} not found")]
    NoService(String),
    /// The Service has no such port.
    #[error("no service port {1} found for service {0:?}")]
    NoPort(String, u16),
    /// The Service has no endpoints.
    #[error("no endpoints available for service {0:?}")]
    NoEndpoints(String),
    /// No program listens there, or the address cannot be reached.
    #[error("dial tcp {address}: {why}")]
    Dial {
        /// The address.
        address: String,
        /// The system's error.
        why: String,
    },
    /// The certificate is not trusted, or TLS fails otherwise.
    #[error("{0}")]
    Tls(String),
    /// The timeout of the configuration is over.
    #[error("context deadline exceeded")]
    Deadline,
    /// The connection ended.
    #[error("{0}")]
    Broken(String),
}
