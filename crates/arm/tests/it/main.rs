//! The client against a scripted Azure and against the simulated one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod clouds;
mod credentials;
mod protocol;
mod scripted_azure;
mod simulator;
mod throttling;
mod tls;
