//! The common part of all answers of the services.

use azure_engine::answer::Note;
use azure_engine::answer::data_plane::{DataAnswer, DataRequest};
use azure_engine::document::at;
use azure_engine::provider::AzureState;
use azure_engine::refusal::Refusal;
use serde_json::Value;

use super::service_request::ServiceRequest;
use super::xml::{Element, document};
use crate::storage::protocol::dated;

/// The newest version that answers name; a request that names a version is answered in it.
const VERSION: &str = "2025-01-05";

fn versioned(request: &DataRequest<'_>, answer: DataAnswer) -> DataAnswer {
    let version = request.headers.get("x-ms-version").map_or(VERSION, String::as_str);
    let answer = answer.with("x-ms-version", version);
    match request.headers.get("x-ms-client-request-id") {
        Some(id) => answer.with("x-ms-client-request-id", id.as_str()),
        None => answer,
    }
}

/// Adds the common headers.
pub(super) fn complete(request: &ServiceRequest<'_>, answer: DataAnswer) -> DataAnswer {
    versioned(request.http, answer)
}

/// A refusal: its code in a header, all of it in the body.
pub(super) fn refused(azure: &AzureState, request: &DataRequest<'_>, refusal: &Refusal) -> DataAnswer {
    let refusal = dated(azure, refusal.clone());
    let error = Element::new("Error").text("Code", &refusal.code).text("Message", &refusal.message);
    let answer = DataAnswer { status: refusal.status, body: document(error), ..DataAnswer::default() };
    let answer =
        answer.with("content-type", "application/xml").with("x-ms-error-code", refusal.code.as_str());
    versioned(request, answer)
}

/// A list or other document, in XML.
pub(super) fn xml(root: Element) -> DataAnswer {
    DataAnswer { status: 200, body: document(root), ..DataAnswer::default() }
        .with("content-type", "application/xml")
}

/// Etag and time of the last change as headers.
pub(super) fn changed(answer: DataAnswer, etag: &str, modified: &str) -> DataAnswer {
    answer.with("etag", etag).with("last-modified", crate::storage::modified::http_date(modified))
}

/// A document behind the headers of another answer.
pub(super) fn xml_behind(answer: DataAnswer, root: Element) -> DataAnswer {
    let body = xml(root);
    DataAnswer { headers: [answer.headers, body.headers].concat(), ..body }
}

/// What the answer to a creation or change has of an answer that shows the resource: etag and time alone.
pub(super) fn written(shown: DataAnswer, status: u16, note: Note) -> DataAnswer {
    let mut headers = shown.headers;
    headers.retain(|(name, _)| matches!(name.as_str(), "etag" | "last-modified"));
    DataAnswer { headers, note, ..DataAnswer::empty(status) }
}

/// Metadata as headers.
pub(super) fn with_metadata<'a>(
    answer: DataAnswer,
    metadata: impl IntoIterator<Item = (&'a String, &'a str)>,
) -> DataAnswer {
    let add =
        |answer: DataAnswer, (name, value): (&String, &str)| answer.with(&format!("x-ms-meta-{name}"), value);
    metadata.into_iter().fold(answer, add)
}

/// The metadata in a resource's document.
pub(super) fn metadata(document: &Value) -> impl Iterator<Item = (&String, &str)> {
    let metadata = at(document, "properties/metadata").and_then(Value::as_object);
    metadata.into_iter().flatten().map(|(name, value)| (name, value.as_str().unwrap_or_default()))
}

/// Metrics of a service, which are off.
pub(super) fn metrics(name: &'static str) -> Element {
    let retention = Element::new("RetentionPolicy").text("Enabled", "false");
    Element::new(name).text("Version", "1.0").text("Enabled", "false").with(retention)
}

/// How many days a service keeps what was deleted, if it does.
pub(super) fn retention(name: &'static str, days: Option<i64>) -> Element {
    let enabled = if days.is_some() { "true" } else { "false" };
    Element::new(name).text("Enabled", enabled).text_if("Days", days.map(|days| days.to_string()).as_deref())
}
