//! Named worlds for tests: both simulators, the controllers, builders and assertions.
//!
//! A [`World`] is a whole cluster in one process: a simulated Azure and Kubernetes, stand-in kubelets, and
//! the controllers with the provider as they run in production. Nothing uses a socket, and all time is
//! tokio's: under a paused clock a day takes moments.
//!
//! * [`World`] starts, kills and restarts the controllers, and waits on virtual time.
//! * [`World::settle`] ends with [`World::check`]: each problem of a world at rest is a [`Finding`].
//! * [`run`] runs a test with the seeds that the environment names ([`seed`]).
//! * [`service`] builds Services.
//! * [`KillSwitch`] is the transport to Azure, which counts calls and may break after any of them.
//! * [`Tap`] sees each call of the controllers before Azure does, and may answer in its place.
//! * [`World::run_node_manager`] runs the node manager of one machine.
//! * [`make_basic`] turns a current cluster into one with load balancers of SKU Basic.
//! * [`AzureState`] is Azure's state without irrelevant differences between two runs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "used by tests alone: a world that cannot be set up must fail its test"
)]

mod azure_state;
mod basic_sku;
mod check;
mod finding;
mod foreign_parts;
mod journal;
mod kill_switch;
mod leader_change;
mod node_manager;
mod packets;
mod preview;
mod replica;
pub mod seed;
mod service;
mod tap;
pub mod types;
mod world;
mod world_builder;

pub use azure_state::AzureState;
pub use basic_sku::make_basic;
pub use finding::Finding;
pub use kill_switch::KillSwitch;
pub use seed::run;
pub use service::{ServiceBuilder, service};
pub use simulated_cluster::{ExtraSubnet, NodePool, Orchestration, Shape, StandaloneMachine};
pub use stand_ins::Pace;
pub use tap::{Call, Reply, Tap};
pub use world::World;
pub use world_builder::WorldBuilder;
