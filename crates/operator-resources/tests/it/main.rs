//! Objects of the operator's kinds as users write them, against the documents that Azure takes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod contract;
mod flavors;
mod known;
mod members;
mod others;
mod page;
mod paths;
mod properties;
mod refusals;
