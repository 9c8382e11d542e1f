//! The controller manager from outside: flags, files, signals.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod command_lines;
mod from_outside;
mod proxy;
mod reloading;
mod stopping;
mod traces;
