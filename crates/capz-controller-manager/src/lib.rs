//! `capz-controller-manager`: flags, webhooks, health checks, metrics and leader election. The controllers are in the
//! crate `capz`.
//!
//! ```text
//!  flags, environment ──▶ Settings ──▶ capz (while this replica leads)
//!  API server ──AdmissionReview──▶ webhooks ──▶ capz_api::admission (on every replica)
//! ```
//!
//! The program is a library with a thin `main`, so that demo and tests run exactly what production runs.

pub mod flags;
mod lead;
pub mod run;
pub mod webhooks;
