//! The stages of a write, and what they share.

pub(crate) mod admit;
pub(crate) mod commit;
pub(crate) mod decode;
mod metadata;
pub(crate) mod parts;
pub(crate) mod propose;
pub(crate) mod scale;
