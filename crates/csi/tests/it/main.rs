//! Drivers whose services do what a test says, with clients over sockets in folders of their own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod driver;
mod listening;
mod observing;
mod stopping;
