//! Objects of the operator's kinds as users write them, against the documents that Azure takes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract;
mod flavors;
mod known;
mod members;
mod others;
mod paths;
mod properties;
mod refusals;
