//! `capz-controller-manager`: flags, webhooks, health checks, metrics and the election of a leader. What it is all for, the
//! controllers, is in the crate `capz`.
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
