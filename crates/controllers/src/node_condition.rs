//! Writing conditions of Nodes.

use clock::Clock;
use k8s::Node;
use kube::Api;
use kube::api::Patch;
use serde_json::json;

use crate::api::{ApiError, call, patch_params};

/// A condition as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewCondition {
    pub kind: &'static str,
    /// Whether it holds.
    pub holds: bool,
    pub reason: &'static str,
    pub message: &'static str,
}

impl NewCondition {
    fn status(&self) -> &'static str {
        if self.holds { "True" } else { "False" }
    }

    /// Whether a node has it: words for people do not count.
    pub fn is_on(&self, node: &Node) -> bool {
        node.condition(self.kind).is_some_and(|c| c.status == self.status() && c.reason == self.reason)
    }
}

/// Writes a condition where the node says something else; returns whether anything was written. Nobody else's condition is
/// part of the write, and a node that has another UID by now is left alone, as is one that is gone.
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
