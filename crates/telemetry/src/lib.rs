//! Metrics under the established names, health endpoints, and the listeners that serve them.
//!
//! * [`metrics`]: counters and histograms with the names and buckets that dashboards know.
//! * [`health`]: named checks behind `/healthz` and `/readyz`.
//! * [`server`]: listeners for both and for webhooks, before and without leadership; [`tls`] has their TLS settings.

mod certificate_files;
pub mod health;
pub mod metrics;
mod serve_error;
pub mod server;
pub mod tls;
