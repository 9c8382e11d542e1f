//! The port between the controllers and a cloud: the requests of the controllers, and the values that are exchanged.
//!
//! ```text
//!  controllers ──── LoadBalancers: ensure, exists, delete, … ────▶ provider
//!       │      ──── Machines: presence, describe ────────────────▶    │
//!       │      ──── MachineEvents: upcoming, approve ────────────▶    │
//!       │      ──── Routes: owned, apply ────────────────────────▶    │
//!       │      ──── NodeRanges: mask_sizes ──────────────────────▶    │
//!       └──────────────▶ ClusterState, stamped ◀──────────────────────┘
//! ```
//!
//! The controllers depend on this crate and on no cloud; a provider implements its traits. The manifest contains no
//! runtime and no network, so that a program that needs one of the traits links no more than that.

mod cluster_state;
mod endpoints;
mod load_balancers;
mod machine_events;
mod machines;
mod node_ranges;
mod outcome;
mod routes;

pub use cluster_state::{ClusterState, Labels, Stamped};
pub use k8s::Notice;
pub use load_balancers::{FollowedLabels, LoadBalancers};
pub use logical_time::LogicalTime;
pub use machine_events::{MachineEvent, MachineEventType, MachineEvents};
pub use machines::{Instance, Machines, Presence};
pub use node_ranges::{MaskSizes, NodeRanges};
pub use outcome::{Drifted, Ensured, Existence, Looked, Proof, ServiceError, UpdateError};
pub use routes::{PodRange, Routes};
