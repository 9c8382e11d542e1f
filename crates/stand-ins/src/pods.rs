//! What is next for Deployments, ReplicaSets and pods, as a pure function of the objects.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

/// The label that tells the ReplicaSets of a Deployment and their pods apart.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// The kinds that are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Deployment,
    ReplicaSet,
    Pod,
    Node,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Deployment, Kind::ReplicaSet, Kind::Pod, Kind::Node];
}

/// Namespace and name.
pub(crate) type Key = (String, String);

/// All objects of these kinds.
#[derive(Debug, Default)]
pub(crate) struct Objects(BTreeMap<(Kind, Key), Value>);

impl Objects {
    pub(crate) fn clear(&mut self, kind: Kind) {
        self.0.retain(|(known, _), _| *known != kind);
    }

    pub(crate) fn insert(&mut self, kind: Kind, object: Value) {
        self.0.insert((kind, key(&object)), object);
    }

    pub(crate) fn remove(&mut self, kind: Kind, key: &Key) {
        self.0.remove(&(kind, key.clone()));
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |((known, _), _)| *known == kind).map(|(_, object)| object)
    }

    fn controlled_by<'a>(&'a self, kind: Kind, owner: &'a Value) -> impl Iterator<Item = &'a Value> {
        let uid = &owner["metadata"]["uid"];
        self.of(kind).filter(move |object| {
            let owners = list(&object["metadata"]["ownerReferences"]);
            owners.iter().any(|owner| owner["uid"] == *uid && owner["controller"] == true)
        })
    }
}

/// Something to do at the API.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Create(Kind, Value),
    Patch(Kind, Key, Value),
    PatchStatus(Kind, Key, Value),
    Delete(Kind, Key),
}

/// What brings the objects nearer to what is asked for; nothing where all is as it should be.
pub(crate) fn next_actions(objects: &Objects, now: &str) -> Vec<Action> {
    let mut actions = Vec::new();
    for deployment in objects.of(Kind::Deployment).filter(|one| !is_deleting(one)) {
        keep_replica_sets(objects, deployment, now, &mut actions);
    }
    let mut nodes = Nodes::of(objects);
    for set in objects.of(Kind::ReplicaSet).filter(|one| !is_deleting(one)) {
        keep_pods(objects, set, &mut nodes, &mut actions);
    }
    for pod in objects.of(Kind::Pod) {
        actions.extend(run_pod(&nodes, pod, now));
    }
    actions
}

fn keep_replica_sets(objects: &Objects, deployment: &Value, now: &str, actions: &mut Vec<Action>) {
    let spec = &deployment["spec"];
    let wanted = replicas(deployment);
    let hash = format!("{:08x}", fnv(&spec["template"].to_string()));
    let sets: Vec<&Value> = objects.controlled_by(Kind::ReplicaSet, deployment).collect();
    let is_current = |set: &&&Value| set["metadata"]["labels"][TEMPLATE_HASH] == hash;
    let current = sets.iter().find(is_current).copied();
    let old: Vec<&Value> = sets.iter().filter(|set| !is_current(set)).copied().collect();
    let recreates = spec["strategy"]["type"] == "Recreate";
    if spec["paused"] != true {
        let old_has_pods = old.iter().any(|set| replicas(set) > 0 || number(&set["status"]["replicas"]) > 0);
        match current {
            None if recreates && old_has_pods => {}
            None => actions.push(Action::Create(Kind::ReplicaSet, replica_set(deployment, &hash, wanted))),
            Some(set) => actions.extend(scale(set, wanted)),
        }
        let replaced = current.is_some_and(|set| number(&set["status"]["readyReplicas"]) >= wanted);
        if recreates || replaced {
            actions.extend(old.iter().filter_map(|set| scale(set, 0)));
        }
    }
    let sum = |member: &str| sets.iter().map(|set| number(&set["status"][member])).sum::<u64>();
    let ready = sum("readyReplicas");
    let updated = current.map_or(0, |set| number(&set["status"]["replicas"]));
    let condition = |kind: &str, holds: bool, reason: &str, message: &str| {
        let status = if holds { "True" } else { "False" };
        let known = list(&deployment["status"]["conditions"]);
        let same = known.iter().find(|one| one["type"] == kind && one["status"] == status);
        let since = same.and_then(|one| one["lastTransitionTime"].as_str()).unwrap_or(now);
        json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since, "lastUpdateTime": since})
    };
    let available = ready >= wanted;
    let complete = available && updated == wanted && sum("replicas") == wanted;
    // Never an empty text: a real API server drops those, and the status would differ for ever.
    let available = match available {
        true => condition("Available", true, "MinimumReplicasAvailable", "All replicas are ready."),
        false => condition("Available", false, "MinimumReplicasUnavailable", "Some replicas are not ready."),
    };
    let progressing = match complete {
        true => {
            condition("Progressing", true, "NewReplicaSetAvailable", "The new ReplicaSet has progressed.")
        }
        false => condition("Progressing", true, "ReplicaSetUpdated", "The new ReplicaSet is progressing."),
    };
    let status = json!({
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": sum("replicas"),
        "updatedReplicas": updated,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "unavailableReplicas": wanted.saturating_sub(ready),
        "conditions": [available, progressing],
    });
    actions.extend(status_of(Kind::Deployment, deployment, status));
}

fn replica_set(deployment: &Value, hash: &str, replicas: u64) -> Value {
    let (metadata, spec) = (&deployment["metadata"], &deployment["spec"]);
    let mut template = spec["template"].clone();
    template["metadata"]["labels"][TEMPLATE_HASH] = hash.into();
    let mut selector = spec["selector"].clone();
    selector["matchLabels"][TEMPLATE_HASH] = hash.into();
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", text(&metadata["name"])),
            "namespace": metadata["namespace"],
            "labels": template["metadata"]["labels"],
            "ownerReferences": [owner("apps/v1", "Deployment", deployment)],
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    })
}

fn scale(set: &Value, wanted: u64) -> Option<Action> {
    let patch = json!({"spec": {"replicas": wanted}});
    (replicas(set) != wanted).then(|| Action::Patch(Kind::ReplicaSet, key(set), patch))
}

fn keep_pods(objects: &Objects, set: &Value, nodes: &mut Nodes<'_>, actions: &mut Vec<Action>) {
    let mut pods: Vec<&Value> =
        objects.controlled_by(Kind::Pod, set).filter(|pod| !is_deleting(pod)).collect();
    let template = &set["spec"]["template"];
    for _ in pods.len()..usize::try_from(replicas(set)).unwrap_or(usize::MAX) {
        let mut spec = template["spec"].clone();
        if let Some(node) = nodes.place(&spec) {
            spec["nodeName"] = node.into();
        }
        actions.push(Action::Create(
            Kind::Pod,
            json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "generateName": format!("{}-", text(&set["metadata"]["name"])),
                    "namespace": set["metadata"]["namespace"],
                    "labels": template["metadata"]["labels"],
                    "annotations": template["metadata"]["annotations"],
                    "ownerReferences": [owner("apps/v1", "ReplicaSet", set)],
                },
                "spec": spec,
            }),
        ));
    }
    // The newest go first, and before them those that do not serve.
    let rank =
        |pod: &&Value| (is_ready(pod), text(&pod["metadata"]["creationTimestamp"]).to_owned(), key(pod));
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    let count = pods.len();
    pods.sort_by_key(rank);
    let not_ready = count - ready;
    pods[not_ready..].reverse();
    let surplus = count.saturating_sub(usize::try_from(replicas(set)).unwrap_or(usize::MAX));
    actions.extend(pods.iter().take(surplus).map(|pod| Action::Delete(Kind::Pod, key(pod))));
    // A pod that found no node is replaced by one on a node, once there is one.
    for pod in pods.iter().skip(surplus).filter(|pod| pod["spec"]["nodeName"].is_null()) {
        if nodes.place(&pod["spec"]).is_some() {
            actions.push(Action::Delete(Kind::Pod, key(pod)));
        }
    }
    let status = json!({
        "observedGeneration": set["metadata"]["generation"],
        "replicas": count,
        "fullyLabeledReplicas": count,
        "readyReplicas": ready,
        "availableReplicas": ready,
    });
    actions.extend(status_of(Kind::ReplicaSet, set, status));
}

/// What the kubelet does with a pod of its node, the scheduler with one that finds none, and the garbage
/// collector with one whose node is gone.
fn run_pod(nodes: &Nodes<'_>, pod: &Value, now: &str) -> Option<Action> {
    let Some(name) = pod["spec"]["nodeName"].as_str() else {
        let waits = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "no node is ready and takes this pod"}]);
        let told = list(&pod["status"]["conditions"]).iter().any(|one| one["type"] == "PodScheduled");
        let status = json!({"phase": "Pending", "conditions": waits});
        return (!told).then(|| Action::PatchStatus(Kind::Pod, key(pod), status));
    };
    let Some(node) = nodes.known.get(name).filter(|_| !is_deleting(pod)) else {
        return Some(Action::Delete(Kind::Pod, key(pod)));
    };
    let ready = is_ready(node);
    let runs = pod["status"]["phase"] == "Running";
    // A silent kubelet begins nothing.
    if runs && is_ready(pod) == ready || !runs && !ready {
        return None;
    }
    let condition = |kind: &str, holds: bool| json!({"type": kind, "status": if holds { "True" } else { "False" }, "lastTransitionTime": now});
    let started = pod["status"]["startTime"].as_str().unwrap_or(now);
    let containers = list(&pod["spec"]["containers"]).iter().map(|container| {
        json!({"name": container["name"], "image": container["image"], "imageID": "", "ready": ready,
            "started": true, "restartCount": 0, "state": {"running": {"startedAt": started}}})
    });
    let (address, host) = (pod_address(text(&pod["metadata"]["uid"])), internal_ip(node));
    let status = json!({
        "phase": "Running",
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
        "containerStatuses": containers.collect::<Vec<_>>(),
    });
    Some(Action::PatchStatus(Kind::Pod, key(pod), status))
}

/// The nodes, and how many pods each has.
struct Nodes<'a> {
    known: BTreeMap<&'a str, &'a Value>,
    pods: BTreeMap<&'a str, usize>,
}

impl<'a> Nodes<'a> {
    fn of(objects: &'a Objects) -> Self {
        let known: BTreeMap<&str, &Value> =
            objects.of(Kind::Node).map(|node| (text(&node["metadata"]["name"]), node)).collect();
        let mut pods: BTreeMap<&str, usize> = known.keys().map(|name| (*name, 0)).collect();
        for name in objects.of(Kind::Pod).filter_map(|pod| pod["spec"]["nodeName"].as_str()) {
            *pods.entry(name).or_default() += 1;
        }
        Self { known, pods }
    }

    /// The node with the fewest pods of those that take this one.
    fn place(&mut self, pod: &Value) -> Option<&'a str> {
        let fitting = self.known.iter().filter(|(_, node)| takes(node, pod)).map(|(name, _)| *name);
        let name = fitting.min_by_key(|name| self.pods.get(name).copied().unwrap_or_default())?;
        *self.pods.entry(name).or_default() += 1;
        Some(name)
    }
}

fn takes(node: &Value, pod: &Value) -> bool {
    let selected = pod["nodeSelector"]
        .as_object()
        .is_none_or(|wanted| wanted.iter().all(|(label, value)| node["metadata"]["labels"][label] == *value));
    let tolerates = |taint: &Value| {
        taint["effect"] == "PreferNoSchedule"
            || list(&pod["tolerations"]).iter().any(|toleration| {
                let key = &toleration["key"];
                let all = toleration["operator"] == "Exists";
                (key.is_null() && all || *key == taint["key"])
                    && (all || text(&toleration["value"]) == text(&taint["value"]))
                    && (toleration["effect"].is_null() || toleration["effect"] == taint["effect"])
            })
    };
    is_ready(node)
        && !is_deleting(node)
        && node["spec"]["unschedulable"] != true
        && selected
        && list(&node["spec"]["taints"]).iter().all(tolerates)
}

/// A new status, where it differs from what is there: zeros and members that are missing are the same.
fn status_of(kind: Kind, object: &Value, status: Value) -> Option<Action> {
    let before = &object["status"];
    let differs = status.as_object().into_iter().flatten().any(|(member, value)| {
        before[member] != *value && !(before[member].is_null() && (*value == 0 || value.is_null()))
    });
    differs.then(|| Action::PatchStatus(kind, key(object), status))
}

fn owner(api_version: &str, kind: &str, object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({"apiVersion": api_version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"],
        "controller": true, "blockOwnerDeletion": true})
}

fn key(object: &Value) -> Key {
    let metadata = &object["metadata"];
    (text(&metadata["namespace"]).to_owned(), text(&metadata["name"]).to_owned())
}

fn replicas(object: &Value) -> u64 {
    object["spec"]["replicas"].as_u64().unwrap_or(1)
}

fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Whether a pod or a node is ready.
fn is_ready(object: &Value) -> bool {
    list(&object["status"]["conditions"]).iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
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

/// FNV-1a, 32 bits.
fn fnv(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

#[cfg(test)]
mod tests;
