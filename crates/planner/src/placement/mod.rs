//! The placement of a Service on one of several load balancers (`multipleStandardLoadBalancerConfigurations`; 7.4).
//!
//! Placement keeps no state: the Services of a load balancer are read from its document every time, and from the places
//! that were [promised](crate::resources::load_balancer::Places) to Services on their way. So a Service stays where it
//! is as long as that is allowed, whichever process decides. It moves when its annotation, its labels or those of its
//! namespace no longer allow its load balancer, or when it asks for an address on another.

mod basic;
mod candidates;
mod holdings;
mod nodes;
mod observation;
mod services;
mod sharing;

pub use basic::nodes_of_sets;
pub use holdings::NodesInPools;
pub use nodes::place_nodes;
pub use observation::ServiceObservation;
pub use services::check;
pub(crate) use services::place;
pub use sharing::{NodeSharing, SharingInputs};

pub use crate::machines::machine_set::MachineSets;
pub use crate::machines::node_places::{NodePlaces, NodeShare};
pub use crate::model::Labels;
