//! Disks of machines of a simulated Azure as devices.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod files;
mod loop_devices;
mod world;
