//! Work that is due some time after a write, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// Work that is due later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Chore {
    /// Check whether the object with this UID still has owners.
    Collect(String),
    /// Delete the contents of a namespace.
    EmptyNamespace(String),
    /// Remove an event that was not written again.
    Expire {
        /// Its key.
        key: String,
        /// The version of the last write.
        version: u64,
    },
}

/// Work in a saved state, with the remaining time: the state may be restored at any time.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SavedChore {
    pub(crate) due_in_ms: u64,
    pub(crate) chore: Chore,
}

/// The planned work, by time and in the order of planning.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    pub(crate) due: BTreeMap<(Instant, u64), Chore>,
    pub(crate) planned: u64,
    /// Whether a task waits for the next chore.
    pub(crate) attended: bool,
}
