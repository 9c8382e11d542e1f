//! One request in the journal.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The kind of a request, for counting.
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
    /// Full resource type, such as `Microsoft.Network/loadBalancers`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resource_type: Option<String>,
    /// Id of the resource, in canonical spelling; absent for lists and unknown types.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resource: Option<String>,
    /// Milliseconds until the answer; absent for an immediate one.
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
    /// The principal, where it was no client: `actor:{name}`.
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
