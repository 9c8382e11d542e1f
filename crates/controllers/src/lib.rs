//! The Kubernetes side: services, nodes, node lifecycle, routes, pod ranges, leader election.
//!
//! ```text
//!  watches ──▶ indexes (pure) ──▶ queues ──▶ controllers ──▶ the traits of `cloud`
//!                  │                              │
//!                  └──▶ ClusterState ◀── provider └──▶ status, finalizers, taints, labels, events
//! ```
//!
//! This crate knows no cloud: it calls the traits of the crate `cloud`, and the provider behind them merges the
//! requests of many Services into few writes. `docs/rules` lists what happens in which case, with the test that proves
//! it.

mod agent;
mod api;
mod draining;
mod endpoint_index;
mod events;
mod finalizer;
mod health;
mod index;
mod ipam;
pub mod leader_election;
mod local_pools;
mod machine_events;
mod namespace_index;
mod node;
mod node_addresses;
mod node_condition;
mod node_lifecycle;
mod node_set;
mod node_sync;
mod observer;
mod options;
mod out_of_service;
mod preemption;
pub mod queue;
mod refusals;
mod repeated_warning;
mod resource_lease;
mod resync;
mod routes;
mod run;
mod served;
mod service;
mod service_change;
mod spans;
mod startup;
mod status;
mod taints;
mod tasks;
pub mod watch;

pub use agent::{AgentOptions, run_agent};
pub use api::{ApiError, answer};
pub use clock::Clock;
pub use events::{EventType, EventWriter, Recorder, Reference, recorder};
pub use health::{HealthCheck, HealthChecks};
pub use ipam::{MaskProblem, RangeOptions, RangeTurnover, check_mask};
pub use machine_events::MachineEventOptions;
pub use observer::{NoObserver, Observer, Reconciled, ServiceOperation};
pub use options::{Cloud, Controllers, Error, Options};
pub use routes::{RoutesDue, routes_due};
pub use run::run;
