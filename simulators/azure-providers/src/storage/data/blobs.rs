//! Block blobs: uploaded whole or put together from blocks ("Operations on blobs").

use std::collections::BTreeMap;
use std::sync::Arc;

use azure_engine::answer::data_plane::DataAnswer;
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Refusal, Result};

use super::answers::{changed, with_metadata, xml};
use super::list::{around, page};
use super::range;
use super::service_request::{ServiceRequest, unsupported};
use super::xml::{Element, texts};
use crate::storage::contents::{self, Bytes, Entries, Entry};
use crate::storage::modified::http_date;

const MISMATCH: Code = Code::azures(412, "ConditionNotMet");

/// Headers of a blob that are set under one name and read under another.
const BLOB_HEADERS: [(&str, &str); 6] = [
    ("x-ms-blob-content-type", "content-type"),
    ("x-ms-blob-content-encoding", "content-encoding"),
    ("x-ms-blob-content-language", "content-language"),
    ("x-ms-blob-cache-control", "cache-control"),
    ("x-ms-blob-content-disposition", "content-disposition"),
    ("x-ms-blob-content-md5", "content-md5"),
];

/// The names of uncommitted blocks, which no blob can have.
fn block_name(blob: &str, block: &str) -> String {
    format!("\0{blob}\0{block}")
}

fn not_found() -> Refusal {
    Code::azures(404, "BlobNotFound").says("The specified blob does not exist.")
}

fn entry<'a>(azure: &'a AzureState, request: &ServiceRequest<'_>) -> Option<&'a Entry> {
    contents::entries(azure, &request.part_id(), None)?.get(&request.path)
}

/// A request about a blob.
pub(super) fn operate(azure: &mut AzureState, request: &ServiceRequest<'_>) -> Result<DataAnswer> {
    let comp = request.comp();
    check_conditions(azure, request)?;
    match (request.http.method, comp.as_str()) {
        ("PUT", "") => {
            Code::ours(400, "BlobTypeNotSupported").says_when(
                request.header("x-ms-blob-type").is_some_and(|kind| !kind.eq_ignore_ascii_case("BlockBlob")),
                "Only block blobs are simulated.",
            )?;
            put(azure, request, request.http.body.to_vec())
        }
        ("PUT", "block") => {
            let name = block_name(&request.path, request.option("blockid").unwrap_or_default());
            store(azure, request, name, request.http.body.to_vec());
            Ok(DataAnswer::empty(201).with("x-ms-request-server-encrypted", "true"))
        }
        ("PUT", "blocklist") => put_blocks(azure, request),
        ("PUT", "metadata" | "properties") => {
            let old = entry(azure, request).and_then(|entry| entry.bytes.clone()).ok_or_else(not_found)?;
            let answer = put(azure, request, old.0.to_vec())?;
            Ok(DataAnswer { status: 200, ..answer })
        }
        ("GET" | "HEAD", "" | "metadata") => {
            let Some(entry) = entry(azure, request) else { return Err(not_found()) };
            show(request, entry)
        }
        ("DELETE", "") => {
            let id = request.part_id();
            let gone = contents::entries_mut(azure, &id).and_then(|entries| entries.remove(&request.path));
            match gone {
                Some(_) => Ok(DataAnswer::empty(202).with("x-ms-delete-type-permanent", "true")),
                None => Err(not_found()),
            }
        }
        _ => Err(unsupported()),
    }
}

/// `If-Match` and `If-None-Match`.
fn check_conditions(azure: &AzureState, request: &ServiceRequest<'_>) -> Result<()> {
    let current = entry(azure, request).map(|entry| entry.etag.as_str());
    let fits = |wanted: &str| match wanted {
        "*" => current.is_some(),
        etag => current.map(|known| known.trim_matches('"')) == Some(etag.trim_matches('"')),
    };
    let words = "The condition specified using HTTP conditional header(s) is not met.";
    MISMATCH.says_when(request.header("if-match").is_some_and(|wanted| !fits(wanted)), words)?;
    match request.header("if-none-match").filter(|wanted| fits(wanted)) {
        Some("*") if request.http.method == "PUT" => {
            Err(Code::azures(409, "BlobAlreadyExists").says("The specified blob already exists."))
        }
        Some(_) => Err(MISMATCH.says(words)),
        None => Ok(()),
    }
}

/// Stores bytes under a name; gives etag and time.
fn store(
    azure: &mut AzureState,
    request: &ServiceRequest<'_>,
    name: String,
    bytes: Vec<u8>,
) -> (String, String) {
    let entry = request.entry(azure, Some(Bytes(Arc::new(bytes))), &BLOB_HEADERS);
    let written = (entry.etag.clone(), entry.modified.to_string());
    if let Some(entries) = contents::entries_mut(azure, &request.part_id()) {
        entries.insert(name, entry);
    }
    written
}

fn put(azure: &mut AzureState, request: &ServiceRequest<'_>, bytes: Vec<u8>) -> Result<DataAnswer> {
    let (etag, modified) = store(azure, request, request.path.clone(), bytes);
    Ok(changed(DataAnswer::empty(201), &etag, &modified).with("x-ms-request-server-encrypted", "true"))
}

/// Commits a blob from blocks.
fn put_blocks(azure: &mut AzureState, request: &ServiceRequest<'_>) -> Result<DataAnswer> {
    let list = String::from_utf8_lossy(request.http.body).into_owned();
    let mut names = Vec::new();
    for kind in ["Latest", "Uncommitted"] {
        names.extend(texts(&list, kind));
    }
    let id = request.part_id();
    let none = Entries::new();
    let entries = contents::entries(azure, &id, None).unwrap_or(&none);
    let blocks: Option<Vec<&Bytes>> =
        names.iter().map(|name| entries.get(&block_name(&request.path, name))?.bytes.as_ref()).collect();
    let blocks = blocks
        .ok_or_else(|| Code::azures(400, "InvalidBlockList").says("The specified block list is invalid."))?;
    let whole: Vec<u8> = blocks.iter().flat_map(|block| block.0.iter().copied()).collect();
    if let Some(entries) = contents::entries_mut(azure, &id) {
        let left = block_name(&request.path, "");
        entries.retain(|name, _| !name.starts_with(&left));
    }
    put(azure, request, whole)
}

fn show(request: &ServiceRequest<'_>, entry: &Entry) -> Result<DataAnswer> {
    let none = Bytes::default();
    let bytes = entry.bytes.as_ref().unwrap_or(&none);
    let answer = match request.http.method {
        "GET" if request.option("comp").is_none() => range::read(request, &bytes.0)?,
        _ => DataAnswer::empty(200).with("content-length", bytes.0.len().to_string()),
    };
    let time = entry.modified.to_string();
    let mut answer = changed(answer, &entry.etag, &time)
        .with("content-type", "application/octet-stream")
        .with("x-ms-blob-type", "BlockBlob")
        .with("x-ms-creation-time", http_date(&time))
        .with("x-ms-lease-status", "unlocked")
        .with("x-ms-lease-state", "available")
        .with("x-ms-server-encrypted", "true")
        .with("accept-ranges", "bytes");
    for (name, value) in &entry.headers {
        answer = answer.with(name, value.as_str());
    }
    let metadata = entry.metadata.iter().map(|(name, value)| (name, value.as_str()));
    Ok(with_metadata(answer, metadata))
}

/// Lists the blobs of a container; with a delimiter, grouped by prefix.
pub(super) fn list(azure: &AzureState, request: &ServiceRequest<'_>) -> DataAnswer {
    let none = Entries::new();
    let entries = contents::entries(azure, &request.part_id(), None).unwrap_or(&none);
    let prefix = request.option("prefix").unwrap_or_default();
    let delimiter = request.option("delimiter");
    let mut items: BTreeMap<String, Option<&Entry>> = BTreeMap::new();
    for (name, entry) in
        entries.iter().filter(|(name, _)| !name.starts_with('\0') && name.starts_with(prefix))
    {
        let rest = name.get(prefix.len()..).unwrap_or_default();
        let folder = delimiter
            .and_then(|delimiter| rest.find(delimiter).and_then(|at| rest.get(..at + delimiter.len())));
        match folder {
            Some(folder) => items.insert(format!("{prefix}{folder}"), None),
            None => items.insert(name.clone(), Some(entry)),
        };
    }
    let (items, next) = page(request, items.into_iter().collect(), |item| &item.0);
    let mut blobs = Element::new("Blobs");
    for (name, entry) in items {
        let Some(entry) = entry else {
            blobs = blobs.with(Element::new("BlobPrefix").text("Name", &name));
            continue;
        };
        let length = entry.bytes.as_ref().map_or(0, |bytes| bytes.0.len());
        let kind = entry.headers.get("content-type").map_or("application/octet-stream", String::as_str);
        let modified = http_date(&entry.modified.to_string());
        let properties = Element::new("Properties")
            .text("Creation-Time", &modified)
            .text("Last-Modified", &modified)
            .text("Etag", entry.etag.trim_matches('"'))
            .text("Content-Length", &length.to_string())
            .text("Content-Type", kind)
            .text("BlobType", "BlockBlob")
            .text("AccessTier", "Hot")
            .text("LeaseStatus", "unlocked")
            .text("LeaseState", "available")
            .text("ServerEncrypted", "true");
        let metadata = entry.metadata.iter().map(|(name, value)| (name, value.as_str()));
        let blob = Element::new("Blob").text("Name", &name).with(properties);
        blobs = blobs.with(blob.with(Element::metadata(metadata)));
    }
    xml(around(request, blobs, &next))
}
