//! The stand-in of Cluster API's core on simulated and real API servers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod control_plane;
mod real;
mod workers;
mod world;
