//! Containers in the blob service's own words ("Operations on containers").

use azure_engine::answer::data_plane::DataAnswer;
use azure_engine::document::{at, text};
use azure_engine::operation::execution::Execution;
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Result};
use azure_engine::request::Conditions;
use serde_json::{Value, json};

use super::answers::{changed, metadata, metrics, retention, with_metadata, written, xml, xml_behind};
use super::blobs;
use super::list::{around, page};
use super::service_request::{ServiceRequest, unsupported};
use super::xml::Element;
use crate::storage::container::{self, public_access};
use crate::storage::modified::http_date;

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
            _ => Err(unsupported()),
        };
    }
    let id = request.part_id();
    let existing = azure.store.get(&id).is_some();
    let of_container = request.is_about("container");
    let comp = request.comp();
    if of_container && request.path.is_empty() && method == "PUT" && comp.is_empty() {
        return match existing {
            true => {
                Err(Code::azures(409, "ContainerAlreadyExists")
                    .says("The specified container already exists."))
            }
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
        ("GET", "acl") => Ok(xml_behind(shown(azure, request, 200), Element::new("SignedIdentifiers"))),
        ("PUT", "metadata" | "acl") => write(azure, request, 200),
        ("DELETE", "") => {
            let resolved = azure.resolve_id(&id)?;
            let answer = azure.delete(&resolved, &Conditions::default(), &Execution::default())?;
            Ok(DataAnswer { note: answer.note, ..DataAnswer::empty(202) })
        }
        _ => Err(unsupported()),
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
    let note = azure.put(&resolved, document, &Conditions::default(), &Execution::default())?.note;
    Ok(written(shown(azure, request, status), status, note))
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
    with_metadata(answer, metadata(&document))
}

fn list(azure: &AzureState, request: &ServiceRequest<'_>) -> DataAnswer {
    let records = azure.store.of_type_below(container::RESOURCE_TYPE, &request.service);
    let (records, next) = page(request, records, |record| record.id.name());
    let include = request.option("include").unwrap_or_default();
    let shows_metadata = include.split(',').any(|word| word.eq_ignore_ascii_case("metadata"));
    let mut all = Element::new("Containers");
    for record in records {
        let document = azure.present(record, Default::default());
        let words = |path: &str| text(&document, path).unwrap_or_default();
        let mut properties = Element::new("Properties")
            .text("Last-Modified", &http_date(words("properties/lastModifiedTime")))
            .text("Etag", words("etag"))
            .text("LeaseStatus", "unlocked")
            .text("LeaseState", "available")
            .text("HasImmutabilityPolicy", "false")
            .text("HasLegalHold", "false");
        let access = public_access(&document).to_ascii_lowercase();
        if access != "none" {
            properties = properties.text("PublicAccess", &access);
        }
        let mut one = Element::new("Container").text("Name", record.id.name()).with(properties);
        if shows_metadata && at(&document, "properties/metadata").is_some() {
            one = one.with(Element::metadata(metadata(&document)));
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
    let settings = azure.document(&request.service).unwrap_or_default();
    let days = at(&settings, "properties/deleteRetentionPolicy/days").and_then(Value::as_i64);
    let logging = Element::new("Logging")
        .text("Version", "1.0")
        .text("Read", "false")
        .text("Write", "false")
        .text("Delete", "false")
        .with(Element::new("RetentionPolicy").text("Enabled", "false"));
    let site = Element::new("StaticWebsite").text("Enabled", "false");
    xml(Element::new("StorageServiceProperties")
        .with(logging)
        .with(metrics("HourMetrics"))
        .with(metrics("MinuteMetrics"))
        .with(Element::new("Cors"))
        .with(retention("DeleteRetentionPolicy", days))
        .with(site))
}
