//! Desired and observed state in, plan out: pure.
//!
//! Kubernetes objects, the configuration and the observed Azure documents go in; a [`Plan`] comes out. No
//! clock, no I/O, no randomness: the same input gives the same plan, in any order of its parts.
//!
//! Every Service becomes a [`ServiceIntent`] (or a [`Refusal`] that names annotation, value and remedy);
//! one that goes becomes a [`ServiceRemoval`], which cannot fail. What belongs to one Service alone is
//! planned by [`public_ip`]; what many share is planned for many at once by [`load_balancer`],
//! [`security_group`], [`scale_set`] and [`interface`], each with at most one write and an answer for each Service.
//! The routes to nodes' pods are planned by [`mod@route`], in the same way for all nodes.
//! [`plan_cluster`] puts it all together in the order in which it has to happen.
//!
//! What a Service becomes in Azure, and which module decides it:
//!
//! ```text
//!                          Service ── intent ── what it asks for; refusal: why it cannot be served
//!                             │
//!                         sequence ── what is next: addresses, load balancer, security rules, release
//!       ┌─────────────────────┼───────────────────────────────┐
//!   public_ip            load_balancer                   security_group
//!   claim: whose         placing: which frontend         demand: which rules it asks for
//!   change: what         limits, occupancy: is there     usage: what others need
//!   becomes of it        a place; conflict: is the       clean: what nobody needs any more
//!       │                port free                            │
//!       │                     │                               │ destination and port:
//!       └─▶ frontend ◀── load-balancing rule ── arrival ──────┘ where packets arrive
//!           frontend     rule │      │
//!                             ▼      ▼
//!                        health     backend pool ◀── backend_pool: which nodes belong in it
//!                        probe           ▲
//!                        probe           │
//!                                     holder ── who joins or leaves it: scale_set, interface
//!                                   machines ── which node is which machine; unserved: nodes that cannot join
//! ```
//!
//! Where several load balancers share the Services, [`placement`] says which Service and which node is on which.
//!
//! What is decided in which case stands in `docs/rules`, with its source and the test that proves it.

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
