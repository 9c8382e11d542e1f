//! One writer per shared resource, with group commit, and failures classified for it.
//!
//! What many objects share (a load balancer, a machine's list of disks) is a [`Resource`]. This crate knows no kind of
//! resource: its users bring the plans, the calls, and their table of [terminal codes](Kind::of).
//!
//! A [`Writer`] owns a task that takes all pending intents, plans them together, writes once and answers all of them.
//! Intents that arrive while a write is in flight form the next batch. Intents can be announced to a writer, and a
//! batch waits for the announced ones. An intent that misses a batch waits for a whole write, so a batch waits up to
//! half a write for the next intent, and a whole write in total.
//!
//! # Guarantees
//!
//! * An owner that gets [`Acknowledged`] has its desired state in the resource, as read or as written by us.
//! * One write at a time, conditional on the version that was read. A foreign write is never overwritten: the resource
//!   is read and planned again.
//! * An owner whose desired state is reached is answered, even if others in its batch need more writes.
//! * An intent that Azure refuses fails alone, with Azure's words: the others in its batch are written. Only a refusal
//!   that [provably concerns all](Failure::concerns_all) fails more than one owner.
//! * After one retry, or at once if an operation fails that Azure had accepted, the writer searches for an owner whose
//!   part makes Azure fail or be busy each time. If there is no such owner, all wait together.
//! * What Azure keeps of a failed operation is reverted: by the next write, or by a separate one before the writer is
//!   idle.
//! * A refused owner is written alone until Azure accepts its intent. Others do not wait until all culprits are found:
//!   the search alternates with writes of new intents.
//! * Of two intents of one owner only the later counts, and both get the same answer.
//! * A caller may go at any time: its answer is dropped, its intent carried out. If the intent
//!   [does not outlive its caller](Resource::outlives_its_caller), no write begins for it any more.
//! * An accepted intent is part of every later batch while it [is maintained](Resource::is_maintained): foreign changes are repaired
//!   with the next write. A failing repair delays no pending intent.
//!
//! # Assumes
//!
//! * [`Resource::plan`] is pure, and returns no write if the resource matches the batch.
//! * No other task of this process writes the resource.
//!
//! # Errors
//!
//! A [`Failure`] keeps its kind: `InvalidArgument` and `FailedPrecondition` are about this intent; every other may be
//! about the resource, and is only returned after the limits below. After a stop every answer is `Unavailable`.

mod accepted_intents;
mod failure;
mod group;
mod resource;
mod scope;
mod spans;
mod suspects;
mod trouble;
mod writer;
mod writers;

#[cfg(test)]
mod tests;

pub use accepted_intents::Disturbance;
pub use failure::{Failure, Kind};
pub use resource::{Acknowledged, Answer, Planned, Resource, Written};
pub use scope::Scope;
pub use writer::{Announcement, Pace, Writer};
pub use writers::Writers;
