//! Named worlds for tests: both simulators, the controllers, builders and assertions.
//!
//! A [`World`] is a whole cluster in one process: a simulated Azure and Kubernetes, stand-in kubelets, and
//! the controllers with the provider as they run in production. Nothing uses a socket, and all time is
//! tokio's: under a paused clock a day takes moments.
//!
//! * [`World`] starts, kills and restarts the controllers, and waits on virtual time.
//! * [`service`] builds Services.
//! * [`KillSwitch`] is the way to Azure, which counts calls and may break after any of them.
//! * [`AzureState`] is Azure's state without what differs between two ways to the same end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "used by tests alone: a world that cannot be set up must fail its test"
)]

mod azure_state;
mod journal;
mod kill_switch;
mod packets;
mod service;
mod world;
mod world_builder;

pub use azure_state::AzureState;
pub use kill_switch::KillSwitch;
pub use service::{ServiceBuilder, service};
pub use world::World;
pub use world_builder::WorldBuilder;

/// Full resource types, as the journal and faults name them.
pub mod types {
    /// Load balancers.
    pub const LOAD_BALANCERS: &str = "Microsoft.Network/loadBalancers";
    /// Public IPs.
    pub const PUBLIC_IPS: &str = "Microsoft.Network/publicIPAddresses";
    /// Security groups.
    pub const SECURITY_GROUPS: &str = "Microsoft.Network/networkSecurityGroups";
    /// Scale sets.
    pub const SCALE_SETS: &str = "Microsoft.Compute/virtualMachineScaleSets";
    /// Machines of scale sets.
    pub const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";
}
