//! Why a machine cannot be described.

use http::StatusCode;

/// Why a machine cannot be described. The words up to the first colon are those that people search for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no answer.
    #[error(
        "no answer from the instance metadata service at {url}: {reason}: the program must run in the network of its \
         host, and nothing there may block this address"
    )]
    NoAnswer {
        /// What was asked for.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// The answer is no.
    #[error("failure of getting instance metadata with response \"{status}\": {url}: {text}")]
    Status {
        /// The answer's status.
        status: StatusCode,
        /// What was asked for.
        url: String,
        /// The beginning of what the service says.
        text: String,
    },
    /// The answer is no document.
    #[error(
        "failure of getting instance metadata: {url} answered what is no document of instance metadata: {reason}"
    )]
    Unreadable {
        /// What was asked for.
        url: String,
        /// Where it ends to be one.
        reason: String,
    },
    /// The document does not say what the machine is.
    #[error(
        "failure of getting instance metadata: failure of getting compute information from instance metadata: `compute` \
         is missing: it is read again"
    )]
    NoCompute,
    /// The document does not say what the machine is called.
    #[error(
        "failure of getting compute information from instance metadata: `compute.name` is empty: it is read again"
    )]
    NoName,
    /// The document does not say how the machine is reached.
    #[error("failure of getting instance metadata: `network` is missing: it is read again")]
    NoNetwork,
    /// The document does not say how large the machine is.
    #[error(
        "failure of getting compute information from instance metadata: `compute.vmSize` is empty: it is read again"
    )]
    NoSize,
    /// The document does not say where the machine is.
    #[error(
        "failure of getting compute information from instance metadata: `compute.location` is empty: it is read again"
    )]
    NoRegion,
    /// The machine has no id.
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
    /// The zone is no number.
    #[error("failed to parse zone ID \"{zone}\": {reason}: `compute.zone` must be a number")]
    Zone {
        /// The zone.
        zone: String,
        /// What is wrong with it.
        reason: String,
    },
}
