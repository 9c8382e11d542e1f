//! Services under hosts of their own, beside Resource Manager: secrets of a vault, shares of an account.
//!
//! A provider has one [`DataPlane`](crate::provider::DataPlane) for each host suffix. Faults, latencies and the journal
//! treat its requests as they treat those to Resource Manager; budgets are Resource Manager's alone.

use std::collections::BTreeMap;

use azure_types::ResourceId;

use crate::answer::Note;

/// A request to a data plane.
pub struct DataRequest<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The host in lower case, without a port.
    pub host: &'a str,
    /// The resource that the host names: the part before the suffix, up to the first dot.
    pub account: &'a str,
    /// The path as sent, still percent-encoded.
    pub path: &'a str,
    /// The query as sent, without the question mark.
    pub raw_query: &'a str,
    /// Query options by lower-case name, decoded.
    pub query: &'a BTreeMap<String, String>,
    /// Headers by lower-case name.
    pub headers: &'a BTreeMap<String, String>,
    /// The body.
    pub body: &'a [u8],
    /// Whether it came over TLS.
    pub secure: bool,
    /// The caller, where it showed a valid bearer token.
    pub caller: Option<&'a DataCaller>,
}

/// The identity that a bearer token stands for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataCaller {
    /// The object id in role assignments.
    pub object_id: String,
    /// The application.
    pub client_id: String,
    /// The tenant that issued the token.
    pub tenant: String,
}

/// The subject of a request to a data plane, by which faults, latencies and the journal match it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataSubject {
    /// The full type, such as `Microsoft.KeyVault/vaults/secrets`.
    pub resource_type: String,
    /// The resource, whether or not it exists.
    pub resource: Option<ResourceId>,
    /// Whether it asks for a list.
    pub list: bool,
}

/// An answer of a data plane.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DataAnswer {
    /// The HTTP status.
    pub status: u16,
    /// Headers, except the id and the date of the request, which all answers have.
    pub headers: Vec<(String, String)>,
    /// The body, with `Content-Type` among the headers.
    pub body: Vec<u8>,
    /// What the journal records beside the answer.
    pub note: Note,
}

impl DataAnswer {
    /// A status alone.
    pub fn empty(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// A document with a status.
    pub fn json(status: u16, document: &serde_json::Value) -> Self {
        Self { body: document.to_string().into_bytes(), ..Self::empty(status) }
            .with("content-type", "application/json; charset=utf-8")
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}
