//! Verbs of pods alone: grace periods, binding to a node, and eviction.
//!
//! Sources: Kubernetes, "Pod Lifecycle" (termination) and "API-initiated Eviction"; kube-apiserver's responses.

use serde_json::{Value, json};

use super::{DeleteOptions, Deletion, State, Write, rfc3339_seconds};
use crate::object::{Object, is_terminating, list_at, metadata_value, set_metadata, string_at, value_at};
use crate::registry::Kind;
use crate::selector::LabelSelector;
use crate::status::ApiError;

pub(crate) const SHELF: &str = "pods";
const BUDGETS: &str = "poddisruptionbudgets.policy";

/// The default grace period in seconds (`terminationGracePeriodSeconds`).
const DEFAULT_GRACE: u64 = 30;
/// When to retry an eviction whose budget has not been processed yet.
const BUDGET_LAG_SECONDS: u32 = 10;

/// The grace period of a deleted object in seconds: 0 for all but pods on a node.
pub(super) fn grace(kind: &Kind, current: &Object, options: &DeleteOptions) -> u64 {
    if *kind.shelf != *SHELF {
        return 0;
    }
    let runs =
        string_at(current, &["spec", "nodeName"]).is_some_and(|node| !node.is_empty()) && !has_ended(current);
    let own = value_at(current, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_u64);
    let asked = options.grace.unwrap_or_else(|| own.unwrap_or(DEFAULT_GRACE));
    // The grace period of a deletion under way can be shortened, but not extended.
    let left = remaining(current).filter(|_| is_terminating(current)).unwrap_or(u64::MAX);
    if runs { asked.min(left) } else { 0 }
}

/// The grace period that a pod was given when it was deleted.
pub(super) fn remaining(object: &Value) -> Option<u64> {
    metadata_value(object, "deletionGracePeriodSeconds").as_u64()
}

fn has_ended(pod: &Value) -> bool {
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
            let mut error = ApiError::new(409, "Conflict", message);
            error.details = json!({"name": name, "kind": "pods/binding"});
            Err(error)
        };
        let node = string_at(binding, &["target", "name"]).unwrap_or_default();
        if node.is_empty() {
            let mut error = ApiError::invalid(kind, name, "target.name", "Required value");
            error.message = format!("Binding {name:?} is invalid: target.name: Required value");
            error.details["kind"] = "Binding".into();
            return Err(error);
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

    /// Deletes a pod if its disruption budgets allow it: the `eviction` subresource.
    pub(crate) fn evict(
        &mut self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
        write: &Write<'_>,
    ) -> Result<Deletion, ApiError> {
        let pod = self.get(kind, namespace, name)?;
        // A pod that does not serve may always be evicted.
        let pending = string_at(&pod, &["status", "phase"]).is_none_or(|phase| phase == "Pending");
        if !has_ended(&pod) && !pending && !is_terminating(&pod) {
            self.ask_budget(namespace, &pod, write)?;
        }
        self.delete(kind, namespace, name, options, write)
    }

    fn ask_budget(&mut self, namespace: &str, pod: &Object, write: &Write<'_>) -> Result<(), ApiError> {
        let places = self.store.in_namespace(namespace).into_iter().filter(|(shelf, _)| **shelf == *BUDGETS);
        let budgets: Vec<_> = places
            .filter_map(|place| {
                let budget = self.store.get(&place.0, &place.1)?.value().clone();
                covers(&budget, pod).then_some((place, budget))
            })
            .collect();
        let mut budgets = budgets.into_iter();
        let Some(((shelf, key), mut budget)) = budgets.next() else { return Ok(()) };
        if budgets.next().is_some() {
            let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(ApiError::new(500, "InternalError", message));
        }
        let number = |path: &[&str]| value_at(&budget, path).and_then(Value::as_u64).unwrap_or_default();
        let name = string_at(&budget, &["metadata", "name"]).unwrap_or_default();
        if number(&["status", "observedGeneration"]) < number(&["metadata", "generation"]) {
            let why = format!("The disruption budget {name} is still being processed by the server.");
            return Err(exhausted(&why).retry_after(BUDGET_LAG_SECONDS));
        }
        let (desired, current) =
            (number(&["status", "desiredHealthy"]), number(&["status", "currentHealthy"]));
        // A pod that is not ready may be evicted if enough others are healthy.
        let broken = !list_at(pod, &["status", "conditions"])
            .iter()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        if broken && desired > 0 && current >= desired {
            return Ok(());
        }
        let allowed = number(&["status", "disruptionsAllowed"]);
        if allowed == 0 {
            let why = format!(
                "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
            );
            return Err(exhausted(&why));
        }
        if !write.dry_run {
            budget["status"]["disruptionsAllowed"] = (allowed - 1).into();
            budget["status"]["disruptedPods"][pod.name()] = rfc3339_seconds(write.now).into();
            self.store.put(&shelf, &key, budget);
        }
        Ok(())
    }
}

fn exhausted(why: &str) -> ApiError {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut error = ApiError::new(429, "TooManyRequests", message);
    error.details = json!({"causes": [{"reason": "DisruptionBudget", "message": why}]});
    error
}

/// Whether a budget selects this pod: an empty selector selects all pods, a missing one none.
fn covers(budget: &Value, pod: &Value) -> bool {
    let Some(selector) = value_at(budget, &["spec", "selector"]).filter(|selector| selector.is_object())
    else {
        return false;
    };
    LabelSelector::of_object(selector).matches(pod)
}

/// Marks a deleted object with its deletion time and grace period.
pub(super) fn mark(object: &mut Value, grace: u64, write: &Write<'_>) {
    let seconds = i64::try_from(grace).unwrap_or(i64::MAX);
    let end = write.now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(write.now);
    set_metadata(object, "deletionTimestamp", Value::from(rfc3339_seconds(end)));
    set_metadata(object, "deletionGracePeriodSeconds", Value::from(grace));
}
