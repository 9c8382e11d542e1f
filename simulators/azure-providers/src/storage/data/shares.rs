//! Shares in the file service's own words ("Operations on shares").

use azure_engine::answer::Note;
use azure_engine::answer::data_plane::DataAnswer;
use azure_engine::document::{Object, at, text};
use azure_engine::operation::execution::Execution;
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Result};
use azure_engine::request::Conditions;
use serde_json::{Value, json};

use super::answers::{changed, xml};
use super::files;
use super::list::{around, page};
use super::service_request::{ServiceRequest, unsupported};
use super::xml::Element;
use crate::storage::protocol::said;
use crate::storage::service::share_retention;
use crate::storage::share::{self, Expanded, snapshot};

const EXISTS: Code = Code::azures(409, "ShareAlreadyExists");
const BAD_HEADER: Code = Code::azures(400, "InvalidHeaderValue");

/// Headers that set a share's members, and whether they hold numbers.
const HEADERS: [(&str, &str, bool); 6] = [
    ("x-ms-share-quota", "shareQuota", true),
    ("x-ms-access-tier", "accessTier", false),
    ("x-ms-enabled-protocols", "enabledProtocols", false),
    ("x-ms-root-squash", "rootSquash", false),
    ("x-ms-share-provisioned-iops", "provisionedIops", true),
    ("x-ms-share-provisioned-bandwidth-mibps", "provisionedBandwidthMibps", true),
];

/// A request to the file service.
pub(super) fn operate(azure: &mut AzureState, request: &ServiceRequest<'_>) -> Result<DataAnswer> {
    let method = request.http.method;
    if request.part.is_empty() {
        return match method {
            "GET" if request.is("", "list") => Ok(list(azure, request)),
            "GET" if request.is("service", "properties") => Ok(service_properties(azure, request)),
            "PUT" if request.is("service", "properties") => Ok(DataAnswer::empty(202)),
            _ => Err(unsupported(azure)),
        };
    }
    let of_share = request.option("restype").is_some_and(|kind| kind.eq_ignore_ascii_case("share"));
    if !request.path.is_empty() || !of_share {
        return files::operate(azure, request);
    }
    let comp = request.option("comp").unwrap_or_default().to_ascii_lowercase();
    let id = request.part_id();
    let existing = azure.store.get(&id).is_some();
    match (method, comp.as_str()) {
        ("PUT", "") if existing => Err(EXISTS.says(said(azure, "The specified share already exists."))),
        ("PUT", "") => write(azure, request, 201),
        ("PUT", "undelete") => undelete(azure, request),
        _ if !existing => Err(share::absent(azure)),
        ("PUT", "properties" | "metadata") => write(azure, request, 200),
        ("PUT", "acl") => shown(azure, request, 200),
        ("PUT", "snapshot") => {
            let body = json!({ "properties": { "metadata": request.metadata() } });
            let body = if request.metadata().is_empty() { json!({}) } else { body };
            let (document, etag) = snapshot::create(azure, &id, &body)?;
            let time = text(&document, "properties/snapshotTime").unwrap_or_default().to_owned();
            Ok(changed(DataAnswer::empty(201), &etag, &time).with("x-ms-snapshot", time))
        }
        ("GET" | "HEAD", "" | "metadata") => shown(azure, request, 200),
        ("GET", "acl") => {
            let answer = shown(azure, request, 200)?;
            let body = xml(Element::new("SignedIdentifiers"));
            Ok(DataAnswer { headers: [answer.headers, body.headers].concat(), ..body })
        }
        ("GET", "stats") => {
            let used = crate::storage::contents::used_bytes(azure, &id);
            let stats = Element::new("ShareStats").with(Element::text("ShareUsageBytes", &used.to_string()));
            let answer = shown(azure, request, 200)?;
            let body = xml(stats);
            Ok(DataAnswer { headers: [answer.headers, body.headers].concat(), ..body })
        }
        ("DELETE", "") => delete(azure, request),
        _ => Err(unsupported(azure)),
    }
}

/// Creates a share or changes it, as Resource Manager would.
fn write(azure: &mut AzureState, request: &ServiceRequest<'_>, status: u16) -> Result<DataAnswer> {
    let mut properties = Object::new();
    for (header, member, is_number) in HEADERS {
        let Some(given) = request.header(header) else { continue };
        let value = match is_number {
            true => given.parse::<i64>().ok().map(Value::from),
            false => Some(given.into()),
        };
        let bad = "The value for one of the HTTP headers is not in the correct format.";
        properties.insert(member.into(), value.ok_or_else(|| BAD_HEADER.says(said(azure, bad)))?);
    }
    let sets_metadata = status == 201 || request.option("comp").is_some_and(|comp| comp == "metadata");
    if sets_metadata && !(status == 201 && request.metadata().is_empty()) {
        properties.insert("metadata".into(), json!(request.metadata()));
    }
    let resolved = azure.resolve_id(&request.part_id())?;
    let document = json!({ "properties": properties });
    let written = azure.put(&resolved, document, &Conditions::default(), &Execution::default())?;
    let answer = shown(azure, request, status)?;
    // The answer to a creation has only etag and time.
    let headers = answer.headers.into_iter();
    let headers = headers.filter(|(name, _)| matches!(name.as_str(), "etag" | "last-modified")).collect();
    Ok(DataAnswer { headers, note: written.note, ..DataAnswer::empty(status) })
}

/// The document that a request refers to: the share, or a snapshot of it.
fn document(azure: &AzureState, request: &ServiceRequest<'_>) -> Result<Value> {
    let id = request.part_id();
    match request.option("sharesnapshot") {
        Some(time) => snapshot::read(azure, &id, time),
        None => azure.document(&id).ok_or_else(|| share::absent(azure)),
    }
}

/// A share's members as headers.
fn shown(azure: &AzureState, request: &ServiceRequest<'_>, status: u16) -> Result<DataAnswer> {
    let document = document(azure, request)?;
    let member = |name: &str| at(&document, "properties").and_then(|properties| properties.get(name));
    let words = |name: &str| member(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut answer = changed(
        DataAnswer::empty(status),
        text(&document, "etag").unwrap_or_default(),
        &words("lastModifiedTime"),
    );
    for (header, name, _) in HEADERS {
        if let Some(value) = member(name) {
            answer = answer.with(header, value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
    }
    answer =
        answer.with("x-ms-lease-status", words("leaseStatus")).with("x-ms-lease-state", words("leaseState"));
    let metadata = member("metadata").and_then(Value::as_object);
    for (name, value) in metadata.into_iter().flatten() {
        answer = answer.with(&format!("x-ms-meta-{name}"), value.as_str().unwrap_or_default());
    }
    Ok(answer)
}

fn delete(azure: &mut AzureState, request: &ServiceRequest<'_>) -> Result<DataAnswer> {
    let id = request.part_id();
    if let Some(time) = request.option("sharesnapshot") {
        snapshot::delete(azure, &id, time)?;
        return Ok(DataAnswer::empty(202));
    }
    let answer = share::delete(azure, &id, request.header("x-ms-delete-snapshots").is_some())?;
    Ok(DataAnswer { note: answer.note, ..DataAnswer::empty(202) })
}

fn undelete(azure: &mut AzureState, request: &ServiceRequest<'_>) -> Result<DataAnswer> {
    let name = request.header("x-ms-deleted-share-name").unwrap_or_default();
    let version = request.header("x-ms-deleted-share-version").unwrap_or_default();
    let body = json!({ "deletedShareName": name, "deletedShareVersion": version });
    share::restore(azure, &request.part_id(), &body)?;
    let note = Note { changes: vec!["restore".into()], ..Note::default() };
    Ok(DataAnswer { note, ..shown(azure, request, 201)? })
}

/// Members of lists: their element and the share's member.
const ELEMENTS: [(&str, &str); 9] = [
    ("Quota", "shareQuota"),
    ("AccessTier", "accessTier"),
    ("LeaseStatus", "leaseStatus"),
    ("LeaseState", "leaseState"),
    ("EnabledProtocols", "enabledProtocols"),
    ("RootSquash", "rootSquash"),
    ("ProvisionedIops", "provisionedIops"),
    ("ProvisionedBandwidthMiBps", "provisionedBandwidthMibps"),
    ("RemainingRetentionDays", "remainingRetentionDays"),
];

fn list(azure: &AzureState, request: &ServiceRequest<'_>) -> DataAnswer {
    let include = request.option("include").unwrap_or_default();
    let all = share::all(azure, &request.service, Expanded::parse(include));
    let (items, next) = page(request, all, |item| &item.0);
    let with_metadata = include.split(',').any(|word| word.eq_ignore_ascii_case("metadata"));
    let mut shares = Element::new("Shares");
    for (_, document) in items {
        let words = |path: &str| text(&document, path).unwrap_or_default();
        let mut one = Element::new("Share").with(Element::text("Name", words("name")));
        if let Some(time) = text(&document, "properties/snapshotTime") {
            one = one.with(Element::text("Snapshot", time));
        }
        if let Some(version) = text(&document, "properties/version") {
            one = one.with(Element::text("Deleted", "true")).with(Element::text("Version", version));
        }
        let date = crate::storage::modified::http_date;
        let mut properties = Element::new("Properties")
            .with(Element::text("Last-Modified", &date(words("properties/lastModifiedTime"))))
            .with(Element::text("Etag", words("etag")));
        if let Some(time) = text(&document, "properties/deletedTime") {
            properties = properties.with(Element::text("DeletedTime", &date(time)));
        }
        for (element, member) in ELEMENTS {
            if let Some(value) = document.get("properties").and_then(|properties| properties.get(member)) {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                properties = properties.with(Element::text(element, &value));
            }
        }
        one = one.with(properties);
        if let (true, Some(Value::Object(metadata))) = (with_metadata, at(&document, "properties/metadata")) {
            let pairs =
                metadata.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()));
            one = one.with(Element::metadata(pairs));
        }
        shares = shares.with(one);
    }
    xml(around(request, shares, &next))
}

fn service_properties(azure: &AzureState, request: &ServiceRequest<'_>) -> DataAnswer {
    let metrics = |name| {
        Element::new(name)
            .with(Element::text("Version", "1.0"))
            .with(Element::text("Enabled", "false"))
            .with(Element::new("RetentionPolicy").with(Element::text("Enabled", "false")))
    };
    let days = request.service.parent().and_then(|account| share_retention(azure, &account));
    let mut retention = Element::new("ShareDeleteRetentionPolicy")
        .with(Element::text("Enabled", if days.is_some() { "true" } else { "false" }));
    if let Some(days) = days {
        retention = retention.with(Element::text("Days", &days.to_string()));
    }
    let root = Element::new("StorageServiceProperties")
        .with(metrics("HourMetrics"))
        .with(metrics("MinuteMetrics"))
        .with(Element::new("Cors"))
        .with(retention);
    xml(root)
}
