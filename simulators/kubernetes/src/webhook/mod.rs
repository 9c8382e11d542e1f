//! Calls of webhooks: the address in a `clientConfig`, the connection, and the response. Admission and the conversion
//! of custom resources both use it.
//!
//! A webhook is called over TLS, as by a real server, unless its host is overridden in this process
//! ([`crate::Kubernetes::webhook_host`]): worlds on paused time need no sockets.

mod call;
mod config;
mod connect;
mod error;
mod host;
mod resolve;
mod trust;

pub(crate) use config::ClientConfig;
pub(crate) use error::CallError;
pub(crate) use host::Hosts;
pub use host::WebhookHost;

#[cfg(test)]
mod tests;
