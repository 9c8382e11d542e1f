//! Shared parts of several types.

pub(crate) mod addresses;
pub(crate) mod checks;
pub(crate) mod children;
pub(crate) mod codes;
pub(crate) mod ip_tag;
pub(crate) mod protocol;
pub(crate) mod sku;
pub(crate) mod type_names;
pub(crate) mod zones;
