//! The stored form of entries: texts that many of them share are stored once, which leaves a third of the memory.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::entry::{JournalEntry, RequestKind};

/// How many texts are shared before all are forgotten and gathered anew: types, versions and agents of any program are
/// fewer.
const MAX_SHARED: usize = 4_096;

/// Texts that many entries have.
#[derive(Default)]
pub(super) struct SharedTexts(HashSet<Arc<str>>);

impl SharedTexts {
    fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        if self.0.len() >= MAX_SHARED {
            self.0.clear();
        }
        let shared: Arc<str> = text.into();
        self.0.insert(shared.clone());
        shared
    }

    fn option(&mut self, text: Option<String>) -> Option<Arc<str>> {
        text.map(|text| self.share(&text))
    }
}

/// The resource of an entry.
enum Resource {
    None,
    /// Its id is the path.
    Path,
    Other(Box<str>),
}

/// An entry.
pub(super) struct CompactEntry {
    pub(super) sequence: u64,
    time: Timestamp,
    method: Arc<str>,
    path: Box<str>,
    api_version: Option<Arc<str>>,
    status: u16,
    code: Option<Arc<str>>,
    message: Option<Box<str>>,
    kind: RequestKind,
    resource_type: Option<Arc<str>>,
    resource: Resource,
    answer_ms: Option<u64>,
    operation_ms: Option<u64>,
    client_request_id: Option<Box<str>>,
    user_agent: Option<Arc<str>>,
    changes: Box<[Arc<str>]>,
    fault: Option<Arc<str>>,
    principal: Option<Arc<str>>,
}

impl CompactEntry {
    /// An entry, to be kept.
    pub(super) fn of(entry: JournalEntry, texts: &mut SharedTexts) -> Self {
        let resource = match entry.resource {
            None => Resource::None,
            Some(id) if id == entry.path => Resource::Path,
            Some(id) => Resource::Other(id.into()),
        };
        Self {
            sequence: entry.sequence,
            time: entry.time,
            method: texts.share(&entry.method),
            path: entry.path.into(),
            api_version: texts.option(entry.api_version),
            status: entry.status,
            code: texts.option(entry.code),
            message: entry.message.map(String::into_boxed_str),
            kind: entry.kind,
            resource_type: texts.option(entry.resource_type),
            resource,
            answer_ms: entry.answer_ms,
            operation_ms: entry.operation_ms,
            client_request_id: entry.client_request_id.map(String::into_boxed_str),
            user_agent: texts.option(entry.user_agent),
            changes: entry.changes.iter().map(|change| texts.share(change)).collect(),
            fault: texts.option(entry.fault),
            principal: texts.option(entry.principal),
        }
    }

    /// The entry again.
    pub(super) fn entry(&self) -> JournalEntry {
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        JournalEntry {
            sequence: self.sequence,
            time: self.time,
            method: self.method.to_string(),
            path: self.path.to_string(),
            api_version: text(&self.api_version),
            status: self.status,
            code: text(&self.code),
            message: self.message.as_deref().map(str::to_owned),
            kind: self.kind,
            resource_type: text(&self.resource_type),
            resource: match &self.resource {
                Resource::None => None,
                Resource::Path => Some(self.path.to_string()),
                Resource::Other(id) => Some(id.to_string()),
            },
            answer_ms: self.answer_ms,
            operation_ms: self.operation_ms,
            client_request_id: self.client_request_id.as_deref().map(str::to_owned),
            user_agent: text(&self.user_agent),
            changes: self.changes.iter().map(ToString::to_string).collect(),
            fault: text(&self.fault),
            principal: text(&self.principal),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::entry::JournalEntry;
    use super::{CompactEntry, SharedTexts};

    #[test]
    fn what_is_kept_is_what_was_written() {
        let path = "/subscriptions/s/resourceGroups/g";
        let mut texts = SharedTexts::default();
        for (resource, code) in
            [(json!(null), json!(null)), (json!(path), json!("X")), (json!("/other"), json!("X"))]
        {
            let entry: JournalEntry = serde_json::from_value(json!({
                "sequence": 7, "time": "2026-01-01T00:00:00Z", "method": "PUT", "path": path, "apiVersion": "2025-01-01",
                "status": 409, "code": code, "message": "no", "kind": "write", "resourceType": "N/t", "resource": resource,
                "answerMs": 1, "operationMs": 2, "clientRequestId": "c", "userAgent": "a", "changes": ["~tags", "+a/b"],
                "fault": "f", "principal": "p",
            }))
            .unwrap();
            assert_eq!(CompactEntry::of(entry.clone(), &mut texts).entry(), entry);
        }
        assert!(texts.0.contains("N/t") && !texts.0.contains("no"));
    }
}
