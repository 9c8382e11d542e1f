//! Verbs of pods alone: grace periods and binding to a node.
//!
//! Sources: Kubernetes, "Pod Lifecycle" (termination); kube-apiserver's responses.

use serde_json::{Value, json};

use super::shelves::PODS;
use super::state::{State, Write};
use crate::object::{
    Object, is_terminating, list_at, metadata_value, rfc3339_seconds, set_metadata, string_at, value_at,
};
use crate::registry::Kind;
use crate::status::ApiError;

/// The default grace period in seconds (`terminationGracePeriodSeconds`).
const DEFAULT_GRACE: u64 = 30;
/// The grace period of a deleted object in seconds: 0 for all but pods on a node.
pub(crate) fn grace(kind: &Kind, current: &Object, requested: Option<u64>) -> u64 {
    if *kind.shelf != *PODS {
        return 0;
    }
    let runs =
        string_at(current, &["spec", "nodeName"]).is_some_and(|node| !node.is_empty()) && !has_ended(current);
    let own = value_at(current, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_u64);
    let asked = requested.unwrap_or_else(|| own.unwrap_or(DEFAULT_GRACE));
    // The grace period of a deletion under way can be shortened, but not extended.
    let left = remaining(current).filter(|_| is_terminating(current)).unwrap_or(u64::MAX);
    if runs { asked.min(left) } else { 0 }
}

/// The grace period that a pod was given when it was deleted.
pub(crate) fn remaining(object: &Value) -> Option<u64> {
    metadata_value(object, "deletionGracePeriodSeconds").as_u64()
}

pub(crate) fn has_ended(pod: &Value) -> bool {
    matches!(string_at(pod, &["status", "phase"]), Some("Succeeded" | "Failed"))
}

impl State {
    /// Binds a pod to a node: the `binding` subresource.
    pub(crate) fn bind(
        &mut self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        binding: &Value,
        write: &Write<'_>,
    ) -> Result<(), ApiError> {
        let current = self.get(kind, namespace, name)?;
        let refuse = |why: String| {
            let message = format!("Operation cannot be fulfilled on pods/binding {name:?}: {why}");
            let details = json!({ "name": name, "kind": "pods/binding" });
            Err(ApiError::new(409, "Conflict", message).with_details(details))
        };
        let node = string_at(binding, &["target", "name"]).unwrap_or_default();
        if node.is_empty() {
            return Err(ApiError::invalid_request(("", "Binding"), name, "target.name", "Required value"));
        }
        if is_terminating(&current) {
            return refuse(format!("pod {name} is being deleted, cannot be assigned to a host"));
        }
        if let Some(node) = string_at(&current, &["spec", "nodeName"]).filter(|node| !node.is_empty()) {
            return refuse(format!("pod {name} is already assigned to node {node:?}"));
        }
        if write.dry_run {
            return Ok(());
        }
        let mut pod = current.value().clone();
        pod["spec"]["nodeName"] = node.into();
        let mut conditions = list_at(&pod, &["status", "conditions"]).to_vec();
        conditions.retain(|condition| condition["type"] != "PodScheduled");
        conditions.push(json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": rfc3339_seconds(write.now)}));
        pod["status"]["conditions"] = conditions.into();
        self.store.put(&kind.shelf, &kind.key(namespace, name), pod);
        Ok(())
    }
}

/// Marks a deleted object with its deletion time and grace period.
pub(crate) fn mark(object: &mut Value, grace: u64, write: &Write<'_>) {
    let seconds = i64::try_from(grace).unwrap_or(i64::MAX);
    let end = write.now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(write.now);
    set_metadata(object, "deletionTimestamp", Value::from(rfc3339_seconds(end)));
    set_metadata(object, "deletionGracePeriodSeconds", Value::from(grace));
}
