//! A parsed request to one of the services.

use std::collections::BTreeMap;

use azure_engine::answer::data_plane::DataRequest;
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Refusal};
use azure_types::ResourceId;

use crate::storage::contents::{self, Entry};
use crate::storage::service::{BLOB_SERVICES, FILE_SERVICES};
use crate::storage::sparse::Bytes;

/// One of the services.
pub(super) struct DataService {
    /// Its segment below an account.
    pub(super) segment: &'static str,
    /// Its letter in tokens of accounts.
    pub(super) letter: char,
    pub(super) word: &'static str,
    /// What it is divided into, as a segment below the service.
    pub(super) parts: &'static str,
}

pub(super) static FILE: DataService =
    DataService { segment: FILE_SERVICES, letter: 'f', word: "file", parts: "shares" };

pub(super) static BLOB: DataService =
    DataService { segment: BLOB_SERVICES, letter: 'b', word: "blob", parts: "containers" };

/// Headers that are set under one name and read under another.
pub(super) type Headers = [(&'static str, &'static str)];

/// A parsed request.
pub(super) struct ServiceRequest<'a> {
    pub(super) http: &'a DataRequest<'a>,
    pub(super) data_service: &'static DataService,
    /// The service's settings: `…/fileServices/default`.
    pub(super) service: ResourceId,
    /// The share or container; empty for the service as a whole.
    pub(super) part: String,
    /// The path below it, decoded; empty for the share or container itself.
    pub(super) path: String,
}

impl ServiceRequest<'_> {
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.http.query.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.http.headers.get(name).map(String::as_str)
    }

    /// Whether query options are these: `restype` and `comp`.
    pub(super) fn is(&self, restype: &str, comp: &str) -> bool {
        self.option("restype").unwrap_or_default().eq_ignore_ascii_case(restype)
            && self.option("comp").unwrap_or_default().eq_ignore_ascii_case(comp)
    }

    /// The query option `comp`, in lower case: the part of the resource that is meant.
    pub(super) fn comp(&self) -> String {
        self.option("comp").unwrap_or_default().to_ascii_lowercase()
    }

    /// Whether the query option `restype` is this word.
    pub(super) fn is_about(&self, restype: &str) -> bool {
        self.option("restype").is_some_and(|kind| kind.eq_ignore_ascii_case(restype))
    }

    /// What a file or blob with these bytes is; `headers` are set under one name and read under another.
    pub(super) fn entry(&self, azure: &mut AzureState, bytes: Option<Bytes>, headers: &Headers) -> Entry {
        Entry {
            bytes,
            headers: self.headers(headers),
            metadata: self.metadata(),
            etag: contents::next_etag(azure),
            modified: azure.now(),
        }
    }

    /// The headers that a request sets, as they are read.
    pub(super) fn headers(&self, headers: &Headers) -> BTreeMap<String, String> {
        let given = headers.iter();
        given.filter_map(|(from, to)| Some(((*to).to_owned(), self.header(from)?.to_owned()))).collect()
    }

    /// The id of the share or container.
    pub(super) fn part_id(&self) -> ResourceId {
        self.service.child(self.data_service.parts, &self.part)
    }

    /// Headers that begin with `x-ms-meta-`, without that.
    pub(super) fn metadata(&self) -> BTreeMap<String, String> {
        let headers = self.http.headers.iter();
        headers
            .filter_map(|(name, value)| Some((name.strip_prefix("x-ms-meta-")?.to_owned(), value.clone())))
            .collect()
    }
}

/// The refusal of a header's value.
pub(super) fn bad_header() -> Refusal {
    Code::azures(400, "InvalidHeaderValue")
        .says("The value for one of the HTTP headers is not in the correct format.")
}

/// The refusal of an operation that is not simulated.
pub(super) fn unsupported() -> Refusal {
    Code::azures(405, "UnsupportedHttpVerb").says("The resource doesn't support specified Http Verb.")
}

/// Share or container, and the path below it, of a request's path.
pub(super) fn split(path: &str) -> Option<(String, String)> {
    let decode = |text: &str| {
        let plus = text.replace('+', "%2B");
        let pair = format!("p={plus}");
        url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned())
    };
    let rest = path.trim_start_matches('/');
    let (part, below) = rest.split_once('/').unwrap_or((rest, ""));
    Some((decode(part)?, decode(below.trim_end_matches('/'))?))
}

/// The account's name: the secondary endpoint belongs to the same account.
pub(super) fn account_name(host_name: &str) -> &str {
    host_name.strip_suffix("-secondary").unwrap_or(host_name)
}

/// The challenge for a client without a valid token.
pub(super) fn challenge(authority: &str) -> String {
    format!("Bearer authorization_uri={authority}/oauth2/authorize resource_id=https://storage.azure.com")
}
