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
//! A file imports files of its own floor and of those below it, never of one above:
//!
//! ```text
//! order       sequence: the next step of one Service; cluster_plan, preview, expected: all Services and nodes; drift
//! placement   the load balancer of each Service and of each node, where there are several
//! resources   a folder for each type of Azure resource: load_balancer, security_group, public_ip, private_link, route
//! machines    the nodes' machines, and their membership in backend pools; nodes that cannot join
//! service     a Service's object, read and checked once: intent, or the reason why it cannot be served
//! outcome     results as data and as text: plan, change, refusal, wait
//! model       the cluster, its names, and Azure's limits
//! ```
//!
//! The Azure resources of a Service, and the file that decides each:
//!
//! ```text
//!   public_ip            load_balancer                   security_group
//!   claim: owner         placing: which frontend         service/security_needs: rules that it asks for
//!   change: keep,        limits, occupancy: is there     usage: what others need
//!   replace, repair      a place; conflict: is the       clean: what is not needed any more
//!       │                port free                            │
//!       │                     │                               │ destination and port:
//!       └─▶ frontend ◀── load-balancing rule ── service/arrival: where packets arrive
//!           frontend     rule │      │
//!                             ▼      ▼
//!                        health     backend pool ◀── machines/backend_pool: which nodes belong in it
//!                        probe           ▲
//!                        probe           │
//!                                     machines/holder: members that join or leave it, by scale_set and interface
//! ```
//!
//! Other crates use the modules and types under their short paths, such as [`public_ip`] and [`Plan`].
//!
//! `docs/rules` lists the decision for every case, with its source and the test that proves it.

mod machines;
mod model;
mod order;
mod outcome;
pub mod placement;
mod resources;
mod service;

pub use k8s::Notice;
pub use machine as instance;
pub use machines::inventory::Machines;
pub use machines::{admin_state, backend_pool, exclusion, interface, machine_set, scale_set, unserved};
pub use model::names::base_name;
pub use model::{Balancer, Cluster, Family, Flavor};
pub use order::cluster_plan::plan_cluster;
pub use order::observed::Observed;
pub use order::{drift, sequence};
pub use outcome::plan_json::PLAN_FORMAT_VERSION;
pub use outcome::plan_text::describe_resource;
pub use outcome::{
    Action, Change, ClusterPlan, Document, Plan, PortHolder, PrivateLinkRefusal, Purpose, Refusal, Step,
    Wait, change,
};
pub use resources::load_balancer::{ListedLoadBalancer, OwnedFrontend, RuleSpec, cluster_name};
pub use resources::{load_balancer, private_link, public_ip, route, security_group, strangers};
pub use service::{
    Access, Arrival, ParsedServices, PortIntent, PrivateLinkIntent, ProbeSpec, ServiceIntent, ServiceRemoval,
    Transport, local_pool,
};
