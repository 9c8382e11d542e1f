//! Shares in the file service's own words ("Operations on shares").

use azure_engine::answer::Note;
use azure_engine::answer::data_plane::DataAnswer;
use azure_engine::document::{Object, at, text};
use azure_engine::operation::execution::Execution;
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Result};
use azure_engine::request::Conditions;
use serde_json::{Value, json};

use super::answers::{changed, metadata, metrics, retention, with_metadata, written, xml, xml_behind};
use super::files;
use super::list::{around, page};
use super::service_request::{ServiceRequest, bad_header, unsupported};
use super::xml::Element;
use crate::storage::service::share_retention;
use crate::storage::share::{self, Expanded, snapshot};

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
            _ => Err(unsupported()),
        };
    }
    let of_share = request.is_about("share");
    if !request.path.is_empty() || !of_share {
        return files::operate(azure, request);
    }
    let comp = request.comp();
    let id = request.part_id();
    let existing = azure.store.get(&id).is_some();
    match (method, comp.as_str()) {
        ("PUT", "") if existing => {
            Err(Code::azures(409, "ShareAlreadyExists").says("The specified share already exists."))
        }
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
        ("GET", "acl") => Ok(xml_behind(shown(azure, request, 200)?, Element::new("SignedIdentifiers"))),
        ("GET", "stats") => {
            let used = crate::storage::contents::used_bytes(azure, &id).to_string();
            let stats = Element::new("ShareStats").text("ShareUsageBytes", &used);
            Ok(xml_behind(shown(azure, request, 200)?, stats))
        }
        ("DELETE", "") => delete(azure, request),
        _ => Err(unsupported()),
    }
}

/// Creates a share or changes it, as Resource Manager would.
fn write(azure: &mut AzureState, request: &ServiceRequest<'_>, status: u16) -> Result<DataAnswer> {
    let mut properties = Object::new();
    for (header, member, is_number) in HEADERS {
        let Some(given) = request.header(header) else { continue };
        let value = if is_number { given.parse::<i64>().ok().map(Value::from) } else { Some(given.into()) };
        properties.insert(member.into(), value.ok_or_else(bad_header)?);
    }
    let sets_metadata = status == 201 || request.option("comp").is_some_and(|comp| comp == "metadata");
    if sets_metadata && !(status == 201 && request.metadata().is_empty()) {
        properties.insert("metadata".into(), json!(request.metadata()));
    }
    let resolved = azure.resolve_id(&request.part_id())?;
    let document = json!({ "properties": properties });
    let note = azure.put(&resolved, document, &Conditions::default(), &Execution::default())?.note;
    Ok(written(shown(azure, request, status)?, status, note))
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
    Ok(with_metadata(answer, metadata(&document)))
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
    let shows_metadata = include.split(',').any(|word| word.eq_ignore_ascii_case("metadata"));
    let mut shares = Element::new("Shares");
    for (_, document) in items {
        let words = |path: &str| text(&document, path).unwrap_or_default();
        let version = text(&document, "properties/version");
        let mut one = Element::new("Share")
            .text("Name", words("name"))
            .text_if("Snapshot", text(&document, "properties/snapshotTime"))
            .text_if("Deleted", version.map(|_| "true"))
            .text_if("Version", version);
        let date = crate::storage::modified::http_date;
        let mut properties = Element::new("Properties")
            .text("Last-Modified", &date(words("properties/lastModifiedTime")))
            .text("Etag", words("etag"))
            .text_if("DeletedTime", text(&document, "properties/deletedTime").map(date).as_deref());
        for (element, member) in ELEMENTS {
            if let Some(value) = document.get("properties").and_then(|properties| properties.get(member)) {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                properties = properties.text(element, &value);
            }
        }
        one = one.with(properties);
        if shows_metadata && at(&document, "properties/metadata").is_some() {
            one = one.with(Element::metadata(metadata(&document)));
        }
        shares = shares.with(one);
    }
    xml(around(request, shares, &next))
}

fn service_properties(azure: &AzureState, request: &ServiceRequest<'_>) -> DataAnswer {
    let days = request.service.parent().and_then(|account| share_retention(azure, &account));
    xml(Element::new("StorageServiceProperties")
        .with(metrics("HourMetrics"))
        .with(metrics("MinuteMetrics"))
        .with(Element::new("Cors"))
        .with(retention("ShareDeleteRetentionPolicy", days)))
}
