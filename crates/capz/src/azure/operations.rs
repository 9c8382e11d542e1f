//! Long-running operations in the form of the status, so that they are resumed after a restart or a move.

use arm::{Class, Operation, OperationStyle};
use azure_types::ResourceId;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use capz_api::Future;
use capz_planner::service::Service;
use capz_planner::{Action, Goal};
use serde_json::Value;

/// The name of an action in the status.
fn word(action: Action) -> &'static str {
    match action {
        Action::Create | Action::Update => "PUT",
        Action::Delete => "DELETE",
    }
}

/// The entry of the status for an operation.
pub fn keep(id: &ResourceId, service: &Service, action: Action, operation: &Operation) -> Option<Future> {
    let data = serde_json::to_vec(operation).ok()?;
    Some(Future {
        operation: Some(word(action).into()),
        resource_group: id.group_name().map(str::to_owned),
        service_name: Some(service.name.into()),
        name: Some(id.name().to_owned()),
        data: Some(URL_SAFE.encode(data)),
        ..Future::default()
    })
}

/// The operation on a goal's resource that the status has.
pub fn kept(futures: &[Future], goal: &Goal) -> Option<(Action, Operation)> {
    // Resources of one service may have one name.
    futures
        .iter()
        .filter(|future| {
            future.name.as_deref() == Some(goal.id.name())
                && future.service_name.as_deref() == Some(goal.service.name)
        })
        .filter_map(|future| read(future, goal))
        .find(|(_, operation)| operation.resource == goal.id)
}

fn read(future: &Future, goal: &Goal) -> Option<(Action, Operation)> {
    let action = if future.operation.as_deref() == Some("DELETE") { Action::Delete } else { Action::Update };
    let data = URL_SAFE.decode(future.data.as_deref()?).ok()?;
    let operation = serde_json::from_slice(&data).ok().or_else(|| of_the_go_sdk(&data, &goal.id, action))?;
    Some((action, operation))
}

/// Parses a resume token of the Go SDK, which the established provider stores.
fn of_the_go_sdk(data: &[u8], id: &ResourceId, action: Action) -> Option<Operation> {
    let token: Value = serde_json::from_slice(data).ok()?;
    let token = token.get("token")?;
    let text = |member: &str| token.get(member).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (style, url) =
        match (text("asyncURL"), text("opLocURL").or_else(|| text("oplocURL")), text("pollURL")) {
            (Some(url), ..) | (None, Some(url), _) => (OperationStyle::Status, url),
            (None, None, Some(url)) => match text("type") {
                Some("body") => (OperationStyle::Resource, url),
                _ => (OperationStyle::Location, url),
            },
            _ => return None,
        };
    Some(Operation {
        url: url.to_owned(),
        style,
        resource: id.clone(),
        method: word(action).to_owned(),
        started: 0,
        first_look: None,
        class: Class::Create,
    })
}
