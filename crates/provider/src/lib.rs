//! Observed state, one writer per shared resource, applying plans.
//!
//! A [`Provider`] takes the Services and Nodes of Kubernetes, gets a plan from the planner, and applies it: public IPs
//! in parallel; load balancers, the security group, scale sets and the network interfaces of a resource group by one
//! writer each, which serves all pending intents with one write. Concurrent readers of Azure's state share one read.

mod azure;
mod deletion;
mod drift;
mod failure;
mod fingerprint;
mod intent_owner;
mod interfaces;
mod load_balancer;
mod machines;
mod mask_sizes;
mod member_writes;
mod membership;
mod observed;
mod port;
mod private_link;
mod provider;
mod public_ip;
mod resource_list;
mod resync;
mod route_table;
mod routes;
mod scale_set;
mod security_group;
mod service;
mod sharing;
mod turns;

pub use provider::{Options, Provider};
