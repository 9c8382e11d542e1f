//! The API's verbs on the state, without HTTP and without waiting.
//!
//! A write has three stages, each of which is called once: [`write::propose`] says what the client wants, [`write::admit`] completes
//! and validates it, [`write::commit`] stores it. Hooks are awaited between the stages, while the state is not locked.

mod delete;
mod eviction;
pub(crate) mod lifecycle;
mod list;
pub(crate) mod pod;
pub(crate) mod shelves;
mod state;
pub(crate) mod write;

pub(crate) use delete::{DeleteOptions, Deletion, Propagation};
pub(crate) use lifecycle::chores::SavedChore;
pub(crate) use list::{ListOptions, Page, VersionMatch};
pub(crate) use state::{State, Write};
pub(crate) use write::decode::{FieldValidation, Reaction};
pub(crate) use write::parts::Part;
