//! The machines of the nodes, and their membership in backend pools.

pub mod admin_state;
pub mod backend_pool;
pub mod exclusion;
pub(crate) mod holder;
pub mod interface;
pub(crate) mod inventory;
pub mod machine_set;
pub(crate) mod node_places;
pub(crate) mod nodes;
pub(crate) mod obstacle;
pub mod scale_set;
pub mod unserved;
