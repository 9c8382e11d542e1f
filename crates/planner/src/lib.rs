//! Desired and observed state in, plan out: pure.
//!
//! Kubernetes objects, the configuration and the observed Azure documents go in; a [`Plan`] comes out. No
//! clock, no I/O, no randomness: the same input gives the same plan, in any order of its parts.
//!
//! Every Service becomes a [`ServiceIntent`], or a [`Refusal`] that names annotation, value and remedy. A Service that
//! is removed becomes a [`ServiceRemoval`], which cannot fail. The resources of one Service alone are planned by
//! [`public_ip`]. Shared resources are planned for many Services at once by [`load_balancer`], [`security_group`],
//! [`scale_set`] and [`interface`], each with at most one write and a result for each Service. Routes to nodes' pods
//! are planned by [`mod@route`], in the same way for all nodes. [`plan_cluster`] combines everything in the order in
//! which it is written.
//!
//! The Azure resources of a Service, and the module that decides each:
//!
//! ```text
//!                          Service ── intent ── desired state; refusal: why it cannot be served
//!                             │
//!                         sequence ── the next step: addresses, load balancer, security rules, release
//!       ┌─────────────────────┼───────────────────────────────┐
//!   public_ip            load_balancer                   security_group
//!   claim: owner         placing: which frontend         demand: which rules it asks for
//!   change: keep,        limits, occupancy: is there     usage: what others need
//!   replace, repair      a place; conflict: is the       clean: what is not needed any more
//!       │                port free                            │
//!       │                     │                               │ destination and port:
//!       └─▶ frontend ◀── load-balancing rule ── arrival ──────┘ where packets arrive
//!           frontend     rule │      │
//!                             ▼      ▼
//!                        health     backend pool ◀── backend_pool: which nodes belong in it
//!                        probe           ▲
//!                        probe           │
//!                                     holder ── the members that join or leave it: scale_set, interface
//!                                   machines ── the machine of each node; unserved: nodes that cannot join
//! ```
//!
//! Where several load balancers share the Services, [`placement`] decides on which load balancer each Service and node
//! is.
//!
//! `docs/rules` lists the decision for every case, with its source and the test that proves it.

mod access;
pub mod admin_state;
mod annotations;
mod arrival;
pub mod backend_pool;
pub mod change;
mod cluster;
pub mod cluster_name;
mod cluster_plan;
pub mod drift;
pub mod exclusion;
mod expected;
mod frontend;
mod holder;
mod intent;
pub mod interface;
mod listed;
pub mod load_balancer;
pub mod local_pool;
pub mod machine_set;
pub mod machines;
mod mistakes;
mod names;
mod parsed;
pub mod placement;
mod plan;
mod plan_json;
mod plan_text;
mod preview;
pub mod private_link;
mod probe;
mod proof;
pub mod public_ip;
mod refusal;
mod rewrite;
pub mod route;
mod rule;
pub mod scale_set;
pub mod security_group;
pub mod sequence;
pub mod strangers;
mod tags;
pub mod unserved;
mod wait;
mod words;
mod zone;

#[cfg(test)]
mod tests;

pub use access::Access;
pub use arrival::Arrival;
pub use change::Change;
pub use cluster::{Balancer, Cluster, Family, Flavor};
pub use cluster_plan::{ClusterPlan, Observed, plan_cluster};
pub use frontend::OwnedFrontend;
pub use intent::{PortIntent, ServiceIntent, ServiceRemoval, Transport};
pub use listed::ListedLoadBalancer;
pub use machine as instance;
pub use machines::Machines;
pub use names::base_name;
pub use parsed::ParsedServices;
pub use plan::{Action, Document, Notice, Plan, Purpose, Step};
pub use plan_json::PLAN_FORMAT_VERSION;
pub use plan_text::describe_resource;
pub use private_link::{PrivateLinkIntent, PrivateLinkRefusal};
pub use probe::ProbeSpec;
pub use refusal::{PortHolder, Refusal};
pub use rule::RuleSpec;
pub use wait::Wait;
