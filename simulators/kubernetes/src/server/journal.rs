//! The journal: every request and its response. It contains no bodies, so that no secret can enter it.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One request in the journal.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JournalEntry {
    /// Number of the request, from 1.
    pub sequence: u64,
    /// The server's wall clock when the request arrived.
    pub time: Timestamp,
    /// HTTP method.
    pub method: String,
    /// Path as sent, without the query.
    pub path: String,
    /// HTTP status of the response; 0 for a request that a fault lost before anything was done.
    pub status: u16,
    /// `reason` of the Status, for errors.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub code: String,
    /// `message` of the Status, for errors.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub message: String,
    /// The API's verb; empty for requests that are not for a resource.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub verb: String,
    /// The resource with its group and subresource: `deployments.apps/status`.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub resource_type: String,
    /// Namespace of the object.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub namespace: String,
    /// Name of the object; empty for lists and creations.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub resource: String,
    /// Name of the user.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub user: String,
    /// The client's `User-Agent`.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub user_agent: String,
    /// The field manager that the client named.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub field_manager: String,
    /// Milliseconds until the response, or until a watch had started.
    pub answer_ms: u64,
    /// Name of the fault that affected the response; `unnamed` if it has no name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fault: Option<String>,
}

/// Counts of completed requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// All requests.
    pub requests: u64,
    /// Gets, lists and requests that are not for a resource.
    pub reads: u64,
    /// Watches.
    pub watches: u64,
    /// Creations, updates and patches.
    pub writes: u64,
    /// Deletions.
    pub deletes: u64,
    /// Responses with a status of 400 or more.
    pub refused: u64,
    /// Responses with status 429.
    pub throttled: u64,
}

impl Counts {
    fn count(&mut self, entry: &JournalEntry) {
        self.requests += 1;
        *match entry.verb.as_str() {
            "watch" => &mut self.watches,
            "create" | "update" | "patch" => &mut self.writes,
            "delete" | "deletecollection" => &mut self.deletes,
            _ => &mut self.reads,
        } += 1;
        self.refused += u64::from(entry.status >= 400);
        self.throttled += u64::from(entry.status == 429);
    }
}

/// The requests so far: a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    /// Requests in order; the oldest are dropped beyond the configured capacity.
    pub entries: Vec<JournalEntry>,
    /// Counts over all requests, dropped ones included.
    pub counts: Counts,
}

impl Journal {
    /// The entries as JSON Lines.
    #[must_use]
    pub fn to_lines(&self) -> String {
        // An entry consists of texts and numbers, so serialization cannot fail.
        let lines = self.entries.iter().map(|entry| serde_json::to_string(entry).unwrap_or_default() + "\n");
        lines.collect()
    }
}

/// The journal while it is written.
#[derive(Debug, Default)]
pub(crate) struct JournalBook {
    entries: VecDeque<JournalEntry>,
    counts: Counts,
    begun: u64,
}

impl JournalBook {
    /// The number of a request that has arrived.
    pub(crate) fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    pub(crate) fn record(&mut self, entry: JournalEntry, capacity: usize) {
        self.counts.count(&entry);
        // A slow request completes after later ones.
        let at = self.entries.partition_point(|other| other.sequence < entry.sequence);
        self.entries.insert(at, entry);
        while self.entries.len() > capacity {
            self.entries.pop_front();
        }
    }

    pub(crate) fn after(&self, sequence: u64) -> Journal {
        let from = self.entries.partition_point(|entry| entry.sequence <= sequence);
        Journal { entries: self.entries.range(from..).cloned().collect(), counts: self.counts.clone() }
    }

    /// Forgets all requests; the numbering continues.
    pub(crate) fn clear(&mut self) {
        *self = Self { begun: self.begun, ..Self::default() };
    }

    pub(crate) fn restore(&mut self, journal: Journal) {
        self.begun = journal.counts.requests.max(journal.entries.last().map_or(0, |entry| entry.sequence));
        self.entries = journal.entries.into();
        self.counts = journal.counts;
    }
}
