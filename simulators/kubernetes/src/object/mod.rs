//! Objects as JSON: their stored form, their members, quantities in them, the errors in their fields, and Go's notation
//! of them.

mod fields;
pub(crate) mod go;
pub(crate) mod invalid;
pub(crate) mod pointer;
pub(crate) mod quantity;
mod stored;

pub(crate) use fields::{
    finalizers, is_terminating, list_at, metadata, metadata_value, owner_uids, rfc3339_seconds,
    set_api_version, set_finalizers, set_metadata, string_at, to_bytes, value_at,
};
pub use stored::Object;
pub(crate) use stored::StoredText;
