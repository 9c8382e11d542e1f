//! Eviction: a pod is deleted if its disruption budgets allow it (Kubernetes: "API-initiated Eviction").

use serde_json::{Value, json};

use super::delete::{DeleteOptions, Deletion};
use super::pod::has_ended;
use super::shelves::BUDGETS;
use super::state::{State, Write};
use crate::object::{Object, is_terminating, list_at, rfc3339_seconds, string_at, value_at};
use crate::registry::Kind;
use crate::selector::LabelSelector;
use crate::status::ApiError;

/// When to retry an eviction whose budget has not been processed yet.
const BUDGET_LAG_SECONDS: u32 = 10;

impl State {
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
    ApiError::new(429, "TooManyRequests", message)
        .with_details(json!({ "causes": [{ "reason": "DisruptionBudget", "message": why }] }))
}

/// Whether a budget selects this pod: an empty selector selects all pods, a missing one none.
fn covers(budget: &Value, pod: &Value) -> bool {
    let Some(selector) = value_at(budget, &["spec", "selector"]).filter(|selector| selector.is_object())
    else {
        return false;
    };
    LabelSelector::of_object(selector).matches(pod)
}
