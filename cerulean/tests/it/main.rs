//! The commands of cerulean, as users give them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod commands;
mod journal;
mod rights;
mod routes;
mod shells;
