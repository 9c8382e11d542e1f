//! PodDisruptionBudgets: how many pods may be disrupted now. The API reads it before it evicts a pod.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::objects::{
    Kind, Round, controller_of, is_deleting, is_ready, key, replicas, scaled, selects, text, time,
};
use crate::pod::has_ended;

/// How long an eviction that was granted counts, although its pod is still there.
const EVICTION_TIME: Duration = Duration::from_secs(120);

/// Reconciles the status of all budgets.
pub(crate) fn keep_all(round: &mut Round<'_>) {
    for budget in round.objects.of(Kind::PodDisruptionBudget).filter(|one| !is_deleting(one)) {
        keep(round, budget);
    }
}

fn keep(round: &mut Round<'_>, budget: &Value) {
    let (spec, namespace) = (&budget["spec"], text(&budget["metadata"]["namespace"]));
    let pods: Vec<&Value> = round
        .objects
        .within(Kind::Pod, namespace)
        .filter(|pod| selects(&spec["selector"], &pod["metadata"]["labels"]) && !has_ended(pod))
        .collect();
    let count = u64::try_from(pods.len()).unwrap_or(u64::MAX);
    let (expected, desired) = match (&spec["maxUnavailable"], &spec["minAvailable"]) {
        (Value::Null, Value::String(_)) => {
            let expected = expected(round, namespace, &pods);
            (expected, scaled(&spec["minAvailable"], expected, true).unwrap_or_default())
        }
        (Value::Null, least) => (count, least.as_u64().unwrap_or_default()),
        (most, _) => {
            let expected = expected(round, namespace, &pods);
            (expected, expected.saturating_sub(scaled(most, expected, true).unwrap_or_default()))
        }
    };
    let disrupted = disrupted(round, budget, &pods);
    let healthy = pods.iter().filter(|pod| {
        is_ready(pod) && !is_deleting(pod) && !disrupted.contains_key(text(&pod["metadata"]["name"]))
    });
    let healthy = u64::try_from(healthy.count()).unwrap_or(u64::MAX);
    let allowed = if expected == 0 { 0 } else { healthy.saturating_sub(desired) };
    let condition = match allowed {
        0 => ("False", "InsufficientPods"),
        _ => ("True", "SufficientPods"),
    };
    let mut condition = round.condition(budget, "DisruptionAllowed", condition.0, condition.1, "");
    condition["observedGeneration"] = budget["metadata"]["generation"].clone();
    // A merge patch removes an entry by null.
    let mut entries: Map<String, Value> = disrupted.into_iter().collect();
    for known in budget["status"]["disruptedPods"].as_object().into_iter().flatten() {
        entries.entry(known.0.clone()).or_insert(Value::Null);
    }
    let changed = entries.values().any(Value::is_null);
    let mut status = json!({
        "observedGeneration": budget["metadata"]["generation"],
        "expectedPods": expected,
        "desiredHealthy": desired,
        "currentHealthy": healthy,
        "disruptionsAllowed": allowed,
        "conditions": [condition],
    });
    if changed {
        status["disruptedPods"] = entries.into();
    }
    round.write_status(Kind::PodDisruptionBudget, budget, status);
}

/// The desired number of pods, from the controllers of the pods.
fn expected(round: &Round<'_>, namespace: &str, pods: &[&Value]) -> u64 {
    let mut sizes = BTreeMap::new();
    for pod in pods {
        let Some(mut owner) = controller_of(pod) else { continue };
        let mut of =
            [Kind::ReplicaSet, Kind::StatefulSet].into_iter().find(|kind| owner["kind"] == kind.names().1);
        let found = |kind: Kind, owner: &Value| {
            round.objects.get(kind, &(namespace.to_owned(), text(&owner["name"]).to_owned()))
        };
        let mut object = of.and_then(|kind| found(kind, owner));
        if let Some(above) = object.and_then(controller_of).filter(|above| above["kind"] == "Deployment") {
            (owner, of) = (above, Some(Kind::Deployment));
            object = of.and_then(|kind| found(kind, owner));
        }
        if let Some(object) = object {
            sizes.insert((of, key(object)), replicas(object));
        }
    }
    sizes.values().sum()
}

/// The pods whose eviction was granted, and that are not gone yet.
fn disrupted(round: &mut Round<'_>, budget: &Value, pods: &[&Value]) -> BTreeMap<String, Value> {
    let mut still = BTreeMap::new();
    for (pod, since) in budget["status"]["disruptedPods"].as_object().into_iter().flatten() {
        let there = pods.iter().any(|one| one["metadata"]["name"] == *pod && !is_deleting(one));
        let over = time(since).is_none_or(|since| round.has_come(since + EVICTION_TIME));
        if there && !over {
            still.insert(pod.clone(), since.clone());
        }
    }
    still
}
