//! The metadata service's part of the control API: machines by address, and scheduled events.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::azure::Azure;
use crate::control_error::refused;
use azure_engine::refusal::Refusal;
use azure_engine::settings::options::MetadataAddresses;
use azure_providers::compute::scheduled_events;

pub(crate) fn router() -> Router<Azure> {
    Router::new()
        .route("/_cerulean/metadata-addresses", get(addresses).put(set_addresses))
        .route("/_cerulean/scheduled-events", get(events).post(plan))
        .route("/_cerulean/scheduled-events/{id}", delete(cancel))
}

async fn addresses(State(azure): State<Azure>) -> Json<MetadataAddresses> {
    Json(azure.metadata_addresses())
}

async fn set_addresses(State(azure): State<Azure>, Json(body): Json<Value>) -> Response {
    match serde_json::from_value(body) {
        Ok(addresses) => {
            azure.set_metadata_addresses(addresses);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => refused(&Refusal::bad_content(error)),
    }
}

async fn events(State(azure): State<Azure>) -> Json<Value> {
    Json(Value::Array(azure.change(|state| scheduled_events::planned_events(state))))
}

async fn plan(State(azure): State<Azure>, Json(body): Json<Value>) -> Response {
    let planned = serde_json::from_value(body).map_err(Refusal::bad_content);
    match planned.and_then(|plan| azure.plan_event(plan)) {
        Ok(id) => (StatusCode::CREATED, Json(json!({ "eventId": id }))).into_response(),
        Err(refusal) => refused(&refusal),
    }
}

async fn cancel(State(azure): State<Azure>, Path(id): Path<String>) -> StatusCode {
    if azure.cancel_event(&id) { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND }
}
