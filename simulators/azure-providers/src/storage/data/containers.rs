//! Containers in the blob service's own words ("Operations on containers").

use azure_engine::answer::data_plane::DataAnswer;
use azure_engine::document::{at, text};
use azure_engine::operation::execution::Execution;
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Result};
use azure_engine::request::Conditions;
use serde_json::{Value, json};

use super::answers::{changed, xml};
use super::blobs;
use super::list::{around, page};
use super::service_request::{ServiceRequest, unsupported};
use super::xml::Element;
use crate::storage::container::{self, public_access};
use crate::storage::modified::http_date;
use crate::storage::protocol::said;

const EXISTS: Code = Code::azures(409, "ContainerAlreadyExists");

/// A request to the blob service.
pub(super) fn operate(azure: &mut AzureState, request: &ServiceRequest<'_>) -> Result<DataAnswer> {
    let method = request.http.method;
    if request.is("account", "properties") {
        return Ok(account(azure, request));
    }
    if request.part.is_empty() {
        return match method {
            "GET" if request.is("", "list") => Ok(list(azure, request)),
            "GET" if request.is("service", "properties") => Ok(service_properties(azure, request)),
            "PUT" if request.is("service", "properties") => Ok(DataAnswer::empty(202)),
            _ => Err(unsupported(azure)),
        };
    }
    let id = request.part_id();
    let existing = azure.store.get(&id).is_some();
    let of_container = request.option("restype").is_some_and(|kind| kind.eq_ignore_ascii_case("container"));
    let comp = request.option("comp").unwrap_or_default().to_ascii_lowercase();
    if of_container && request.path.is_empty() && method == "PUT" && comp.is_empty() {
        return match existing {
            true => Err(EXISTS.says(said(azure, "The specified container already exists."))),
            false => write(azure, request, 201),
        };
    }
    if !existing {
        return Err(container::absent(azure));
    }
    if !request.path.is_empty() || !of_container {
        return blobs::operate(azure, request);
    }
    match (method, comp.as_str()) {
        ("GET", "list") => Ok(blobs::list(azure, request)),
        ("GET" | "HEAD", "" | "metadata") => Ok(shown(azure, request, 200)),
        ("GET", "acl") => {
            let (answer, body) = (shown(azure, request, 200), xml(Element::new("SignedIdentifiers")));
            Ok(DataAnswer { headers: [answer.headers, body.headers].concat(), ..body })
        }
        ("PUT", "metadata" | "acl") => write(azure, request, 200),
        ("DELETE", "") => {
            let resolved = azure.resolve_id(&id)?;
            let answer = azure.delete(&resolved, &Conditions::default(), &Execution::default())?;
            Ok(DataAnswer { note: answer.note, ..DataAnswer::empty(202) })
        }
        _ => Err(unsupported(azure)),
    }
}

/// Creates a container or changes it, as Resource Manager would.
fn write(azure: &mut AzureState, request: &ServiceRequest<'_>, status: u16) -> Result<DataAnswer> {
    let id = request.part_id();
    let old = azure.store.get(&id).and_then(|record| record.body.get("properties").cloned());
    let mut properties = old.unwrap_or_else(|| json!({}));
    let sets_access = status == 201 || request.option("comp").is_some_and(|comp| comp == "acl");
    if sets_access {
        let access = request.header("x-ms-blob-public-access").unwrap_or("None");
        properties["publicAccess"] = access.into();
    }
    if !sets_access || (status == 201 && !request.metadata().is_empty()) {
        properties["metadata"] = json!(request.metadata());
    }
    let resolved = azure.resolve_id(&id)?;
    let document = json!({ "properties": properties });
    let written = azure.put(&resolved, document, &Conditions::default(), &Execution::default())?;
    let headers = shown(azure, request, status).headers.into_iter();
    let headers = headers.filter(|(name, _)| matches!(name.as_str(), "etag" | "last-modified")).collect();
    Ok(DataAnswer { headers, note: written.note, ..DataAnswer::empty(status) })
}

fn shown(azure: &AzureState, request: &ServiceRequest<'_>, status: u16) -> DataAnswer {
    let document = azure.document(&request.part_id()).unwrap_or_default();
    let words = |path: &str| text(&document, path).unwrap_or_default();
    let mut answer = changed(DataAnswer::empty(status), words("etag"), words("properties/lastModifiedTime"))
        .with("x-ms-lease-status", "unlocked")
        .with("x-ms-lease-state", "available")
        .with("x-ms-has-immutability-policy", "false")
        .with("x-ms-has-legal-hold", "false");
    let access = public_access(&document).to_ascii_lowercase();
    if access != "none" {
        answer = answer.with("x-ms-blob-public-access", access);
    }
    let metadata = at(&document, "properties/metadata").and_then(Value::as_object);
    for (name, value) in metadata.into_iter().flatten() {
        answer = answer.with(&format!("x-ms-meta-{name}"), value.as_str().unwrap_or_default());
    }
    answer
}

fn list(azure: &AzureState, request: &ServiceRequest<'_>) -> DataAnswer {
    let records = azure.store.of_type_below(container::RESOURCE_TYPE, &request.service);
    let (records, next) = page(request, records, |record| record.id.name());
    let include = request.option("include").unwrap_or_default();
    let with_metadata = include.split(',').any(|word| word.eq_ignore_ascii_case("metadata"));
    let mut all = Element::new("Containers");
    for record in records {
        let document = azure.present(record, Default::default());
        let words = |path: &str| text(&document, path).unwrap_or_default();
        let mut properties = Element::new("Properties")
            .with(Element::text("Last-Modified", &http_date(words("properties/lastModifiedTime"))))
            .with(Element::text("Etag", words("etag")))
            .with(Element::text("LeaseStatus", "unlocked"))
            .with(Element::text("LeaseState", "available"))
            .with(Element::text("HasImmutabilityPolicy", "false"))
            .with(Element::text("HasLegalHold", "false"));
        let access = public_access(&document).to_ascii_lowercase();
        if access != "none" {
            properties = properties.with(Element::text("PublicAccess", &access));
        }
        let mut one =
            Element::new("Container").with(Element::text("Name", record.id.name())).with(properties);
        if let (true, Some(Value::Object(metadata))) = (with_metadata, at(&document, "properties/metadata")) {
            let pairs =
                metadata.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()));
            one = one.with(Element::metadata(pairs));
        }
        all = all.with(one);
    }
    xml(around(request, all, &next))
}

/// `restype=account&comp=properties`
fn account(azure: &AzureState, request: &ServiceRequest<'_>) -> DataAnswer {
    let account = request.service.parent().and_then(|account| azure.store.get(&account));
    let words =
        |path: &str| account.and_then(|account| text(&account.body, path)).unwrap_or_default().to_owned();
    DataAnswer::empty(200).with("x-ms-sku-name", words("sku/name")).with("x-ms-account-kind", words("kind"))
}

fn service_properties(azure: &AzureState, request: &ServiceRequest<'_>) -> DataAnswer {
    let off = |name| {
        Element::new(name)
            .with(Element::text("Version", "1.0"))
            .with(Element::text("Enabled", "false"))
            .with(Element::new("RetentionPolicy").with(Element::text("Enabled", "false")))
    };
    let settings = azure.document(&request.service).unwrap_or_default();
    let days = at(&settings, "properties/deleteRetentionPolicy/days").and_then(Value::as_i64);
    let mut retention = Element::new("DeleteRetentionPolicy")
        .with(Element::text("Enabled", if days.is_some() { "true" } else { "false" }));
    if let Some(days) = days {
        retention = retention.with(Element::text("Days", &days.to_string()));
    }
    let logging = Element::new("Logging")
        .with(Element::text("Version", "1.0"))
        .with(Element::text("Read", "false"))
        .with(Element::text("Write", "false"))
        .with(Element::text("Delete", "false"))
        .with(Element::new("RetentionPolicy").with(Element::text("Enabled", "false")));
    let site = Element::new("StaticWebsite").with(Element::text("Enabled", "false"));
    xml(Element::new("StorageServiceProperties")
        .with(logging)
        .with(off("HourMetrics"))
        .with(off("MinuteMetrics"))
        .with(Element::new("Cors"))
        .with(retention)
        .with(site))
}
