//! Access to the bytes of a disk or snapshot by URL (`beginGetAccess`, `endGetAccess`).

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::engine::document::text;
use crate::engine::error::Refusal;
use crate::engine::kind::Action;
use crate::engine::operation::Completion;
use crate::engine::world::World;

/// Starts either action; `None` for any other.
pub(super) fn begin(
    world: &mut World,
    id: &ResourceId,
    action: &str,
    body: &Value,
) -> Option<Result<Action, Refusal>> {
    match action.to_ascii_lowercase().as_str() {
        "begingetaccess" => Some(grant(world, id, body)),
        "endgetaccess" => {
            if let Some(record) = world.store.get_mut(id) {
                record.hidden.remove("access");
            }
            world.changed(id);
            let completion = Completion::Action("endGetAccess".into(), json!([id]));
            Some(Ok(Action { completion, answer: None }))
        }
        _ => None,
    }
}

fn grant(world: &mut World, id: &ResourceId, body: &Value) -> Result<Action, Refusal> {
    let record = world.store.get(id).ok_or_else(|| world.not_found(id))?;
    let access = text(body, "access").unwrap_or_default();
    if !["None", "Read", "Write"].contains(&access) {
        return Err(Refusal::invalid_parameter(
            "grantAccessData.access",
            "Required parameter 'grantAccessData.access' is missing (null).",
        ));
    }
    if body.get("durationInSeconds").and_then(Value::as_u64).is_none_or(|seconds| seconds == 0) {
        return Err(Refusal::invalid_parameter(
            "grantAccessData.durationInSeconds",
            "Required parameter 'grantAccessData.durationInSeconds' is missing (null).",
        ));
    }
    if text(&record.body, "properties/networkAccessPolicy") == Some("DenyAll") {
        return Err(Refusal::new(
            409,
            "OperationNotAllowed",
            format!("{} cannot be exported: its network access policy is DenyAll.", id.name()),
        ));
    }
    if let Some(user) = world.store.referrers(id).next() {
        return Err(Refusal::new(
            409,
            "OperationNotAllowed",
            format!(
                "Cannot grant access to disk {} while it is attached to running VM {}.",
                id.name(),
                user.from
            ),
        ));
    }
    let key = world.seed.guid("access", id.as_str(), record.incarnation).replace('-', "");
    let rights = if access == "Write" { "rw" } else { "r" };
    // Nobody can be reached by this name: there are no bytes behind a simulated disk.
    let url = format!("https://md-{key}.blob.storage.invalid/{key}?sr=b&sp={rights}&sig={key}");
    if let Some(record) = world.store.get_mut(id) {
        record.hidden.insert("access".into(), access.into());
    }
    world.changed(id);
    Ok(Action { completion: Completion::Report(json!({ "accessSAS": url })), answer: None })
}
