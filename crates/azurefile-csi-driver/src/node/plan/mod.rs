//! What is decided about a mount, without doing anything.
//!
//! ```text
//! failure        from the end of a helper and checks to a message and a code
//! login          which credential a mount takes, and from where
//! mount_options  options of SMB and NFS
//! inline         what a volume in a pod's own definition may not have
//! attributes     the attributes of a volume, read and checked
//! ```

pub mod attributes;
pub mod failure;
pub mod inline;
pub mod login;
pub mod mount_options;

/// A request is invalid: the text says what, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

/// The invalid argument that this text describes.
pub(crate) fn invalid<T>(text: impl Into<String>) -> Result<T, Invalid> {
    Err(Invalid(text.into()))
}
