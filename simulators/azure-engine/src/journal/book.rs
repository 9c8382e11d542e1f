//! The journal of requests.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::compact_entry::{CompactEntry, SharedTexts};
use super::entry::{JournalEntry, RequestKind};

/// Requests answered so far, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// All requests.
    pub requests: u64,
    /// GET and HEAD of resources and lists.
    pub reads: u64,
    /// PUT, PATCH and POST.
    pub writes: u64,
    /// DELETE.
    pub deletes: u64,
    /// Polls of long-running operations.
    pub polls: u64,
    /// Answers with a status of 400 or more.
    pub refused: u64,
    /// Answers with status 429.
    pub throttled: u64,
    /// Accepted writes by resource type (without DELETE).
    pub writes_by_type: BTreeMap<String, u64>,
}

/// The requests so far: a copy, taken at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    /// Requests in order; the oldest are dropped beyond the configured capacity.
    pub entries: Vec<JournalEntry>,
    /// Counts over all requests, dropped ones included.
    pub counts: Counts,
}

impl Journal {
    /// The accepted writes (PUT, PATCH, POST) of one resource type, in order. Case does not matter.
    pub fn writes_of(&self, resource_type: &str) -> Vec<&JournalEntry> {
        self.entries
            .iter()
            .filter(|entry| {
                entry.kind == RequestKind::Write
                    && entry.accepted()
                    && entry
                        .resource_type
                        .as_deref()
                        .is_some_and(|name| name.eq_ignore_ascii_case(resource_type))
            })
            .collect()
    }

    /// The entries after a sequence number.
    pub fn since(&self, sequence: u64) -> Vec<&JournalEntry> {
        self.entries.iter().filter(|entry| entry.sequence > sequence).collect()
    }
}

/// The journal being written.
#[derive(Default)]
pub struct JournalBook {
    entries: VecDeque<CompactEntry>,
    texts: SharedTexts,
    counts: Counts,
    capacity: usize,
}

impl JournalBook {
    /// A book that remembers that many requests.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), ..Self::default() }
    }

    /// Writes a request down.
    pub fn record(&mut self, entry: JournalEntry) {
        self.counts.count(&entry);
        if self.entries.len() >= self.capacity {
            self.entries.pop_front();
        }
        // A request that a fault delayed is answered after later ones.
        let at = self.entries.partition_point(|other| other.sequence < entry.sequence);
        let kept = CompactEntry::of(entry, &mut self.texts);
        self.entries.insert(at, kept);
    }

    /// The requests after the one with that number.
    pub fn after(&self, sequence: u64) -> Journal {
        let from = self.entries.partition_point(|entry| entry.sequence <= sequence);
        Journal {
            entries: self.entries.range(from..).map(CompactEntry::entry).collect(),
            counts: self.counts.clone(),
        }
    }

    /// The last requests, at most that many.
    pub fn last(&self, count: usize) -> Journal {
        let from = self.entries.len().saturating_sub(count);
        Journal {
            entries: self.entries.range(from..).map(CompactEntry::entry).collect(),
            counts: self.counts.clone(),
        }
    }

    /// Restores the saved form.
    pub fn restore(&mut self, journal: Journal) {
        let texts = &mut self.texts;
        self.entries = journal.entries.into_iter().map(|entry| CompactEntry::of(entry, texts)).collect();
        self.counts = journal.counts;
    }

    /// Clears everything except the numbering.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.counts = Counts::default();
    }
}
