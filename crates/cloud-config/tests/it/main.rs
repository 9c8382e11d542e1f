//! Cloud configurations as users write them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod config;
mod corpus;
mod remedies;
mod table;
mod values;
