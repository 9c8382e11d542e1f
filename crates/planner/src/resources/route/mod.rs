//! The one route table for all nodes, in one write.
//!
//! Where the pod network is not Azure's, each node has ranges of its own (`spec.podCIDRs`), and a route leads to each
//! of them through the node's address. All other entries of the table are foreign and stay.

mod draft;
mod key;
mod name;
mod owned;
mod plan;
mod refusal;
mod repair;
mod subnet;

pub use key::{RouteIntent, RouteKey};
pub use name::route_name;
pub use owned::{OwnedRoute, owned};
pub use plan::{RoutePlan, keys_named_in, plan_table};
pub use refusal::RouteRefusal;
pub use repair::restore;
pub use subnet::{SubnetOverlap, has_other_table, subnet_overlaps, unused_table};
