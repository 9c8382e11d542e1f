//! The placement of a Service on one of several load balancers (`multipleStandardLoadBalancerConfigurations`; 7.4).
//!
//! Placement keeps no state: the Services of a load balancer are read from its document every time, and from the places
//! that were [promised](Places) to Services on their way. So a Service stays where it is as long as that is allowed,
//! whichever process decides. It moves when its annotation, its labels or those of its namespace no longer allow its
//! load balancer, or when it asks for an address on another.

mod basic;
mod candidates;
mod holdings;
mod nodes;
mod observed;
mod services;

pub use basic::nodes_of_sets;
pub use holdings::Holdings;
pub use nodes::place_nodes;
pub use observed::Seen;
pub use services::check;
pub(crate) use services::place;

pub use crate::machines::machine_set::MachineSets;
pub use crate::machines::node_places::{NodePlaces, NodeShare};
pub use crate::model::Labels;
