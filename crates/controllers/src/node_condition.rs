//! Writes conditions of Nodes.

use clock::Clock;
use k8s::Node;
use kube::Api;
use kube::api::Patch;
use serde_json::json;

use crate::api::{ApiError, call, patch_params};

/// The desired condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewCondition {
    pub kind: &'static str,
    /// Whether its status is `True`.
    pub holds: bool,
    pub reason: &'static str,
    pub message: &'static str,
}

impl NewCondition {
    fn status(&self) -> &'static str {
        if self.holds { "True" } else { "False" }
    }

    /// Whether a node has it; messages are not compared.
    pub fn is_on(&self, node: &Node) -> bool {
        node.condition(self.kind).is_some_and(|c| c.status == self.status() && c.reason == self.reason)
    }
}

/// Writes a condition if the node's differs. Returns whether anything was written. The write contains no other
/// condition, and does not apply to a node that has another UID by now, or was deleted.
pub(crate) async fn set(
    api: &Api<Node>,
    node: &Node,
    condition: &NewCondition,
    clock: &Clock,
) -> Result<bool, ApiError> {
    if condition.is_on(node) {
        return Ok(false);
    }
    let (name, now, status) = (node.name(), clock.now(), condition.status());
    let mut one = json!({
        "type": condition.kind, "status": status, "reason": condition.reason, "message": condition.message,
        "lastHeartbeatTime": now,
    });
    if node.condition(condition.kind).is_none_or(|before| before.status != status) {
        one["lastTransitionTime"] = json!(now);
    }
    let patch = json!({"metadata": {"uid": node.metadata.uid}, "status": {"conditions": [one]}});
    let (params, patch) = (patch_params(), Patch::Strategic(patch));
    let request = api.patch_status(name, &params, &patch);
    match call(|| format!("write condition {} of node {name}", condition.kind), request).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(false),
        Err(error) => Err(error),
    }
}
