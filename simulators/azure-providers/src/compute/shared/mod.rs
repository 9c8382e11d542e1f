//! Shared parts of several types: zones, quotas, the catalogue of sizes, and calls about a location.

pub(crate) mod calls;
pub(crate) mod catalogue;
pub(crate) mod public_gallery;
pub(crate) mod publishers;
pub(crate) mod quota;
pub(crate) mod zones;
