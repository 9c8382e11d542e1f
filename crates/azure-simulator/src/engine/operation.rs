//! Long-running operations (`spec/arm-wire.md`, section 7).

use std::collections::{BTreeSet, HashMap, VecDeque};

use azure_types::ResourceId;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::error::Refusal;
use super::kind::Style;

/// What happens when an operation ends well.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Completion {
    /// The written resource becomes `Succeeded`.
    Write,
    /// The resource goes, with everything below it.
    Delete,
    /// The kind does what it started: action and its arguments.
    Action(String, Value),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Status {
    InProgress,
    Succeeded,
    Failed(Refusal),
    Canceled(Refusal),
}

impl Status {
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::InProgress => "InProgress",
            Self::Succeeded => "Succeeded",
            Self::Failed(_) => "Failed",
            Self::Canceled(_) => "Canceled",
        }
    }
}

pub(crate) struct Operation {
    /// GUID; for resource groups an opaque text.
    pub(crate) key: String,
    /// Such as `PutLoadBalancerOperation`.
    pub(crate) name: String,
    pub(crate) style: Style,
    pub(crate) subject: ResourceId,
    pub(crate) started: Timestamp,
    pub(crate) ended: Option<Timestamp>,
    /// When it ends; `None` for one that never does by itself.
    pub(crate) due: Option<Instant>,
    pub(crate) status: Status,
    pub(crate) completion: Completion,
    /// How it will fail, where a fault says so.
    pub(crate) will_fail: Option<Refusal>,
}

/// How many ended operations stay readable.
const REMEMBERED: usize = 10_000;

/// All operations, running and past.
#[derive(Default)]
pub(crate) struct Operations {
    by_key: HashMap<String, Operation>,
    /// Running operations in the order in which they end.
    queue: BTreeSet<(Instant, u64, String)>,
    /// Ended operations, oldest first; the oldest expire.
    ended: VecDeque<String>,
    count: u64,
}

impl Operations {
    /// The number of the next operation.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    pub(crate) fn start(&mut self, number: u64, operation: Operation) {
        if let Some(due) = operation.due {
            self.queue.insert((due, number, operation.key.clone()));
        }
        self.by_key.insert(operation.key.clone(), operation);
    }

    /// Ends a running operation and gives it back; `None` when it is not running.
    pub(crate) fn end(&mut self, key: &str, now: Timestamp) -> Option<&mut Operation> {
        let operation =
            self.by_key.get_mut(key).filter(|operation| operation.status == Status::InProgress)?;
        operation.ended = Some(now);
        self.ended.push_back(key.to_owned());
        if self.ended.len() > REMEMBERED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.by_key.remove(&oldest);
        }
        self.by_key.get_mut(key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Operation> {
        self.by_key.get(&key.to_ascii_lowercase()).or_else(|| self.by_key.get(key))
    }

    pub(crate) fn running(&self, key: Option<&String>) -> Option<&Operation> {
        self.by_key.get(key?).filter(|operation| operation.status == Status::InProgress)
    }

    /// Takes the next operation that is over at `now`.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<String> {
        while let Some(first) = self.queue.first() {
            if first.0 > now {
                return None;
            }
            let (_, _, key) = self.queue.pop_first()?;
            if self.by_key.get(&key).is_some_and(|operation| operation.status == Status::InProgress) {
                return Some(key);
            }
        }
        None
    }

    pub(crate) fn running_count(&self) -> usize {
        self.by_key.values().filter(|operation| operation.status == Status::InProgress).count()
    }
}
