//! Answers of the engine, before they become HTTP.

pub mod data_plane;
pub mod paging;

use serde_json::Value;

use crate::operation::{Completion, OperationStyle};
use crate::types::protocol::UrlForm;

/// The URLs of a long-running operation that an answer must carry.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationLinks {
    /// Its key.
    pub key: String,
    /// The form of its URLs.
    pub urls: UrlForm,
    /// The path segment of its URL, such as `operations`.
    pub segment: &'static str,
    /// The namespace of its provider.
    pub namespace: String,
    /// The resource group that its URL may name.
    pub group: Option<String>,
    /// The region that its URL names.
    pub location: String,
    /// Whether `Location` is sent beside `Azure-AsyncOperation`.
    pub result_url: bool,
    /// Seconds for `Retry-After`; none for operations that are over at once.
    pub retry_after: Option<u64>,
}

/// A successful answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The document.
    pub body: Option<Value>,
    /// In place of a body: the documents of a list.
    pub list: Option<Listed>,
    /// The `ETag` header.
    pub etag: Option<String>,
    /// The running operation.
    pub operation: Option<OperationLinks>,
    /// `Location` of the created resource: its path.
    pub location: Option<String>,
    /// `Location` of an unfinished final answer: the polled URL itself.
    pub poll_again: Option<u64>,
    /// How the operation that was polled is followed.
    pub operation_style: OperationStyle,
    /// Token of the next page.
    pub next_page: Option<String>,
    /// What the journal records beside the answer.
    pub note: Note,
}

/// The documents of a list as JSON, comma-separated. Each is written as soon as it is made: a thousand
/// documents side by side would leave the processor's caches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listed(Vec<u8>);

impl Listed {
    fn push(&mut self, document: &Value) {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
        // Writing a `Value` into memory cannot fail: its keys are texts.
        let _ = serde_json::to_writer(&mut self.0, document);
    }

    /// The documents again, one by one.
    pub fn documents(&self) -> Vec<Value> {
        let list = [b"[".as_slice(), &self.0, b"]"].concat();
        // What was written here can be read.
        serde_json::from_slice(&list).unwrap_or_default()
    }

    /// The whole answer, with the URL of the next page where there is one.
    pub fn into_body(self, next_link: Option<&str>) -> Vec<u8> {
        let link = next_link.map(|link| format!("\"nextLink\":{},", Value::from(link))).unwrap_or_default();
        let mut body = Vec::with_capacity(self.0.len() + link.len() + 16);
        for part in [b"{".as_slice(), link.as_bytes(), b"\"value\":[", &self.0, b"]}"] {
            body.extend_from_slice(part);
        }
        body
    }
}

/// What the journal records of a request beside its answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Note {
    /// The members that changed, in words.
    pub changes: Vec<String>,
    /// How long the operation takes; `None` for one that never ends.
    pub operation_ms: Option<u64>,
}

impl Answer {
    /// A document, with status 200.
    pub fn ok(body: Value) -> Self {
        Self { status: 200, body: Some(body), ..Self::default() }
    }

    /// A list of documents, with status 200.
    pub fn list(documents: impl IntoIterator<Item = Value>) -> Self {
        let mut list = Listed::default();
        documents.into_iter().for_each(|document| list.push(&document));
        Self { status: 200, list: Some(list), ..Self::default() }
    }

    /// A status alone.
    pub fn empty(status: u16) -> Self {
        Self { status, ..Self::default() }
    }
}

/// The result of starting a POST action.
pub struct Action {
    /// Passed back to [`after_operation`](crate::provider::Writing::after_operation) when the operation is over.
    pub completion: Completion,
    /// The immediate answer; without one the action is a long-running operation.
    pub answer: Option<Answer>,
}

impl Action {
    /// A long-running operation.
    pub fn begun(completion: Completion) -> Self {
        Self { completion, answer: None }
    }

    /// An action that is over, with this answer.
    pub fn answered(answer: Answer) -> Self {
        Self { completion: Completion::Report(Value::Null), answer: Some(answer) }
    }
}
