//! Work that is done outside: what runs on machines. A type asks for it and is told how it went; operations that the work
//! belongs to do not end before.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use serde_json::Value;

use super::error::Refusal;

/// Work that somebody is asked to do.
#[derive(Debug, Clone)]
pub struct Asked {
    /// What it is about.
    pub id: ResourceId,
    /// Tells it from earlier work on the same.
    pub number: u64,
    /// What is to be done, in the words of the type that asks.
    pub what: Value,
}

/// What was asked for and is not done.
#[derive(Debug, Default)]
pub struct Outside {
    /// Whether anybody does such work; otherwise nobody is asked and nothing waits.
    pub listens: bool,
    pub(super) asked: u64,
    pub(super) queue: Vec<Asked>,
    /// The latest work on each resource, by its id in lower case.
    pub(super) waiting: BTreeMap<String, u64>,
    /// Why it went wrong, until the operation that it belongs to ends.
    pub(super) failures: BTreeMap<String, Refusal>,
    /// Operations whose own time is over.
    pub(super) held: Vec<String>,
}
