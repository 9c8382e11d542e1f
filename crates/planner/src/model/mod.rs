//! The cluster, its names and limits: what all other rooms speak of. It imports none of them.

pub(crate) mod admin_state;
pub(crate) mod annotation_keys;
pub(crate) mod balancer;
pub(crate) mod cluster;
pub(crate) mod family;
pub(crate) mod labels;
pub(crate) mod limits;
pub(crate) mod names;
pub(crate) mod words;
pub(crate) mod zone;

pub use admin_state::AdminState;
pub use balancer::{Balancer, Flavor};
pub use cluster::Cluster;
pub use family::Family;
pub use labels::Labels;
pub(crate) use names::Naming;
