//! The control API under `/_cerulean/`: for tests and demos in another process.

use std::collections::BTreeMap;

use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, delete, get, post};
use axum::{Json, Router};
use azure_types::ResourceId;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::azure::Azure;
use crate::control_error::refused;
use crate::latency::named_latency;
use crate::machines::PowerState;
use crate::parameters::{self, Parameters};
use azure_engine::fault::Fault;
use azure_engine::operation::{OperationEnd, OperationState};
use azure_engine::refusal::{Refusal, Result};
use azure_engine::settings::actors::Actor;
use azure_engine::settings::budget::BudgetState;
use azure_engine::settings::budget::Budgets;
use azure_engine::settings::consistency::Consistency;
use azure_engine::settings::latency::LatencyProfile;
use azure_engine::state::overrides::check_budgets;

pub(crate) fn router() -> Router<Azure> {
    Router::new()
        .route("/_cerulean/journal", get(journal).delete(clear_journal))
        .route("/_cerulean/faults", get(faults).post(inject).delete(clear_faults))
        .route("/_cerulean/actors", get(actors).post(set_actors).delete(clear_actors))
        .route("/_cerulean/actors/{name}", delete(remove_actor))
        .route("/_cerulean/budgets", get(budgets).put(set_budgets))
        .route("/_cerulean/authorization", get(authorization).put(set_authorization))
        .route("/_cerulean/consistency", get(consistency).put(set_consistency))
        .route("/_cerulean/limits", get(limits).put(set_limits))
        .route("/_cerulean/latency", get(latency).put(set_latency))
        .route("/_cerulean/operations", get(operations).post(end_operation))
        .route("/_cerulean/state", get(state))
        .route("/_cerulean/state/snapshot", get(save).put(restore).layer(DefaultBodyLimit::disable()))
        .route("/_cerulean/scale", post(scale))
        .route("/_cerulean/power", post(power))
        .route("/_cerulean/remove-instance", post(remove_instance))
        .merge(crate::page::resources::router())
        // Unknown paths of the control API stay out of Resource Manager's journal.
        .route("/_cerulean/{*path}", any(|| async { StatusCode::NOT_FOUND }))
        .route("/favicon.ico", any(|| async { StatusCode::NOT_FOUND }))
}

/// Reads a body. Lists are refused, which serde would take for an object's members in order.
fn read<T: DeserializeOwned>(body: Value) -> Result<T, serde_json::Error> {
    if body.is_array() {
        return Err(serde::de::Error::custom("an object is expected, not a list"));
    }
    serde_json::from_value(body)
}

/// `?after=N` leaves out the first N requests; `?format=lines` gives JSON Lines without counts.
async fn journal(State(azure): State<Azure>, Query(query): Query<Parameters>) -> Response {
    match read_journal(&azure, &query) {
        Ok(answer) => answer,
        Err(refusal) => refused(&refusal),
    }
}

fn read_journal(azure: &Azure, query: &Parameters) -> Result<Response> {
    only(query, &["after", "format"])?;
    let after = query.get("after").map_or(Ok(0), |after| after.parse());
    let after =
        after.map_err(|_| Refusal::invalid_parameter("after", "after must be the number of a request"))?;
    let journal = azure.journal_after(after);
    match query.get("format").map(String::as_str) {
        None | Some("json") => Ok(Json(journal).into_response()),
        Some("lines") => Ok(([(CONTENT_TYPE, "application/x-ndjson")], journal.to_lines()).into_response()),
        Some(other) => {
            let text = format!("format is '{other}', but must be json (the default) or lines");
            Err(Refusal::invalid_parameter("format", text))
        }
    }
}

/// Refuses unknown parameters.
fn only(query: &Parameters, known: &[&str]) -> Result<()> {
    parameters::check(query, known).map_err(|text| Refusal::invalid_parameter("query", text))
}

async fn clear_journal(State(azure): State<Azure>) -> StatusCode {
    azure.clear_journal();
    StatusCode::NO_CONTENT
}

async fn faults(State(azure): State<Azure>) -> Json<Vec<Fault>> {
    Json(azure.faults())
}

async fn actors(State(azure): State<Azure>) -> Json<Vec<Actor>> {
    Json(azure.actors())
}

/// Takes one actor or a list of them; each replaces one of the same name.
async fn set_actors(State(azure): State<Azure>, Json(body): Json<Value>) -> Response {
    let list = match body {
        Value::Array(list) => list,
        one => vec![one],
    };
    match list.into_iter().map(serde_json::from_value).collect::<Result<Vec<Actor>, _>>() {
        Ok(actors) => {
            actors.into_iter().for_each(|actor| azure.set_actor(actor));
            azure.watch_actors();
            (StatusCode::CREATED, Json(json!({ "atWork": azure.actors().len() }))).into_response()
        }
        Err(error) => refused(&Refusal::bad_content(error)),
    }
}

async fn clear_actors(State(azure): State<Azure>) -> StatusCode {
    azure.set_actors(Vec::new());
    StatusCode::NO_CONTENT
}

async fn remove_actor(State(azure): State<Azure>, Path(name): Path<String>) -> StatusCode {
    if azure.remove_actor(&name) { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND }
}

/// Takes one fault or a list of them.
async fn inject(State(azure): State<Azure>, Json(body): Json<Value>) -> Response {
    match faults::read::<Fault>(body) {
        Ok(faults) => {
            let count = faults.len();
            faults.into_iter().for_each(|fault| azure.inject(fault));
            (StatusCode::CREATED, Json(json!({ "inForce": count }))).into_response()
        }
        Err(error) => refused(&Refusal::bad_content(error)),
    }
}

async fn clear_faults(State(azure): State<Azure>) -> StatusCode {
    azure.clear_faults();
    StatusCode::NO_CONTENT
}

/// Whether requests need rights.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Authorization {
    enforced: bool,
}

async fn authorization(State(azure): State<Azure>) -> Json<Value> {
    Json(json!({ "enforced": azure.enforces_authorization() }))
}

async fn set_authorization(State(azure): State<Azure>, Json(body): Json<Value>) -> Response {
    match read::<Authorization>(body) {
        Ok(authorization) => {
            azure.enforce_authorization(authorization.enforced);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => refused(&Refusal::bad_content(error)),
    }
}

async fn consistency(State(azure): State<Azure>) -> Json<Consistency> {
    Json(azure.consistency())
}

async fn set_consistency(State(azure): State<Azure>, Json(body): Json<Value>) -> Response {
    match read(body) {
        Ok(consistency) => {
            azure.set_consistency(consistency);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => refused(&Refusal::bad_content(error)),
    }
}

async fn limits(State(azure): State<Azure>) -> Json<BTreeMap<String, u64>> {
    Json(azure.limits())
}

/// Takes those that differ from Azure's.
async fn set_limits(State(azure): State<Azure>, Json(overrides): Json<BTreeMap<String, u64>>) -> Response {
    match azure.set_limits(overrides) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(name) => refused(&Refusal::invalid_parameter("limits", format!("There is no limit '{name}'."))),
    }
}

/// `?running=true` leaves out those that are over.
async fn operations(State(azure): State<Azure>, Query(query): Query<Parameters>) -> Response {
    match read_operations(&azure, &query) {
        Ok(operations) => Json(operations).into_response(),
        Err(refusal) => refused(&refusal),
    }
}

fn read_operations(azure: &Azure, query: &Parameters) -> Result<Vec<OperationState>> {
    only(query, &["running"])?;
    let mut operations = azure.operations();
    match query.get("running").map(String::as_str) {
        None | Some("false") => {}
        Some("true") => operations.retain(|operation| operation.ended.is_none()),
        Some(other) => {
            let text = format!("running is '{other}', and must be true or false");
            return Err(Refusal::invalid_parameter("running", text));
        }
    }
    Ok(operations)
}

/// Ends one: `{"key": ..., "end": "succeeded" | "failed" | "canceled"}`, for a failure with `code` and
/// `message`.
async fn end_operation(State(azure): State<Azure>, Json(mut body): Json<Value>) -> Response {
    let key = body.as_object_mut().and_then(|body| body.remove("key"));
    let Some(key) = key.as_ref().and_then(Value::as_str) else {
        return refused(&Refusal::invalid_parameter("key", "key is missing"));
    };
    match read::<OperationEnd>(body) {
        Ok(end) if azure.end_operation(key, &end) => StatusCode::NO_CONTENT.into_response(),
        Ok(_) => refused(&Refusal::new(404, "OperationNotFound", format!("No operation '{key}' runs."))),
        Err(error) => refused(&Refusal::bad_content(error)),
    }
}

async fn latency(State(azure): State<Azure>) -> Json<LatencyProfile> {
    Json(azure.latency())
}

/// Takes a profile, or the name of one.
async fn set_latency(State(azure): State<Azure>, Json(body): Json<Value>) -> Response {
    let profile = match body.as_str() {
        Some(name) => match named_latency(name) {
            Some(profile) => Ok(profile),
            None => {
                let text = format!("There is no profile '{name}': there are instant and typical.");
                return refused(&Refusal::invalid_parameter("latency", text));
            }
        },
        None => read(body),
    };
    match profile {
        Ok(latency) => {
            azure.set_latency(latency);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => refused(&Refusal::bad_content(error)),
    }
}

async fn budgets(State(azure): State<Azure>) -> Json<Vec<BudgetState>> {
    Json(azure.budgets())
}

/// Figures that are left out are Azure's; `null` turns throttling off.
async fn set_budgets(State(azure): State<Azure>, Json(body): Json<Value>) -> Response {
    match read::<Option<Budgets>>(body) {
        Ok(Some(budgets)) if check_budgets(&azure_providers::all(), &budgets).is_err() => {
            let name = check_budgets(&azure_providers::all(), &budgets).err().unwrap_or_default();
            refused(&Refusal::invalid_parameter("policies", format!("There is no policy '{name}'.")))
        }
        Ok(budgets) => {
            azure.set_budgets(budgets);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => refused(&Refusal::bad_content(error)),
    }
}

async fn state(State(azure): State<Azure>) -> Json<Value> {
    let revision = *azure.subscribe().borrow();
    Json(json!({
        "revision": revision,
        "time": azure.now(),
        "runningOperations": azure.running_operations(),
        "resources": azure.documents(),
    }))
}

async fn save(State(azure): State<Azure>) -> Response {
    match azure.save() {
        Ok(saved) => Json(saved).into_response(),
        Err(error) => refused(&Refusal::new(500, "InternalServerError", error.to_string())),
    }
}

async fn restore(State(azure): State<Azure>, Json(saved): Json<Value>) -> Response {
    match azure.restore(saved) {
        Ok(()) => {
            azure.watch_actors();
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => refused(&Refusal::bad_content(error)),
    }
}

/// The body of a request to the actors under `/_cerulean/`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Act {
    id: ResourceId,
    #[serde(default)]
    capacity: Option<Value>,
    #[serde(default)]
    instance: Option<Value>,
    #[serde(default)]
    state: Option<String>,
}

/// Reads the action and its resource.
fn act(body: Value) -> Result<Act> {
    match body.get("id").map(|id| (id, id.as_str().is_some_and(|id| id.parse::<ResourceId>().is_ok()))) {
        Some((_, true)) => read(body).map_err(Refusal::bad_content),
        Some((id, false)) => Err(Refusal::invalid_parameter(
            "id",
            format!(
                "id is {id}, and must be a full resource id such as /subscriptions/.../virtualMachineScaleSets/workers: \
                 GET /_cerulean/resources lists them"
            ),
        )),
        None => Err(Refusal::invalid_parameter(
            "id",
            "id is missing, the full resource id: GET /_cerulean/resources lists them",
        )),
    }
}

async fn scale(State(azure): State<Azure>, Json(body): Json<Value>) -> Response {
    let capacity = |act: Act| {
        let problem = match &act.capacity {
            None => "capacity is missing, a whole number".to_owned(),
            Some(capacity) => format!("capacity is {capacity}, and must be a whole number such as 5"),
        };
        let capacity = act.capacity.as_ref().and_then(Value::as_u64);
        azure.scale(&act.id, capacity.ok_or_else(|| Refusal::invalid_parameter("capacity", problem))?)
    };
    done(act(body).and_then(capacity))
}

async fn power(State(azure): State<Azure>, Json(body): Json<Value>) -> Response {
    let switch = |act: Act| {
        let states = PowerState::ALL.map(PowerState::as_str).join(", ");
        let problem = match &act.state {
            None => format!("state is missing, one of {states}"),
            Some(state) => format!("state is '{state}', and must be one of {states}"),
        };
        let state = act.state.as_deref().and_then(PowerState::parse);
        azure.set_power_state(&act.id, state.ok_or_else(|| Refusal::invalid_parameter("state", problem))?)
    };
    done(act(body).and_then(switch))
}

async fn remove_instance(State(azure): State<Azure>, Json(body): Json<Value>) -> Response {
    let remove = |act: Act| {
        let problem = match &act.instance {
            None => "instance is missing, its number in the scale set".to_owned(),
            Some(instance) => {
                format!("instance is {instance}, and must be its number in the scale set, such as 1")
            }
        };
        let instance = match act.instance {
            Some(Value::String(number)) => Some(number),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let instance = instance.ok_or_else(|| Refusal::invalid_parameter("instance", problem))?;
        azure.remove_instance(&act.id, &instance)
    };
    done(act(body).and_then(remove))
}

fn done(result: Result<()>) -> Response {
    match result {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(refusal) => refused(&refusal),
    }
}
