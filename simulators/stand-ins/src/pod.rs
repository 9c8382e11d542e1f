//! The kubelet's handling of the pods of its node, and the fate of pods whose node is gone.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::{Value, json};

use crate::objects::{Action, Kind, Round, controller_of, fnv, is_deleting, is_ready, key, list, text, time};

/// How long the containers of a Job's pod run before they end well.
const WORK_TIME: Duration = Duration::from_secs(1);

/// Whether a pod has ended for good.
pub(crate) fn has_ended(pod: &Value) -> bool {
    matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed")
}

/// Whether a pod counts for the controller that made it.
pub(crate) fn is_active(pod: &Value) -> bool {
    !is_deleting(pod) && !has_ended(pod)
}

/// Whether a pod has been ready for as long as its controller asks for (`minReadySeconds`).
pub(crate) fn is_available(round: &mut Round<'_>, pod: &Value, min_ready_seconds: &Value) -> bool {
    if !is_ready(pod) {
        return false;
    }
    let pause = min_ready_seconds.as_u64().unwrap_or_default();
    let since = crate::objects::condition_of(pod, "Ready").and_then(|one| time(&one["lastTransitionTime"]));
    match since {
        Some(since) if pause > 0 => round.has_come(since + Duration::from_secs(pause)),
        _ => true,
    }
}

/// Runs every pod that has a node. A deleted pod ends at once; a pod whose node is gone is deleted.
pub(crate) fn run_all(round: &mut Round<'_>) {
    for pod in round.objects.of(Kind::Pod) {
        if let Some(node) = pod["spec"]["nodeName"].as_str() {
            run(round, pod, node);
        }
    }
}

fn run(round: &mut Round<'_>, pod: &Value, node: &str) {
    let Some(node) = round.objects.get(Kind::Node, &(String::new(), node.to_owned())) else {
        return round.act(Action::Finish(key(pod)));
    };
    let ready = is_ready(node);
    if is_deleting(pod) {
        // A silent kubelet ends no pod.
        if ready {
            round.act(Action::Finish(key(pod)));
        }
        return;
    }
    if has_ended(pod) {
        return;
    }
    let runs = pod["status"]["phase"] == "Running";
    if runs && ready && works_to_an_end(pod) {
        let began = time(&pod["status"]["startTime"]).unwrap_or(round.now);
        if round.has_come(began + WORK_TIME) {
            let status = status(round, pod, node, State::Done);
            round.act(Action::PatchStatus(Kind::Pod, key(pod), status));
        }
        return;
    }
    // Nor does it start one.
    if runs && is_ready(pod) == ready || !runs && !ready {
        return;
    }
    let status = status(round, pod, node, if ready { State::Serves } else { State::Silent });
    round.act(Action::PatchStatus(Kind::Pod, key(pod), status));
}

fn works_to_an_end(pod: &Value) -> bool {
    controller_of(pod).is_some_and(|owner| owner["kind"] == "Job")
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Serves,
    /// It runs as far as the API knows: its node is silent.
    Silent,
    /// Its containers have succeeded.
    Done,
}

fn status(round: &Round<'_>, pod: &Value, node: &Value, state: State) -> Value {
    let now = round.seconds();
    let started = pod["status"]["startTime"].as_str().unwrap_or(&now);
    let ready = state == State::Serves;
    let condition = |kind: &str, holds: bool| {
        let status = if holds { "True" } else { "False" };
        let before = crate::objects::condition_of(pod, kind).filter(|one| one["status"] == status);
        let since = before.and_then(|one| one["lastTransitionTime"].as_str()).unwrap_or(&now);
        let mut condition = json!({"type": kind, "status": status, "lastTransitionTime": since});
        if !holds && state == State::Done {
            condition["reason"] = "PodCompleted".into();
        }
        condition
    };
    let ended = json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": now}});
    let container = |container: &Value, state: Value, ready: bool, started: bool| {
        json!({"name": container["name"], "image": container["image"], "imageID": "", "ready": ready,
            "started": started, "restartCount": 0, "state": state})
    };
    let running = json!({"running": {"startedAt": started}});
    let containers: Vec<Value> = list(&pod["spec"]["containers"])
        .iter()
        .map(|one| match state {
            State::Done => container(one, ended.clone(), false, false),
            _ => container(one, running.clone(), ready, true),
        })
        .collect();
    let first: Vec<Value> = list(&pod["spec"]["initContainers"])
        .iter()
        .map(|one| container(one, ended.clone(), true, false))
        .collect();
    let host = internal_ip(node);
    let address = match pod["spec"]["hostNetwork"] == true {
        true => host.clone(),
        false => json!(pod_address(text(&pod["metadata"]["uid"]))),
    };
    let mut status = json!({
        "phase": if state == State::Done { "Succeeded" } else { "Running" },
        "startTime": started,
        "hostIP": host,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [
            condition("PodScheduled", true),
            condition("Initialized", true),
            condition("ContainersReady", ready),
            condition("Ready", ready),
        ],
        "containerStatuses": containers,
    });
    if !first.is_empty() {
        status["initContainerStatuses"] = first.into();
    }
    status
}

fn internal_ip(node: &Value) -> Value {
    let addresses = list(&node["status"]["addresses"]);
    let internal = addresses.iter().find(|address| address["type"] == "InternalIP");
    internal.map_or(Value::Null, |address| address["address"].clone())
}

/// An address in 10.128.0.0/9 that stays a pod's own: `pod` is what no other pod has.
pub(crate) fn pod_address(pod: &str) -> Ipv4Addr {
    Ipv4Addr::from(0x0a80_0000 | (fnv(pod) & 0x007f_ffff))
}

/// A pod as a controller makes it from its template.
pub(crate) fn from_template(kind: Kind, controller: &Value, template: &Value) -> Value {
    let metadata = &controller["metadata"];
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": format!("{}-", text(&metadata["name"])),
            "namespace": metadata["namespace"],
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
            "finalizers": template["metadata"]["finalizers"],
            "ownerReferences": [crate::objects::owner(kind, controller)],
        },
        "spec": template["spec"],
    })
}
