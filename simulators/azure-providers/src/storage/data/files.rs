//! Directories and files of a share ("Operations on directories", "Operations on files"). Names keep their case and are
//! compared without it.

use azure_engine::answer::data_plane::DataAnswer;
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Refusal, Result};
use jiff::Timestamp;

use super::answers::{changed, with_metadata, xml};
use super::list::{around, page};
use super::range;
use super::service_request::{ServiceRequest, bad_header, unsupported};
use super::source;
use super::xml::Element;
use crate::storage::contents::{self, Entries, Entry, find};
use crate::storage::folders;
use crate::storage::share;
use crate::storage::sparse::Bytes;

const OTHER_TYPE: Code = Code::azures(409, "ResourceTypeMismatch");

/// The largest file, in bytes: four TiB.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024 * 1024 * 1024;

/// Headers of a file that are set under one name and read under another.
const FILE_HEADERS: [(&str, &str); 5] = [
    ("x-ms-content-type", "content-type"),
    ("x-ms-content-encoding", "content-encoding"),
    ("x-ms-content-language", "content-language"),
    ("x-ms-cache-control", "cache-control"),
    ("x-ms-content-md5", "content-md5"),
];

fn not_found() -> Refusal {
    Code::azures(404, "ResourceNotFound").says("The specified resource does not exist.")
}

/// A request about the contents of a share, which machines may have mounted.
pub(super) fn operate(azure: &mut AzureState, request: &ServiceRequest<'_>) -> Result<DataAnswer> {
    let id = request.part_id();
    folders::take_in(azure, &id);
    let answer = answer(azure, request);
    match folders::put_out(azure, &id) {
        Ok(()) => answer,
        Err(error) => {
            let words = format!("The folder of the share cannot be written: {error}.");
            Err(Code::ours(500, "ShareFolder").says(words))
        }
    }
}

fn answer(azure: &mut AzureState, request: &ServiceRequest<'_>) -> Result<DataAnswer> {
    let id = request.part_id();
    let Some(record) = azure.store.get(&id) else { return Err(share::absent(azure)) };
    let snapshot = match request.option("sharesnapshot") {
        None => None,
        Some(time) => {
            share::snapshot::read(azure, &id, time)?;
            share::snapshot::times(record).into_iter().find(|known| known == time)
        }
    };
    let directory = request.is_about("directory");
    let comp = request.comp();
    let reads = matches!(request.http.method, "GET" | "HEAD");
    Code::azures(400, "InvalidQueryParameterValue").says_when(
        snapshot.is_some() && !reads,
        "Value for one of the query parameters specified in the request URI is invalid.",
    )?;
    let entries = contents::entries(azure, &id, snapshot.as_deref());
    if reads {
        let none = Entries::new();
        let entries = entries.unwrap_or(&none);
        if directory && comp == "list" {
            return list(request, entries);
        }
        let found = find(entries, &request.path);
        return match (found, comp.as_str()) {
            // The root is always there.
            (None, "") if directory && request.path.is_empty() => Ok(DataAnswer::empty(200)),
            (Some((_, entry)), "" | "metadata") if directory == entry.bytes.is_none() => show(request, entry),
            (Some((_, entry)), "rangelist") => Ok(ranges(entry)),
            (Some(_), "") => Err(OTHER_TYPE.says(OTHER_TYPE_WORDS)),
            (None, _) => Err(not_found()),
            _ => Err(unsupported()),
        };
    }
    match (request.http.method, comp.as_str(), directory) {
        ("PUT", "", true) => put(azure, request, None),
        ("PUT", "", false) if request.header("x-ms-copy-source").is_some() => copy(azure, request),
        ("PUT", "", false) => {
            let length = request.header("x-ms-content-length").and_then(|length| length.parse::<u64>().ok());
            match length.filter(|length| *length <= MAX_FILE_BYTES) {
                Some(length) => put(azure, request, Some(Bytes::zeros(length))),
                None => Err(bad_header()),
            }
        }
        ("PUT", "range", false) => write_range(azure, request),
        ("PUT", "properties" | "metadata", _) => set(azure, request, comp == "properties"),
        ("DELETE", "", _) => delete(azure, request, directory),
        _ => Err(unsupported()),
    }
}

const OTHER_TYPE_WORDS: &str =
    "The specified resource may be in use by an SMB client, or is of another type.";

fn find_mut<'a>(entries: &'a mut Entries, path: &str) -> Option<&'a mut Entry> {
    let known = find(entries, path)?.0.clone();
    entries.get_mut(&known)
}

/// Headers that all answers about a file or directory have.
fn described(answer: DataAnswer, entry: &Entry) -> DataAnswer {
    let time = entry.modified.to_string();
    let attributes = if entry.bytes.is_some() { "Archive" } else { "Directory" };
    changed(answer, &entry.etag, &time)
        .with("x-ms-file-attributes", attributes)
        .with("x-ms-file-creation-time", time.as_str())
        .with("x-ms-file-last-write-time", time.as_str())
        .with("x-ms-file-change-time", time.as_str())
        .with("x-ms-server-encrypted", "true")
}

fn show(request: &ServiceRequest<'_>, entry: &Entry) -> Result<DataAnswer> {
    let mut answer = match (&entry.bytes, request.http.method) {
        (Some(bytes), "GET") if request.option("comp").is_none() => range::read(request, bytes)?,
        (Some(bytes), _) => DataAnswer::empty(200).with("content-length", bytes.len().to_string()),
        (None, _) => DataAnswer::empty(200),
    };
    if entry.bytes.is_some() {
        answer = answer
            .with("x-ms-type", "File")
            .with("accept-ranges", "bytes")
            .with("content-type", "application/octet-stream");
    }
    answer = described(answer, entry);
    for (name, value) in &entry.headers {
        answer = answer.with(name, value.as_str());
    }
    let metadata = entry.metadata.iter().map(|(name, value)| (name, value.as_str()));
    Ok(with_metadata(answer, metadata))
}

/// Makes a directory, or a file with these bytes.
fn put(azure: &mut AzureState, request: &ServiceRequest<'_>, bytes: Option<Bytes>) -> Result<DataAnswer> {
    let id = request.part_id();
    let new = request.entry(azure, bytes, &FILE_HEADERS);
    let none = Entries::new();
    let entries = contents::entries(azure, &id, None).unwrap_or(&none);
    if let Some((parent, _)) = request.path.rsplit_once('/')
        && find(entries, parent).is_none_or(|(_, entry)| entry.bytes.is_some())
    {
        return Err(Code::azures(404, "ParentNotFound").says("The specified parent path does not exist."));
    }
    match find(entries, &request.path).map(|(_, entry)| entry.bytes.is_some()) {
        _ if request.path.is_empty() => return Err(exists()),
        // A file replaces another one.
        Some(true) if new.bytes.is_some() => {}
        Some(is_file) if is_file != new.bytes.is_some() => {
            return Err(OTHER_TYPE.says(OTHER_TYPE_WORDS));
        }
        Some(_) => return Err(exists()),
        None => {}
    }
    let answer = described(DataAnswer::empty(201), &new).with("x-ms-request-server-encrypted", "true");
    if let Some(entries) = contents::entries_mut(azure, &id) {
        let known = find(entries, &request.path).map(|(known, _)| known.clone());
        entries.insert(known.unwrap_or_else(|| request.path.clone()), new);
    }
    Ok(answer)
}

fn exists() -> Refusal {
    Code::azures(409, "ResourceAlreadyExists").says("The specified resource already exists.")
}

/// `Put Range`: the sent bytes, those of a source, or zeros.
fn write_range(azure: &mut AzureState, request: &ServiceRequest<'_>) -> Result<DataAnswer> {
    let id = request.part_id();
    let etag = contents::next_etag(azure);
    let modified = azure.now();
    let change = range::Change::of(azure, request, "x-ms-write")?;
    let entry = contents::entries_mut(azure, &id)
        .and_then(|entries| find_mut(entries, &request.path))
        .ok_or_else(not_found)?;
    let Some(bytes) = &mut entry.bytes else { return Err(OTHER_TYPE.says(OTHER_TYPE_WORDS)) };
    change.apply(bytes)?;
    (entry.etag, entry.modified) = (etag, modified);
    let answer = changed(DataAnswer::empty(201), &entry.etag, &modified.to_string());
    Ok(answer.with("x-ms-request-server-encrypted", "true"))
}

/// Sets headers and size, or metadata.
fn set(azure: &mut AzureState, request: &ServiceRequest<'_>, properties: bool) -> Result<DataAnswer> {
    let id = request.part_id();
    let etag = contents::next_etag(azure);
    let modified = azure.now();
    let (headers, metadata) = (request.headers(&FILE_HEADERS), request.metadata());
    let length = request.header("x-ms-content-length").and_then(|length| length.parse::<u64>().ok());
    if length.is_some_and(|length| length > MAX_FILE_BYTES) {
        return Err(bad_header());
    }
    let entry = contents::entries_mut(azure, &id)
        .and_then(|entries| find_mut(entries, &request.path))
        .ok_or_else(not_found)?;
    if properties {
        entry.headers = headers;
        if let (Some(length), Some(bytes)) = (length, &mut entry.bytes) {
            bytes.resize(length);
        }
    } else {
        entry.metadata = metadata;
    }
    (entry.etag, entry.modified) = (etag, modified);
    Ok(described(DataAnswer::empty(200), entry))
}

fn delete(azure: &mut AzureState, request: &ServiceRequest<'_>, directory: bool) -> Result<DataAnswer> {
    let id = request.part_id();
    let none = Entries::new();
    let entries = contents::entries(azure, &id, None).unwrap_or(&none);
    let Some((known, entry)) = find(entries, &request.path) else { return Err(not_found()) };
    OTHER_TYPE.says_when(directory == entry.bytes.is_some(), OTHER_TYPE_WORDS)?;
    let (known, below) = (known.clone(), format!("{}/", known.to_ascii_lowercase()));
    Code::azures(409, "DirectoryNotEmpty").says_when(
        entries.keys().any(|other| other.to_ascii_lowercase().starts_with(&below)),
        "The specified directory is not empty.",
    )?;
    if let Some(entries) = contents::entries_mut(azure, &id) {
        entries.remove(&known);
    }
    Ok(DataAnswer::empty(202))
}

/// `Copy File` from another file of this Azure, at once.
fn copy(azure: &mut AzureState, request: &ServiceRequest<'_>) -> Result<DataAnswer> {
    let bytes = source::bytes(azure, request)?;
    let answer = put(azure, request, Some(bytes))?;
    let id = azure.seed.guid("copy", &request.path, azure.requests);
    Ok(DataAnswer { status: 202, ..answer }.with("x-ms-copy-id", id).with("x-ms-copy-status", "success"))
}

/// The ranges of a file that were written.
fn ranges(entry: &Entry) -> DataAnswer {
    let none = Bytes::default();
    let bytes = entry.bytes.as_ref().unwrap_or(&none);
    let list = bytes.ranges().into_iter().fold(Element::new("Ranges"), |list, (first, last)| {
        list.with(Element::new("Range").text("Start", &first.to_string()).text("End", &last.to_string()))
    });
    changed(xml(list), &entry.etag, &entry.modified.to_string())
        .with("x-ms-content-length", bytes.len().to_string())
}

fn list(request: &ServiceRequest<'_>, entries: &Entries) -> Result<DataAnswer> {
    let is_directory = |entry: &Entry| entry.bytes.is_none();
    if !request.path.is_empty() && !find(entries, &request.path).is_some_and(|(_, entry)| is_directory(entry))
    {
        return Err(not_found());
    }
    let below = match request.path.is_empty() {
        true => String::new(),
        false => format!("{}/", request.path.to_ascii_lowercase()),
    };
    let children: Vec<(&str, &Entry)> = entries
        .iter()
        .filter_map(|(path, entry)| {
            let name = path.get(below.len()..).filter(|name| !name.is_empty() && !name.contains('/'))?;
            path.to_ascii_lowercase().starts_with(&below).then_some((name, entry))
        })
        .collect();
    let (children, next) = page(request, children, |child| child.0);
    let mut shown = Element::new("Entries");
    for (name, entry) in children {
        let time = |time: Timestamp| crate::storage::modified::http_date(&time.to_string());
        let mut properties = Element::new("Properties");
        if let Some(bytes) = &entry.bytes {
            properties = properties.text("Content-Length", &bytes.len().to_string());
        }
        properties = properties.text("Last-Modified", &time(entry.modified)).text("Etag", &entry.etag);
        let kind = if is_directory(entry) { "Directory" } else { "File" };
        shown = shown.with(Element::new(kind).text("Name", name).with(properties));
    }
    let root = around(request, shown, &next).attribute("DirectoryPath", &request.path);
    Ok(xml(root))
}
