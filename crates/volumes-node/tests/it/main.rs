//! The real kernel of this machine, as far as no rights are needed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod events;
mod files;
mod programs;
