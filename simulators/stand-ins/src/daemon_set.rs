//! DaemonSets: a pod on every eligible node. Left out: `maxSurge`.

use serde_json::{Value, json};

use crate::objects::{Action, Kind, Round, is_deleting, is_ready, key, list, name, scaled};
use crate::pod::{from_template, has_ended, is_available};
use crate::revision::{self, REVISION_HASH};
use crate::scheduler::may_have;

/// The taints that pods of DaemonSets tolerate: those that Kubernetes itself adds to nodes.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// Reconciles the pods of all DaemonSets.
pub(crate) fn keep_all(round: &mut Round<'_>) {
    for set in round.objects.of(Kind::DaemonSet).filter(|one| !is_deleting(one)) {
        keep(round, set);
    }
}

fn keep(round: &mut Round<'_>, set: &Value) {
    let hash = revision::keep(round, Kind::DaemonSet, set).hash;
    let pods: Vec<&Value> = round.objects.controlled_by(Kind::Pod, set).collect();
    let template = tolerant(&set["spec"]["template"]);
    let nodes: Vec<&Value> =
        round.objects.of(Kind::Node).filter(|node| may_have(node, &template["spec"])).collect();
    for node in &nodes {
        if !pods.iter().any(|pod| node_of(pod) == name(node)) {
            round.act(Action::Create(Kind::Pod, pod_for(set, &template, name(node), &hash)));
        }
    }
    let is_due = |pod: &Value| nodes.iter().any(|node| name(node) == node_of(pod));
    let (serving, stray): (Vec<&Value>, Vec<&Value>) = pods.iter().partition(|pod| is_due(pod));
    for pod in stray.iter().chain(serving.iter().filter(|pod| has_ended(pod))).filter(|pod| !is_deleting(pod))
    {
        round.act(Action::Delete(Kind::Pod, key(pod)));
    }
    let is_updated = |pod: &&&Value| pod["metadata"]["labels"][REVISION_HASH] == hash;
    let available =
        serving.iter().filter(|pod| is_available(round, pod, &set["spec"]["minReadySeconds"])).count();
    if set["spec"]["updateStrategy"]["type"] != "OnDelete" {
        replace(round, set, &serving, &hash, nodes.len());
    }
    let status = json!({
        "observedGeneration": set["metadata"]["generation"],
        "desiredNumberScheduled": nodes.len(),
        "currentNumberScheduled": serving.len(),
        "numberMisscheduled": stray.len(),
        "numberReady": serving.iter().filter(|pod| is_ready(pod)).count(),
        "numberAvailable": available,
        "numberUnavailable": nodes.len().saturating_sub(available),
        "updatedNumberScheduled": serving.iter().filter(is_updated).count(),
    });
    round.write_status(Kind::DaemonSet, set, status);
}

/// Deletes pods of an earlier template, at most as many at a time as may be unavailable.
fn replace(round: &mut Round<'_>, set: &Value, pods: &[&Value], hash: &str, wanted: usize) {
    let limit = &set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"];
    let whole = u64::try_from(wanted).unwrap_or(u64::MAX);
    let limit = scaled(limit, whole, true).unwrap_or(1).max(1);
    let serving = pods.iter().filter(|pod| is_ready(pod) && !is_deleting(pod)).count();
    let missing = wanted.saturating_sub(serving);
    let mut room = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(missing);
    for pod in pods.iter().filter(|pod| !is_deleting(pod) && !has_ended(pod)) {
        if pod["metadata"]["labels"][REVISION_HASH] == hash {
            continue;
        }
        if is_ready(pod) {
            if room == 0 {
                continue;
            }
            room -= 1;
        }
        round.act(Action::Delete(Kind::Pod, key(pod)));
    }
}

fn tolerant(template: &Value) -> Value {
    let mut template = template.clone();
    let mut tolerations = list(&template["spec"]["tolerations"]).to_vec();
    for (key, effect) in TOLERATED {
        tolerations.push(json!({"key": key, "operator": "Exists", "effect": effect}));
    }
    template["spec"]["tolerations"] = tolerations.into();
    template
}

fn pod_for(set: &Value, template: &Value, node: &str, hash: &str) -> Value {
    let mut pod = from_template(Kind::DaemonSet, set, template);
    pod["metadata"]["labels"][REVISION_HASH] = hash.into();
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!({
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        ]
    });
    pod
}

/// The node that a pod is on, or is meant for.
fn node_of(pod: &Value) -> &str {
    if let Some(node) = pod["spec"]["nodeName"].as_str() {
        return node;
    }
    let required = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0].as_str().unwrap_or_default()
}
