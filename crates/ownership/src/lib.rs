//! Proof of ownership, for all planners.
//!
//! ```text
//!  document in Azure ──▶ rule of its type ──▶ Ownership ─┬─ Proven(Proof)   may be written, emptied, deleted
//!  object in Kubernetes ─────────▲                       ├─ Disputed(Rival) left alone, the object is refused
//!                                                        ├─ Unproven        left alone, or used as it is
//!                                                        └─ Unknown         nothing happens until it is read again
//! ```
//!
//! A step that overwrites, empties or deletes an existing resource carries a [`Proof`]: plans print it, and tests require it.
//! A step without a proof creates its resource, on the condition that it does not exist yet, which Azure checks.
//!
//! # Guarantees
//!
//! * A [`Proof`] has at least one [`Evidence`], and names the object that owns the resource.
//! * Neither a prefix of a name nor the absence of other owners is evidence.

mod evidence;
mod owner;
mod proof;

pub use evidence::Evidence;
pub use owner::Owner;
pub use proof::{Ownership, Proof, Rival};
