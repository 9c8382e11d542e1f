//! Proof of ownership: one notion for every planner of the house.
//!
//! ```text
//!  document in Azure ──▶ rule of its type ──▶ Ownership ─┬─ Proven(Proof)   may be written, emptied, deleted
//!  object in Kubernetes ─────────▲                       ├─ Disputed(Rival) left alone, its object is refused
//!                                                        ├─ Unproven        left alone, or used as it is
//!                                                        └─ Unknown         nothing happens, it is read again
//! ```
//!
//! A step that writes over, empties or deletes what already exists carries a [`Proof`]. A plan prints it, and a test asks for
//! it. What carries none was created by that very step, under a condition that Azure itself checks.
//!
//! # Guarantees
//!
//! * A [`Proof`] has at least one [`Evidence`], and names the object that it speaks for.
//! * Neither a prefix of a name nor the absence of other owners is evidence.

mod evidence;
mod owner;
mod proof;

pub use evidence::Evidence;
pub use owner::Owner;
pub use proof::{Ownership, Proof, Rival};
