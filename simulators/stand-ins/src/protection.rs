//! Claims and volumes in use: a deleted claim stays while a pod on a node uses it, a deleted volume while it is bound.
//!
//! The API server adds the finalizer when it creates the object; this controller removes it. Left out: adding it to
//! objects that lost it, and claims of generic ephemeral volumes, which no controller here creates.

use serde_json::{Value, json};

use crate::objects::{Action, Kind, Round, is_deleting, key, list, name, text};

/// A finalizer that may hold an object, and whether the object is in use.
struct Rule {
    kind: Kind,
    finalizer: &'static str,
    in_use: fn(&Round<'_>, &Value) -> bool,
}

const RULES: [Rule; 2] = [
    Rule {
        kind: Kind::PersistentVolumeClaim,
        finalizer: "kubernetes.io/pvc-protection",
        in_use: |round, claim| {
            let pods = round.objects.within(Kind::Pod, text(&claim["metadata"]["namespace"]));
            let has = |volume: &Value| volume["persistentVolumeClaim"]["claimName"] == name(claim);
            // A pod without a node has started no container, and no kubelet starts it with a claim that is being
            // deleted.
            let mut pods = pods.filter(|pod| pod["spec"]["nodeName"].is_string());
            pods.any(|pod| list(&pod["spec"]["volumes"]).iter().any(has))
        },
    },
    Rule {
        kind: Kind::PersistentVolume,
        finalizer: "kubernetes.io/pv-protection",
        in_use: |_, volume| volume["status"]["phase"] == "Bound",
    },
];

/// The kinds that are read here.
pub(crate) const KINDS: [Kind; 3] = [Kind::PersistentVolumeClaim, Kind::PersistentVolume, Kind::Pod];

/// The part of an object that is read here: there may be many pods, and few have claims.
pub(crate) fn view(kind: Kind, object: Value) -> Option<Value> {
    let claimed = |volume: &&Value| !volume["persistentVolumeClaim"].is_null();
    if kind != Kind::Pod {
        return Some(object);
    }
    let volumes: Vec<&Value> = list(&object["spec"]["volumes"]).iter().filter(claimed).collect();
    if volumes.is_empty() {
        return None;
    }
    let metadata = &object["metadata"];
    Some(json!({"metadata": {"namespace": metadata["namespace"], "name": metadata["name"]},
        "spec": {"nodeName": object["spec"]["nodeName"], "volumes": volumes}}))
}

/// Removes the finalizer of deleted objects that are not in use.
pub(crate) fn keep_all(round: &mut Round<'_>) {
    for Rule { kind, finalizer, in_use } in &RULES {
        for object in round.objects.of(*kind).filter(|one| is_deleting(one)) {
            let finalizers = list(&object["metadata"]["finalizers"]);
            if !finalizers.iter().any(|one| one == finalizer) || in_use(round, object) {
                continue;
            }
            let left: Vec<&Value> = finalizers.iter().filter(|one| *one != finalizer).collect();
            let version = &object["metadata"]["resourceVersion"];
            let patch = json!({"metadata": {"finalizers": left, "resourceVersion": version}});
            round.act(Action::Patch(*kind, key(object), patch));
        }
    }
}
