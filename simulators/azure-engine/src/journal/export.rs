//! A journal as text: one JSON object a line, the same for the same journal, byte for byte.

use super::book::{Counts, Journal};
use super::entry::JournalEntry;

/// A line of an exported journal that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the journal is no entry")]
pub struct BadLine {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    #[source]
    pub source: serde_json::Error,
}

impl Journal {
    /// The entries as JSON Lines. Members stand in a fixed order and absent ones are left out, so that
    /// equal journals give equal bytes.
    pub fn to_lines(&self) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            // An entry's members are texts, numbers and lists of texts: it can always be written.
            text.push_str(&serde_json::to_string(entry).unwrap_or_default());
            text.push('\n');
        }
        text
    }

    /// Reads what [`Journal::to_lines`] wrote, and counts it anew. Empty lines are left out.
    ///
    /// # Errors
    ///
    /// The first line that is no entry.
    pub fn from_lines(text: &str) -> Result<Self, BadLine> {
        let mut journal = Self::default();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let entry: JournalEntry =
                serde_json::from_str(line).map_err(|source| BadLine { line: index + 1, source })?;
            journal.counts.count(&entry);
            journal.entries.push(entry);
        }
        Ok(journal)
    }
}

impl Counts {
    /// Adds one request. Counts are of what clients ask: what actors do is left out.
    pub(super) fn count(&mut self, entry: &JournalEntry) {
        use super::entry::RequestKind::{Delete, Poll, Read, Write};
        if entry.principal.is_some() {
            return;
        }
        self.requests += 1;
        *match entry.kind {
            Read => &mut self.reads,
            Write => &mut self.writes,
            Delete => &mut self.deletes,
            Poll => &mut self.polls,
        } += 1;
        self.refused += u64::from(entry.status >= 400);
        self.throttled += u64::from(entry.status == 429);
        if let (Write, true, Some(kind)) = (entry.kind, entry.accepted(), &entry.resource_type) {
            *self.writes_by_type.entry(kind.clone()).or_default() += 1;
        }
    }
}
