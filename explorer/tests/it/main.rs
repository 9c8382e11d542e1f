//! The corpus of Services, all pairs of their features, and generated histories.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod clusters;
mod corpus;
mod histories;
mod machines;
mod pairs;
mod properties;
