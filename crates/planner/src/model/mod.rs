//! The cluster, its names and limits: what all other rooms speak of. It imports none of them.

pub(crate) mod admin_state;
pub(crate) mod annotation_keys;
pub(crate) mod balancer;
pub(crate) mod cluster;
pub(crate) mod family;
pub(crate) mod labels;
pub(crate) mod limits;
pub(crate) mod names;
pub(crate) mod sku;
pub(crate) mod words;
pub(crate) mod zone;

pub use admin_state::AdminState;
pub(crate) use balancer::without_suffix;
pub use balancer::{Balancer, Flavor};
pub use cluster::Cluster;
pub use family::Family;
pub(crate) use family::is_public;
pub use labels::Labels;
pub(crate) use limits::{
    MAX_ADDRESSES, MAX_FRONTEND_PORT, MAX_PRIORITY, MAX_PROBE_SECONDS, MIN_ADDRESSES, MIN_PRIORITY,
};
pub(crate) use names::Naming;
pub(crate) use words::{name_some, names_word};
