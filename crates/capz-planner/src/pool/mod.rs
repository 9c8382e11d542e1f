//! From an AzureMachinePool to its scale set, and from its instances to what happens to them.
//!
//! ```text
//!  spec, image, bootstrap data ──▶ goals: the scale set, written only when its model or its size changes
//!  instances, objects          ──▶ sync: objects that are made, machines that go now
//!  state, replicas             ──▶ standing: conditions and readiness
//!  all of them                 ──▶ pending: whether another look at Azure is due, or events tell
//! ```

mod goals;
mod instance;
mod memory;
mod node;
mod numbers;
mod pending;
mod resize;
mod rival;
mod scale_set;
mod scope;
mod selection;
mod status;
mod sync;

pub use goals::{complete, ends, goals, unproven_end};
pub use instance::{Instance, end as instance_end, is_of as is_instance_of, labels as instance_labels};
pub use memory::EXTENSIONS;
pub use node::Node;
pub use numbers::{DeletePolicy, delete_policy, max_surge, max_unavailable};
pub use pending::{Pending, pending};
pub use resize::{Numbers, Resize, resize};
pub use rival::{Claim, rival};
pub use scale_set::{HASH_TAG, bootstrap_hash};
pub use scope::{EXTERNAL_REPLICAS, OwnerMachinePool, PoolScope, TAGS};
pub use selection::{PoolMachine, PoolTarget, select};
pub use status::{PoolStatus, pool_status};
pub use sync::{ObservedPool, Sync, rollout_in_progress, sync};

pub use crate::machine_inputs::MachineInputs;
