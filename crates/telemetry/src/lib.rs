//! Metrics under the established names, health endpoints.
//!
//! * [`metrics`]: counters and histograms with the names and buckets that dashboards know.
//! * [`health`]: named checks behind `/healthz` and `/readyz`.
//! * [`server`]: the HTTPS listener that serves both, before and without leadership.

pub mod health;
pub mod metrics;
pub mod server;
