//! What a service answers under hosts of its own, beside Resource Manager: secrets of a vault, shares of an account.
//!
//! A provider has one [`DataPlane`] for each host suffix. Faults, latencies and the journal treat its requests as they
//! treat those to Resource Manager; budgets are Resource Manager's alone.

use std::collections::BTreeMap;

use azure_types::ResourceId;

use super::answer::Note;
use super::error::Refusal;
use super::provider::AzureState;

/// The service behind all hosts with one suffix.
pub struct DataPlane {
    /// What hosts end with, without the dot before it: `vault.azure.net`. What stands before it names the resource.
    pub suffix: &'static str,
    /// The resources that tokens must be for, such as `https://vault.azure.net`; a closing slash makes no difference.
    pub audiences: &'static [&'static str],
    /// The value of `WWW-Authenticate` for requests without a good token. The authority is that of the tenant, such as
    /// `https://login.microsoftonline.com/{tenant}`.
    pub challenge: fn(authority: &str) -> String,
    /// Whether requests without a bearer token are let through: the service checks their signature by itself.
    pub own_authentication: bool,
    /// How much a request may carry.
    pub max_body_bytes: u64,
    /// What a request is about.
    pub locate: fn(&AzureState, &DataRequest<'_>) -> DataSubject,
    /// Does what a request asks for.
    pub perform: fn(&mut AzureState, &DataRequest<'_>) -> Result<DataAnswer, Refusal>,
    /// A refusal in the form of the service.
    pub refuse: fn(&AzureState, &DataRequest<'_>, &Refusal) -> DataAnswer,
}

/// A request to a data plane.
pub struct DataRequest<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The host in lower case, without a port.
    pub host: &'a str,
    /// The resource that the host names: what stands before the suffix, up to the first dot.
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
    /// Who showed a good bearer token.
    pub caller: Option<&'a DataCaller>,
}

/// Whom a bearer token stands for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataCaller {
    /// What role assignments name.
    pub object_id: String,
    /// The application.
    pub client_id: String,
    /// The tenant that issued the token.
    pub tenant: String,
}

/// What a request to a data plane is about: what faults, latencies and the journal go by.
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
    /// Headers, beside the id and the date of the request, which all answers have.
    pub headers: Vec<(String, String)>,
    /// The body, with `Content-Type` among the headers.
    pub body: Vec<u8>,
    /// What the journal is told.
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

impl DataPlane {
    /// The resource that a host names, where it is one of this plane's: `{account}.{suffix}`, or
    /// `{account}.privatelink.{suffix}`.
    pub fn account_of<'a>(&self, host: &'a str) -> Option<&'a str> {
        let name = host.strip_suffix(self.suffix)?.strip_suffix('.')?;
        let name = name.strip_suffix(".privatelink").unwrap_or(name);
        (!name.is_empty() && !name.contains('.')).then_some(name)
    }

    /// Whether a token for this resource is accepted.
    pub fn accepts(&self, audience: &str) -> bool {
        let bare = audience.trim_end_matches('/');
        self.audiences.iter().any(|known| known.trim_end_matches('/').eq_ignore_ascii_case(bare))
    }
}

impl AzureState {
    /// The data planes of all providers.
    pub fn data_planes(&self) -> impl Iterator<Item = &'static DataPlane> {
        self.providers.iter().flat_map(|provider| provider.data_planes)
    }
}
