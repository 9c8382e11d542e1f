//! Sources of copies: files and blobs of this Azure, by their URL ("Copy File", "Put Range From URL", "Put Page From URL").

use std::collections::BTreeMap;

use azure_engine::answer::data_plane::DataRequest;
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Result};

use super::access;
use super::service_request::{BLOB, FILE, ServiceRequest, account_name, split};
use crate::storage::account;
use crate::storage::contents;
use crate::storage::sparse::Bytes;

const ABSENT: Code = Code::azures(404, "CannotVerifyCopySource");
const CLOSED: Code = Code::azures(403, "CannotVerifyCopySource");

/// The bytes behind the URL in a request's `x-ms-copy-source`. Sources in another account need a token in the URL, or
/// public access.
pub(super) fn bytes(azure: &AzureState, request: &ServiceRequest<'_>) -> Result<Bytes> {
    let absent = || ABSENT.says("The specified resource does not exist.");
    let source = request.header("x-ms-copy-source").and_then(|source| url::Url::parse(source).ok());
    let source = source.ok_or_else(absent)?;
    let host = source.host_str().unwrap_or_default().to_ascii_lowercase();
    let (name, suffix) = host.split_once('.').ok_or_else(absent)?;
    let word = suffix.split('.').find(|word| *word != "privatelink").unwrap_or_default();
    let data_service = [&FILE, &BLOB].into_iter().find(|service| service.word == word).ok_or_else(absent)?;
    let record = account::find(azure, account_name(name)).ok_or_else(absent)?;
    let (part, path) = split(source.path()).ok_or_else(absent)?;
    let query: BTreeMap<String, String> =
        source.query_pairs().map(|(name, value)| (name.to_ascii_lowercase(), value.into_owned())).collect();
    let read = DataRequest {
        method: "GET",
        host: &host,
        account: name,
        path: source.path(),
        raw_query: source.query().unwrap_or_default(),
        query: &query,
        headers: &BTreeMap::new(),
        body: &[],
        secure: source.scheme() == "https",
        caller: None,
    };
    let service = record.id.child(data_service.segment, "default");
    let read = ServiceRequest { http: &read, data_service, service, part, path };
    // A request that may write to an account may read from it.
    if account_name(request.http.account) != account_name(name) || read.option("sig").is_some() {
        access::check(azure, record, &read).map_err(|refusal| CLOSED.says(refusal.message))?;
    }
    let entries =
        contents::entries(azure, &read.part_id(), read.option("sharesnapshot")).ok_or_else(absent)?;
    let found = match data_service.word {
        "file" => contents::find(entries, &read.path).map(|found| found.1),
        _ => entries.get(&read.path),
    };
    found.and_then(|entry| entry.bytes.clone()).ok_or_else(absent)
}
