//! One load balancer for many Services: frontends, rules, probes, pools, in one write.
//!
//! All Services of a batch are planned against one document. If one of them cannot be served, its parts stay exactly as
//! they are, and the rest is planned again without it.

mod batch;
pub mod cluster_name;
mod conflict;
mod edit;
pub(crate) mod frontend;
mod index;
mod intent;
mod leftover;
mod limits;
mod listed;
mod local_pools;
mod members;
mod occupancy;
mod own;
mod parts;
mod placing;
mod plan;
mod presence;
pub(crate) mod probe;
mod retirement;
pub(crate) mod rule;

pub use cluster_name::LoadBalancersByName;
pub use edit::LoadBalancerPlan;
pub use frontend::{OwnedFrontend, frontends_of};
pub use intent::{Known, KnownServices, LoadBalancerIntent, known_services, services_named_in};
pub use listed::ListedLoadBalancer;
pub use occupancy::{Occupancy, Places};
pub(crate) use parts::base_of;
pub use parts::pool_in;
pub use plan::{plan, restore, undone};
pub(crate) use presence::{has_frontend_of, is_named_after};
pub use presence::{holds, services_on};
pub use retirement::{deletion_obstacle, is_due as has_to_be_retired};
pub use rule::RuleSpec;
