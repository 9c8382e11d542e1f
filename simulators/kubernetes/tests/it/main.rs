//! The simulated Kubernetes: through kube's client, beside a real kube-apiserver, and through kubectl.
//!
//! They are one program, so that suites that wait for servers run beside those that compute.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs
)]

mod agreement;
mod api;
mod kubectl;
