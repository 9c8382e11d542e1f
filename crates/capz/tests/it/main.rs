//! The controllers in worlds: both simulators and Cluster API's objects, in one process, on paused time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod cluster;
mod cluster_change;
mod cluster_end;
mod cluster_flow;
mod core_version;
mod docs;
mod drift;
mod identity;
mod kill;
mod kill_upgrade;
mod machine;
mod machine_flow;
mod managed;
mod managed_rights;
mod managed_takeover;
mod missed;
mod moved;
mod neighbours;
mod operator;
mod pace;
mod play;
mod pool_change;
mod pool_flow;
mod pool_kill;
mod pool_pace;
mod pool_rollout;
mod pool_world;
mod raw;
mod rights;
mod secrets;
mod subscription;
mod takeover;
mod told;
mod watch_filter;
mod world;
