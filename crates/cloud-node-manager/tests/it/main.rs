//! The node manager from outside: flags, metadata, events.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod from_outside;
mod resource_manager;
mod scheduled_events;
