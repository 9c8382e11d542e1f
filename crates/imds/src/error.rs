//! Why a machine cannot be described.

use http::StatusCode;

/// Why a machine cannot be described. The text up to the first colon is what users search for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no answer.
    #[error(
        "no answer from the instance metadata service at {url}: {reason}: the program must run in the network of its \
         host, and nothing there may block this address"
    )]
    NoAnswer {
        /// The URL.
        url: String,
        /// The cause.
        reason: String,
    },
    /// The answer is an error.
    #[error("failure of getting instance metadata with response \"{status}\": {url}: {text}")]
    Status {
        /// The answer's status.
        status: StatusCode,
        /// The URL.
        url: String,
        /// The beginning of the service's message.
        text: String,
    },
    /// The answer is not a valid document.
    #[error(
        "failure of getting instance metadata: {url} did not answer with an instance metadata document: {reason}"
    )]
    Unreadable {
        /// The URL.
        url: String,
        /// Where parsing failed.
        reason: String,
    },
    /// The document lacks the facts about the machine.
    #[error(
        "failure of getting instance metadata: failure of getting compute information from instance metadata: `compute` \
         is missing: it is read again"
    )]
    NoCompute,
    /// The document lacks the machine's name.
    #[error(
        "failure of getting compute information from instance metadata: `compute.name` is empty: it is read again"
    )]
    NoName,
    /// The document lacks the machine's network.
    #[error("failure of getting instance metadata: `network` is missing: it is read again")]
    NoNetwork,
    /// The document lacks the machine's size.
    #[error(
        "failure of getting compute information from instance metadata: `compute.vmSize` is empty: it is read again"
    )]
    NoSize,
    /// The document lacks the machine's region.
    #[error(
        "failure of getting compute information from instance metadata: `compute.location` is empty: it is read again"
    )]
    NoRegion,
    /// The machine has no ID.
    #[error(
        "get empty ResoureceID from instance metadata service: `compute.resourceId` is empty: it is read again"
    )]
    NoResourceId,
    /// The machine has no network interface.
    #[error("no interface is found for the instance: `network.interface` is empty: it is read again")]
    NoInterface,
    /// The network interface has no address.
    #[error(
        "get empty IP addresses from instance metadata service: the first interface has none yet: it is read again"
    )]
    NoAddress,
    /// The zone is not a number.
    #[error("failed to parse zone ID \"{zone}\": {reason}: `compute.zone` must be a number")]
    Zone {
        /// The zone.
        zone: String,
        /// Its problem.
        reason: String,
    },
}
