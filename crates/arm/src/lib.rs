//! The client of Azure Resource Manager: clouds, credentials, budgets, long-running operations.
//!
//! A [`Client`] exchanges JSON documents of any type for [`ResourceId`](azure_types::ResourceId)s; it knows neither
//! Kubernetes nor the meaning of a document. Its promises:
//!
//! * **Unknown is not absent.** [`Client::get_optional`] answers `None` only if Azure itself reports that the resource,
//!   its parent or its group does not exist. Everything else is an [`Error`].
//! * **One budget.** All clones of a client share [`Budgets`]: calls queue by [`Class`], and no call waits behind a
//!   class below its own. While Azure reports plenty, nothing waits.
//! * **Operations are values.** A write returns [`Accepted`] with an [`Operation`] that can be stored, loaded in
//!   another process and waited for there. It is polled when operations of its kind were done before, at once if that
//!   is unknown, and never before Azure's `Retry-After`.
//! * **Errors are data.** Azure's own code, message, target, details and request ID, and methods that classify them
//!   ([`Error::is_refusal`], [`Error::is_precondition_failed`], ...).
//! * Bodies, headers and tokens are never logged.
//!
//! ```no_run
//! # async fn example(config: cloud_config::CloudConfig) -> Result<(), arm::Error> {
//! use arm::{ApiVersion, Class, Client, Clock, Cloud, Credential, Transport, TransportOptions};
//! use azure_types::ResourceId;
//!
//! let transport = Transport::connect(TransportOptions::default())?;
//! let (cloud, _warnings) = Cloud::resolve(&config, &transport).await?;
//! let credential = Credential::from_config(&config, &cloud, &transport, Clock::system())?;
//! let client = Client::builder(cloud, transport, credential).build();
//! let id = ResourceId::group("sub", "group").resource("Microsoft.Network", "loadBalancers", "kubernetes");
//! let balancer: Option<serde_json::Value> =
//!     client.get_optional(&id, ApiVersion::NETWORK, Class::Refresh).await?;
//! # let _ = balancer; Ok(())
//! # }
//! ```

mod api_version;
mod arc;
mod authorities;
mod budget;
mod builder;
mod call;
mod certificate;
mod client;
mod cloud;
mod correlation;
mod credential;
mod credential_spec;
mod error;
mod file_stamp;
mod identity;
mod meter;
mod operation;
mod operation_watch;
mod proxy;
mod renewed_authorities;
mod repeats;
mod request;
mod resolver;
mod retry;
mod send;
mod span;
mod token;
mod transport;

pub use api_version::ApiVersion;
pub use budget::{BudgetState, Budgets, Class, OperationGroup};
pub use builder::ClientBuilder;
pub use client::{Accepted, Client};
pub use clock::Clock;
pub use cloud::Cloud;
pub use correlation::correlated;
pub use credential::Credential;
pub use credential_spec::{CredentialMethod, CredentialSpec};
pub use error::{Detail, Error, ServiceError};
pub use file_stamp::FileStamp;
pub use meter::{CallObserver, CallRecord, Purpose};
pub use operation::{Operation, OperationStyle, Progress};
pub use operation_watch::OperationWatch;
pub use proxy::{ProxyConnector, ProxySettings};
pub use renewed_authorities::RenewedAuthorities;
pub use repeats::{Repeats, Verdict};
pub use request::Listing;
pub use retry::RetryPolicy;
pub use transport::{Transport, TransportError, TransportOptions, install_crypto_provider};
