//! The requests, and what is kept of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::document::{members, name, text};

/// What a request wanted, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RequestKind {
    /// GET or HEAD of a resource or list.
    Read,
    /// PUT, PATCH or POST.
    Write,
    /// DELETE.
    Delete,
    /// GET of a long-running operation.
    Poll,
}

/// One request in the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JournalEntry {
    /// Number of the request, from 1.
    pub sequence: u64,
    /// Simulated wall-clock time of its arrival.
    pub time: Timestamp,
    /// HTTP method.
    pub method: String,
    /// Path as sent, without the query.
    pub path: String,
    /// The `api-version`, as sent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub api_version: Option<String>,
    /// HTTP status of the answer; 0 for a request that a fault lost before anything was done.
    pub status: u16,
    /// Azure's error code, for refusals.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<String>,
    /// Azure's error text, for refusals.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<String>,
    /// What kind of request it was.
    pub kind: RequestKind,
    /// Full resource type asked for, such as `Microsoft.Network/loadBalancers`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resource_type: Option<String>,
    /// Id of the resource asked for, in canonical spelling; absent for lists and unknown types.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resource: Option<String>,
    /// Milliseconds that Azure let the caller wait for the answer; absent where it answered at once.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub answer_ms: Option<u64>,
    /// Milliseconds that the long-running operation started by it takes, from the answer on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub operation_ms: Option<u64>,
    /// The caller's `x-ms-client-request-id`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client_request_id: Option<String>,
    /// The caller's `User-Agent`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub user_agent: Option<String>,
    /// What the write changed, as `+collection/name`, `-collection/name`, `~member`; empty for a write
    /// that changed nothing.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub changes: Vec<String>,
    /// Name of the declared fault that shaped the answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fault: Option<String>,
    /// Who asked, where it was no client: `actor:{name}`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub principal: Option<String>,
}

impl JournalEntry {
    /// Whether the request was answered with success.
    pub fn accepted(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether the request changed nothing although it was an accepted write.
    pub fn is_needless_write(&self) -> bool {
        self.kind == RequestKind::Write && self.accepted() && self.changes.is_empty()
    }
}

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
    /// Looks at long-running operations.
    pub polls: u64,
    /// Answers with a status of 400 or more.
    pub refused: u64,
    /// Answers with status 429.
    pub throttled: u64,
    /// Accepted writes by resource type (without DELETE).
    pub writes_by_type: BTreeMap<String, u64>,
}

/// What was asked so far: a copy, taken at one moment.
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

    /// The entries after a sequence number, with the counts of the whole.
    pub fn since(&self, sequence: u64) -> Vec<&JournalEntry> {
        self.entries.iter().filter(|entry| entry.sequence > sequence).collect()
    }
}

/// The journal being written.
#[derive(Default)]
pub struct JournalBook {
    entries: VecDeque<JournalEntry>,
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
        self.entries.insert(at, entry);
    }

    /// What was asked after the request with that number.
    pub fn after(&self, sequence: u64) -> Journal {
        let from = self.entries.partition_point(|entry| entry.sequence <= sequence);
        Journal { entries: self.entries.range(from..).cloned().collect(), counts: self.counts.clone() }
    }

    /// The last requests, at most that many.
    pub fn last(&self, count: usize) -> Journal {
        let from = self.entries.len().saturating_sub(count);
        Journal { entries: self.entries.range(from..).cloned().collect(), counts: self.counts.clone() }
    }

    /// Takes up what was saved.
    pub fn restore(&mut self, journal: Journal) {
        self.entries = journal.entries.into();
        self.counts = journal.counts;
    }

    /// Forgets everything but the numbering.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.counts = Counts::default();
    }
}

/// Most changes named in one entry: a first write of a load balancer would otherwise fill a page by itself.
const MAX_NAMED_CHANGES: usize = 40;

/// Names the members in which two documents differ. `None` stands for an absent document.
pub fn differences(before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    match (before, after) {
        (None, Some(after)) => {
            found.push("+".to_owned());
            for (member, value) in after.get("properties").into_iter().flat_map(members) {
                for item in value.as_array().into_iter().flatten().filter(|item| item.get("name").is_some()) {
                    found.push(format!("+{member}/{}", name(item)));
                }
            }
        }
        (Some(_), None) => found.push("-".to_owned()),
        (Some(before), Some(after)) => compare(before, after, "", &mut found),
        (None, None) => {}
    }
    if found.len() > MAX_NAMED_CHANGES {
        let more = found.len() - MAX_NAMED_CHANGES;
        found.truncate(MAX_NAMED_CHANGES);
        found.push(format!("and {more} more"));
    }
    found
}

fn compare(before: &Value, after: &Value, path: &str, found: &mut Vec<String>) {
    if before == after {
        return;
    }
    let join = |member: &str| {
        if path.is_empty() || path == "properties" { member.to_owned() } else { format!("{path}/{member}") }
    };
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for member in names {
                match (old.get(member), new.get(member)) {
                    (Some(old), Some(new)) => compare(old, new, &join(member), found),
                    (None, Some(_)) => found.push(format!("+{}", join(member))),
                    (_, None) => found.push(format!("-{}", join(member))),
                }
            }
        }
        (Value::Array(old), Value::Array(new))
            if old.iter().chain(new).all(|item| text(item, "name").is_some()) =>
        {
            for item in new {
                match old.iter().find(|other| name(other).eq_ignore_ascii_case(name(item))) {
                    None => found.push(format!("+{}", join(name(item)))),
                    Some(other) if other != item => found.push(format!("~{}", join(name(item)))),
                    Some(_) => {}
                }
            }
            for item in old {
                if !new.iter().any(|other| name(other).eq_ignore_ascii_case(name(item))) {
                    found.push(format!("-{}", join(name(item))));
                }
            }
        }
        _ => found.push(format!("~{path}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::differences;

    #[test]
    fn differences_name_members_but_not_their_values() {
        let before = json!({"tags": {"a": "1"}, "properties": {"rules": [{"name": "x", "p": 1}, {"name": "y"}], "n": 1}});
        let after = json!({"tags": {"a": "2"}, "properties": {"rules": [{"name": "X", "p": 2}, {"name": "z"}], "n": 1}});
        assert_eq!(differences(Some(&before), Some(&after)), ["~rules/X", "+rules/z", "-rules/y", "~tags/a"]);
        assert_eq!(differences(None, Some(&after)), ["+", "+rules/X", "+rules/z"]);
        assert!(differences(Some(&after), Some(&after)).is_empty());
    }
}
