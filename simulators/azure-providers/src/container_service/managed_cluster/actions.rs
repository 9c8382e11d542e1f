//! POST actions of a cluster.

use std::time::Duration;

use azure_engine::answer::Answer;
use azure_engine::document::{Object, into_object, text};
use azure_engine::operation::Completion;
use azure_engine::provider::{Action, AzureState, Record};
use azure_engine::refusal::Handled;
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::container_service::agent_pool::check_pools;
use crate::container_service::ending::abort;
use crate::container_service::kubeconfig::{Role, access_profile, credentials};
use crate::container_service::type_names::{POOLS, PROVISION};

/// Whether an action only reads: it is allowed while an operation runs.
pub(super) fn reads(action: &str) -> bool {
    let action = action.to_ascii_lowercase();
    action.starts_with("list") || action.starts_with("accessprofiles/") || action == "abort"
}

/// Starts an action.
pub(super) fn begin(azure: &mut AzureState, id: &ResourceId, action: &str, body: &Value) -> Handled<Action> {
    let action = action.to_ascii_lowercase();
    if let Some(answer) = read(azure, azure.store.get(id)?, &action) {
        let at_once = |shown| Action::answered(Answer::ok(shown));
        return Some(answer.map(at_once));
    }
    if action == "abort" {
        abort(azure, id);
        return Some(Ok(going_on(action)));
    }
    if let Err(refusal) = check_pools(azure, id) {
        return Some(Err(refusal));
    }
    match action.as_str() {
        "start" | "stop" => {
            let code = if action == "stop" { "Stopped" } else { "Running" };
            change(azure, id, "powerState", json!({ "code": code }));
            for pool in pools(azure, id) {
                change(azure, &pool, "powerState", json!({ "code": code }));
            }
            azure.later(id, PROVISION, Some(Duration::ZERO));
        }
        "rotateclustercertificates" => {
            let record = azure.store.get_mut(id)?;
            let rotations = record.hidden.get("rotations").and_then(Value::as_u64).unwrap_or_default();
            record.hidden.insert("rotations".into(), (rotations + 1).into());
        }
        "rotateserviceaccountsigningkeys" => {}
        "resetserviceprincipalprofile" => {
            let client = text(body, "clientId").unwrap_or_default();
            change(azure, id, "servicePrincipalProfile", json!({ "clientId": client }));
        }
        "resetaadprofile" => {
            let mut profile: Object = into_object(body.clone());
            profile.remove("serverAppSecret");
            change(azure, id, "aadProfile", Value::Object(profile));
        }
        _ => return None,
    }
    Some(Ok(going_on(action)))
}

fn going_on(action: String) -> Action {
    Action::begun(Completion::Action(action, Value::Null))
}

/// The answer to an action that only reads.
fn read(azure: &AzureState, cluster: &Record, action: &str) -> Handled<Value> {
    let role = match action {
        "listclusteradmincredential" => Role::Admin,
        "listclusterusercredential" => Role::User,
        "listclustermonitoringusercredential" => Role::Monitoring,
        _ => {
            let role = action.strip_prefix("accessprofiles/")?.strip_suffix("/listcredential")?;
            return Some(access_profile(azure, cluster, Role::of(role)?));
        }
    };
    Some(credentials(azure, cluster, role))
}

fn pools(azure: &AzureState, cluster: &ResourceId) -> Vec<ResourceId> {
    let pools = azure.store.of_type_below(POOLS, cluster);
    pools.into_iter().map(|pool| pool.id.clone()).collect()
}

fn change(azure: &mut AzureState, id: &ResourceId, member: &str, value: Value) {
    if let Some(record) = azure.store.get_mut(id) {
        record.body["properties"][member] = value;
        record.version += 1;
    }
}
