//! The data of the kinds: nothing here reads an object.

mod kind;
mod published;
mod source;
mod version;

pub use kind::{KINDS, Kind, Place, find};
pub(crate) use published::has_member;
pub use source::{Keeper, Source};
pub use version::api_version;
