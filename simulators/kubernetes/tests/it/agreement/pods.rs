//! Verbs of pods alone: grace periods, binding, eviction.

use serde_json::{Value, json};

use crate::agreement::caller::{Caller, STRATEGIC};

async fn pod(caller: &Caller, name: &str, node: Option<&str>) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    caller.post(&caller.at("pods"), &pod).await.ok(201)
}

fn binding(name: &str, node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
}

pub async fn a_pod_is_bound_once(caller: Caller) {
    pod(&caller, "a", None).await;
    let at = caller.at("pods/a");
    let to = format!("{at}/binding");
    let answer = caller.post(&to, &binding("a", "n0")).await.ok(201);
    assert_eq!((&answer["kind"], &answer["status"]), (&json!("Status"), &json!("Success")));
    let bound = caller.get(&at).await.ok(200);
    assert_eq!(bound["spec"]["nodeName"], "n0");
    let conditions = bound["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|one| one["type"] == "PodScheduled" && one["status"] == "True"));
    let again = caller.post(&to, &binding("a", "n1")).await;
    assert_eq!(
        again.refused(409, "Conflict"),
        "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n0\""
    );
    caller.post(&caller.at("pods/none/binding"), &binding("none", "n0")).await.refused(404, "NotFound");
}

pub async fn a_pod_has_time_to_end(caller: Caller) {
    pod(&caller, "free", None).await;
    let free = caller.at("pods/free");
    caller.delete(&free).await.ok(200);
    caller.get(&free).await.refused(404, "NotFound");

    pod(&caller, "a", Some("n0")).await;
    let at = caller.at("pods/a");
    let deleted = caller.delete(&at).await.ok(200);
    assert_eq!(deleted["metadata"]["deletionGracePeriodSeconds"], 30);
    let since = deleted["metadata"]["deletionTimestamp"].clone();
    assert!(since.is_string());
    // The kubelet still updates its status, and it stays.
    let status = json!({"status": {"phase": "Running"}});
    caller.patch(&format!("{at}/status"), STRATEGIC, &status).await.ok(200);
    let second = caller.delete(&at).await.ok(200);
    assert_eq!(second["metadata"]["deletionTimestamp"], since, "a second deletion changes nothing");
    let shorter = caller.delete(&format!("{at}?gracePeriodSeconds=5")).await.ok(200);
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 5);
    caller.delete(&format!("{at}?gracePeriodSeconds=0")).await.ok(200);
    caller.get(&at).await.refused(404, "NotFound");
}

/// Path and eviction path of pod `a`, the version of its group, and the request.
async fn evicting(caller: &Caller) -> (String, String, Value, Value) {
    let groups = caller.get("/apis/policy").await.ok(200);
    let version = groups["preferredVersion"]["groupVersion"].clone();
    let eviction = json!({"apiVersion": version, "kind": "Eviction",
        "metadata": {"name": "a", "namespace": caller.namespace}});
    let at = caller.at("pods/a");
    (at.clone(), format!("{at}/eviction"), version, eviction)
}

pub async fn a_pod_is_evicted(caller: Caller) {
    let (at, to, _, eviction) = evicting(&caller).await;
    pod(&caller, "a", Some("n0")).await;
    // Without a budget it is deleted as usual.
    let answer = caller.post(&to, &eviction).await.ok(201);
    assert_eq!((&answer["kind"], &answer["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(caller.get(&at).await.ok(200)["metadata"]["deletionGracePeriodSeconds"], 30);
    caller.delete(&format!("{at}?gracePeriodSeconds=0")).await.ok(200);
    caller.post(&to, &eviction).await.refused(404, "NotFound");
}

pub async fn a_budget_is_respected(caller: Caller) {
    let (at, to, version, eviction) = evicting(&caller).await;
    pod(&caller, "a", Some("n0")).await;
    let running =
        json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    caller.patch(&format!("{at}/status"), STRATEGIC, &running).await.ok(200);
    let budgets =
        format!("/apis/{}/namespaces/{}/poddisruptionbudgets", version.as_str().unwrap(), caller.namespace);
    let budget = json!({"apiVersion": version, "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    caller.post(&budgets, &budget).await.ok(201);
    let refused = caller.post(&to, &eviction).await;
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    assert_eq!(refused.refused(429, "TooManyRequests"), message);
    let status = |allowed: u32| {
        json!({"status": {"observedGeneration": 1, "expectedPods": 1, "desiredHealthy": 1, "currentHealthy": 1,
            "disruptionsAllowed": allowed}})
    };
    let of = format!("{budgets}/web/status");
    caller.patch(&of, crate::agreement::caller::MERGE, &status(0)).await.ok(200);
    let refused = caller.post(&to, &eviction).await;
    assert_eq!(refused.refused(429, "TooManyRequests"), message);
    assert_eq!(
        refused.body["details"]["causes"],
        json!([{"reason": "DisruptionBudget", "message": "The disruption budget web needs 1 healthy pods and has 1 currently"}])
    );
    caller.patch(&of, crate::agreement::caller::MERGE, &status(1)).await.ok(200);
    caller.post(&to, &eviction).await.ok(201);
    let budget = caller.get(&format!("{budgets}/web")).await.ok(200);
    assert!(budget["status"]["disruptedPods"]["a"].is_string(), "{budget}");
    assert_eq!(budget["status"]["disruptionsAllowed"].as_u64().unwrap_or_default(), 0);
    caller.delete(&format!("{at}?gracePeriodSeconds=0")).await.ok(200);
}
