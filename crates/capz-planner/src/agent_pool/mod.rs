//! From an AzureManagedMachinePool to the node pool of a managed cluster, and from the pool's scale set to its machines.

mod goals;
mod machines;
mod node_config;
mod profile;

pub use goals::{MANAGED_BY_AUTOSCALER, PoolReplicas};
pub use goals::{TAGS, end, goals, remembered_tags, sync};
pub use machines::{Machines, instances_reading, machines, scale_set_of, scale_sets_reading};
pub use profile::{AgentPool, profiles};

pub use crate::claimant::MANAGED_MACHINE_POOL as KIND;
