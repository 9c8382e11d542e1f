//! Azure Service Operator: the established provider writes some resources of a cluster through the operator's objects,
//! and if such an object is deleted, the operator deletes the resource in Azure. So when a cluster is taken over, its
//! objects are first made harmless and then deleted. The established provider creates them again for existing resources
//! in Azure when it comes back.
//!
//! ```text
//!  manage, detach-on-delete, … ──Skip──▶ skip ──Delete──▶ being deleted ──Release──▶ gone
//!                                         └─ stays while the cluster is paused
//! ```
//!
//! The next step follows from one observation of an object alone, regardless of earlier steps: a third party may have
//! restored its policy.

mod definition;
mod kept;
mod kind;
mod object;
mod owner;

pub use definition::{Converter, Definition};
pub use kept::{KEPT, keeping, kept_of, kept_with_policies};
pub use kind::{OperatorKind, kinds};
pub use object::{Export, OperatorObject, Step};
pub(crate) use object::{policy_of, skipped};
pub use owner::OperatorOwner;
