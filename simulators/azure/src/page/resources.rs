//! Endpoints of the page's view of all resources: a light list, and one document.

use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use azure_types::ResourceId;
use http::StatusCode;
use serde::Serialize;
use serde_json::json;

use crate::Azure;
use crate::parameters::{self, Parameters};

/// One line of the list.
#[derive(Debug, Serialize)]
struct Listed {
    id: ResourceId,
    #[serde(rename = "type")]
    resource_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    state: String,
    /// The Kubernetes Services that its tag names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    services: Vec<String>,
}

pub(crate) fn router() -> Router<Azure> {
    Router::new().route("/_cerulean/resources", get(list)).route("/_cerulean/resource", get(document))
}

async fn list(State(azure): State<Azure>) -> Response {
    let listed: Vec<Listed> = azure.change(|state| {
        let records = state.store.all().filter(|record| !state.is_given(&record.id));
        records
            .map(|record| Listed {
                id: record.id.clone(),
                resource_type: record.resource_type.name(),
                location: record
                    .body
                    .get("location")
                    .and_then(|location| location.as_str())
                    .map(str::to_owned),
                state: state.state_name(record).to_owned(),
                services: azure_packets::view::services(&record.body),
            })
            .collect()
    });
    Json(listed).into_response()
}

/// `?id=ID`: the document as a GET of Resource Manager shows it, without being one.
async fn document(State(azure): State<Azure>, Query(query): Query<Parameters>) -> Response {
    if let Err(text) = parameters::check(&query, &["id"]) {
        let error = json!({ "error": { "code": "InvalidParameter", "message": text } });
        return (StatusCode::BAD_REQUEST, Json(error)).into_response();
    }
    let id = query.get("id").and_then(|id| ResourceId::parse(id).ok());
    match id.and_then(|id| azure.document(&id)) {
        Some(document) => Json(document).into_response(),
        None => {
            let error = json!({ "error": { "code": "ResourceNotFound", "message": "There is no resource of this id." } });
            (StatusCode::NOT_FOUND, Json(error)).into_response()
        }
    }
}
