//! The common part of all answers of the services.

use azure_engine::answer::data_plane::{DataAnswer, DataRequest};
use azure_engine::provider::AzureState;
use azure_engine::refusal::Refusal;

use super::service_request::ServiceRequest;
use super::xml::{Element, document};

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
    // Messages of the services contain the request id already; those of Resource Manager and of faults do not.
    let message = match refusal.message.contains("\nRequestId:") {
        true => refusal.message.clone(),
        false => crate::storage::protocol::said(azure, &refusal.message),
    };
    let error = Element::new("Error")
        .with(Element::text("Code", &refusal.code))
        .with(Element::text("Message", &message));
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
