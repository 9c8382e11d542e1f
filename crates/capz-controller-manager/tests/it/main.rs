//! The built program, called over TLS by API servers through its registered webhooks: by the simulated one through the
//! Service, by a real one (`KUBEBUILDER_ASSETS`) with kubectl.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test, which says when it is skipped"
)]

mod applied_twice;
mod collector;
mod managed;
mod manager;
mod operator;
mod place;
mod real;
mod simulated;
mod templates;
mod traces;
