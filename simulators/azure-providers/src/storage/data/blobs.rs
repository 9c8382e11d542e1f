//! Blobs ("Operations on blobs"): block blobs, uploaded whole or put together from blocks, and page blobs, made of zeros
//! and written page by page.

use std::collections::BTreeMap;

use azure_engine::answer::data_plane::DataAnswer;
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Refusal, Result};

use super::answers::{changed, with_metadata, xml};
use super::list::{around, page};
use super::range;
use super::service_request::{ServiceRequest, bad_header, unsupported};
use super::source;
use super::xml::{Element, texts};
use crate::storage::contents::{self, Entries, Entry};
use crate::storage::modified::http_date;
use crate::storage::sparse::Bytes;

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

/// The header with the kind of a blob. Block blobs do not keep it.
const KIND: &str = "x-ms-blob-type";
const BLOCK_BLOB: &str = "BlockBlob";
const PAGE_BLOB: &str = "PageBlob";
/// Page blobs consist of pages of so many bytes.
const PAGE_BYTES: u64 = 512;
/// The largest page blob: eight TiB.
const MAX_PAGE_BLOB_BYTES: u64 = 8 * 1024 * 1024 * 1024 * 1024;

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
        ("PUT", "") if is_of_pages(request) => put_pages(azure, request),
        ("PUT", "") => {
            Code::ours(400, "BlobTypeNotSupported").says_when(
                request.header("x-ms-blob-type").is_some_and(|kind| !kind.eq_ignore_ascii_case("BlockBlob")),
                "Only block blobs and page blobs are simulated.",
            )?;
            let bytes = sent(azure, request)?;
            let answer = put(azure, request, bytes)?;
            // `Copy Blob` is over at once; `Put Blob From URL` names the kind of the new blob.
            if request.header("x-ms-copy-source").is_none() || request.header(KIND).is_some() {
                return Ok(answer);
            }
            let id = azure.seed.guid("copy", &request.path, azure.requests);
            let answer = DataAnswer { status: 202, ..answer };
            Ok(answer.with("x-ms-copy-id", id).with("x-ms-copy-status", "success"))
        }
        ("PUT", "block") => {
            let name = block_name(&request.path, request.option("blockid").unwrap_or_default());
            let bytes = sent(azure, request)?;
            store(azure, request, name, bytes);
            Ok(DataAnswer::empty(201).with("x-ms-request-server-encrypted", "true"))
        }
        ("PUT", "page") => write_pages(azure, request),
        ("GET", "pagelist") => pages(azure, request),
        ("PUT", "blocklist") => put_blocks(azure, request),
        ("PUT", "metadata" | "properties") => {
            let old = entry(azure, request).cloned().ok_or_else(not_found)?;
            let mut bytes = old.bytes.unwrap_or_default();
            if let (Some(length), true) = (length_of_pages(request)?, comp == "properties") {
                bytes.resize(length);
            }
            let answer = put(azure, request, bytes)?;
            keep_kind(azure, request, old.headers.get(KIND));
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
    bytes: Bytes,
) -> (String, String) {
    let entry = request.entry(azure, Some(bytes), &BLOB_HEADERS);
    let written = (entry.etag.clone(), entry.modified.to_string());
    if let Some(entries) = contents::entries_mut(azure, &request.part_id()) {
        entries.insert(name, entry);
    }
    written
}

fn put(azure: &mut AzureState, request: &ServiceRequest<'_>, bytes: Bytes) -> Result<DataAnswer> {
    let (etag, modified) = store(azure, request, request.path.clone(), bytes);
    Ok(changed(DataAnswer::empty(201), &etag, &modified).with("x-ms-request-server-encrypted", "true"))
}

/// The bytes of a request, or of its source.
fn sent(azure: &AzureState, request: &ServiceRequest<'_>) -> Result<Bytes> {
    if request.header("x-ms-copy-source").is_none() {
        return Ok(Bytes::of(request.http.body));
    }
    let bytes = source::bytes(azure, request)?;
    match range::source_range(request) {
        Some(part) => Ok(Bytes::of(&range::part(&bytes, part)?)),
        None => Ok(bytes),
    }
}

fn is_of_pages(request: &ServiceRequest<'_>) -> bool {
    request.header(KIND).is_some_and(|kind| kind.eq_ignore_ascii_case(PAGE_BLOB))
}

/// The size that a request gives a page blob: whole pages.
fn length_of_pages(request: &ServiceRequest<'_>) -> Result<Option<u64>> {
    let Some(given) = request.header("x-ms-blob-content-length") else { return Ok(None) };
    let fits = |length: &u64| length.is_multiple_of(PAGE_BYTES) && *length <= MAX_PAGE_BLOB_BYTES;
    given.parse().ok().filter(fits).map(Some).ok_or_else(bad_header)
}

/// Makes a page blob of zeros.
fn put_pages(azure: &mut AzureState, request: &ServiceRequest<'_>) -> Result<DataAnswer> {
    let length = length_of_pages(request)?.ok_or_else(bad_header)?;
    let answer = put(azure, request, Bytes::zeros(length))?;
    keep_kind(azure, request, Some(&PAGE_BLOB.to_owned()));
    Ok(answer)
}

/// Notes which kind of blob one is, if it is no block blob.
fn keep_kind(azure: &mut AzureState, request: &ServiceRequest<'_>, kind: Option<&String>) {
    let entries = contents::entries_mut(azure, &request.part_id());
    if let (Some(kind), Some(entry)) = (kind, entries.and_then(|entries| entries.get_mut(&request.path))) {
        entry.headers.insert(KIND.into(), kind.clone());
    }
}

fn check_pages(entry: &Entry) -> Result<()> {
    Code::azures(409, "InvalidBlobType").says_when(
        entry.headers.get(KIND).is_none_or(|kind| kind != PAGE_BLOB),
        "The blob type is invalid for this operation.",
    )
}

/// `Put Page`: the sent pages, those of a source, or zeros.
fn write_pages(azure: &mut AzureState, request: &ServiceRequest<'_>) -> Result<DataAnswer> {
    let etag = contents::next_etag(azure);
    let modified = azure.now();
    let change = range::Change::of(azure, request, "x-ms-page-write")?;
    Code::azures(416, "InvalidPageRange")
        .says_when(!change.is_of_pages(PAGE_BYTES), "The page range specified is invalid.")?;
    let entry = contents::entries_mut(azure, &request.part_id())
        .and_then(|entries| entries.get_mut(&request.path))
        .ok_or_else(not_found)?;
    check_pages(entry)?;
    change.apply(entry.bytes.get_or_insert_default())?;
    (entry.etag, entry.modified) = (etag, modified);
    let answer = changed(DataAnswer::empty(201), &entry.etag, &modified.to_string());
    Ok(answer.with("x-ms-blob-sequence-number", "0").with("x-ms-request-server-encrypted", "true"))
}

/// The pages that were written.
fn pages(azure: &AzureState, request: &ServiceRequest<'_>) -> Result<DataAnswer> {
    let entry = entry(azure, request).ok_or_else(not_found)?;
    check_pages(entry)?;
    let none = Bytes::default();
    let bytes = entry.bytes.as_ref().unwrap_or(&none);
    let list = bytes.ranges().into_iter().fold(Element::new("PageList"), |list, (first, last)| {
        list.with(Element::new("PageRange").text("Start", &first.to_string()).text("End", &last.to_string()))
    });
    Ok(changed(xml(list), &entry.etag, &entry.modified.to_string())
        .with("x-ms-blob-content-length", bytes.len().to_string()))
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
    let mut whole = Bytes::default();
    for block in blocks {
        whole.append(block);
    }
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
        "GET" if request.option("comp").is_none() => range::read(request, bytes)?,
        _ => DataAnswer::empty(200).with("content-length", bytes.len().to_string()),
    };
    let time = entry.modified.to_string();
    let mut answer = changed(answer, &entry.etag, &time)
        .with("content-type", "application/octet-stream")
        .with("x-ms-creation-time", http_date(&time))
        .with("x-ms-lease-status", "unlocked")
        .with("x-ms-lease-state", "available")
        .with("x-ms-server-encrypted", "true")
        .with("accept-ranges", "bytes");
    if !entry.headers.contains_key(KIND) {
        answer = answer.with(KIND, BLOCK_BLOB);
    }
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
        let length = entry.bytes.as_ref().map_or(0, Bytes::len);
        let kind = entry.headers.get("content-type").map_or("application/octet-stream", String::as_str);
        let modified = http_date(&entry.modified.to_string());
        let properties = Element::new("Properties")
            .text("Creation-Time", &modified)
            .text("Last-Modified", &modified)
            .text("Etag", entry.etag.trim_matches('"'))
            .text("Content-Length", &length.to_string())
            .text("Content-Type", kind)
            .text("BlobType", entry.headers.get(KIND).map_or(BLOCK_BLOB, String::as_str))
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
