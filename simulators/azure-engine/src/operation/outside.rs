//! Work that is done outside the simulator, such as what runs on machines. A type requests it and gets its result;
//! operations that the work belongs to do not end before.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use serde_json::Value;

use crate::refusal::Refusal;

/// Work to be done outside.
#[derive(Debug, Clone)]
pub struct OutsideTask {
    /// The resource that it is about.
    pub id: ResourceId,
    /// Distinguishes it from earlier work on the same resource.
    pub number: u64,
    /// What to do, in the form that the type chose.
    pub what: Value,
}

/// Work that was requested and is not done.
#[derive(Debug, Default)]
pub struct Outside {
    /// Whether a worker is attached; otherwise no work is requested and nothing waits.
    pub listens: bool,
    pub(crate) requested: u64,
    pub(crate) queue: Vec<OutsideTask>,
    /// The latest work on each resource, by its id in lower case.
    pub(crate) waiting: BTreeMap<String, u64>,
    /// Failures of work, until the operation that it belongs to ends.
    pub(crate) failures: BTreeMap<String, Refusal>,
    /// Operations that are due and wait for work outside.
    pub(crate) held: Vec<String>,
}
