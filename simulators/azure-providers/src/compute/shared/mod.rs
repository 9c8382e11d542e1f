//! What several types use: zones, quotas, the catalogue of sizes, and what a location is asked.

pub(crate) mod calls;
pub(crate) mod catalogue;
pub(crate) mod public_gallery;
pub(crate) mod publishers;
pub(crate) mod quota;
pub(crate) mod zones;
