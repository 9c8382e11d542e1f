//! The table of all keys of azure.json: the type of the value, the effect in this release, and, for keys without an
//! effect, the reason.
//!
//! The table decides which keys are read, the output of [`CloudConfig::warnings`](crate::CloudConfig::warnings), the candidates
//! for a misspelt key, and the content of `docs/resources/azure-json.md`. A key without effect has no field in
//! [`CloudConfig`](crate::CloudConfig).

mod key;
mod nearest;
mod table;

pub use key::{Effect, Key, ValueType};
pub use nearest::nearest;
pub use table::{KEYS, find};
