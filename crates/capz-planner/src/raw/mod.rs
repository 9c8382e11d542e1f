//! Clusters that Azure manages, as whole objects of Azure Service Operator: `spec.resources` of AzureASOManagedCluster,
//! AzureASOManagedControlPlane and AzureASOManagedMachinePool.
//!
//! ```text
//!  spec.resources ──mutated──▶ objects ──place──▶ IDs and documents ──goals──▶ the same plan as for all other kinds
//!                    ▲
//!        version, ranges, pools of the Cluster
//! ```
//!
//! An object needs no operator: `operator-resources` reads it as a document of Azure.

mod adoption;
mod applied;
mod control_plane;
mod mutation;
mod place;
mod pool;
mod record;
mod takeover;

pub use adoption::{
    Adoptable, Adoption, around, group_kind, handed_over, is_current, lists, refers, unknown_version,
};
pub use applied::{Applied, RAW_MEMBERS};
pub use control_plane::{ControlPlane, RawReported, read_back};
pub use mutation::Incompatible;
pub use place::{PlaceError, Placed, Standing, ends, fixed, goals, place, statuses};
pub use pool::{MANAGED_BY_AKS, Pool, ReplicasManager, count_of, replicas_manager};
pub use record::{INHERITED, OWNED_KINDS, RAW_RESOURCES, Record, Recorded};
pub use takeover::{keep, record_taken_over};
