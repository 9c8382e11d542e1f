//! StatefulSets: numbered pods, created, replaced and removed in order, each with its claims.
//!
//! Left out: `persistentVolumeClaimRetentionPolicy`, `maxUnavailable` and `ordinals`; claims are created, but no
//! controller binds them.

use serde_json::{Value, json};

use crate::objects::{Action, Kind, Round, is_deleting, is_ready, key, list, name, number, replicas, text};
use crate::pod::{from_template, has_ended, is_available};
use crate::revision::{self, Current, REVISION_HASH};

/// Reconciles the pods of all StatefulSets.
pub(crate) fn keep_all(round: &mut Round<'_>) {
    for set in round.objects.of(Kind::StatefulSet).filter(|one| !is_deleting(one)) {
        keep(round, set);
    }
}

fn keep(round: &mut Round<'_>, set: &Value) {
    let wanted = replicas(set);
    let present = revision::keep(round, Kind::StatefulSet, set);
    let mut pods: Vec<(u64, &Value)> = round
        .objects
        .controlled_by(Kind::Pod, set)
        .filter_map(|pod| Some((ordinal(set, pod)?, pod)))
        .collect();
    pods.sort_by_key(|(ordinal, _)| *ordinal);
    step(round, set, &pods, &present);

    let counts = |filter: &dyn Fn(&Value) -> bool| pods.iter().filter(|(_, pod)| filter(pod)).count();
    let (ready, updated) = (counts(&is_ready), counts(&|pod| is_of(pod, &present.name)));
    let available =
        pods.iter().filter(|(_, pod)| is_available(round, pod, &set["spec"]["minReadySeconds"])).count();
    let all = u64::try_from(pods.len()).unwrap_or(u64::MAX);
    let replaced = all == wanted && updated == pods.len() && ready == pods.len();
    let before = text(&set["status"]["currentRevision"]);
    let current = if replaced || before.is_empty() { &present.name } else { before };
    let status = json!({
        "observedGeneration": set["metadata"]["generation"],
        "replicas": pods.len(),
        "readyReplicas": ready,
        "availableReplicas": available,
        "currentReplicas": counts(&|pod| is_of(pod, current)),
        "updatedReplicas": updated,
        "currentRevision": current,
        "updateRevision": present.name,
        "collisionCount": 0,
    });
    round.write_status(Kind::StatefulSet, set, status);
}

/// Takes the next step: one pod after the other, or all at once if the pod management policy is `Parallel`.
fn step(round: &mut Round<'_>, set: &Value, pods: &[(u64, &Value)], present: &Current) {
    let wanted = replicas(set);
    let parallel = set["spec"]["podManagementPolicy"] == "Parallel";
    for ordinal in 0..wanted {
        let pod = pods.iter().find(|(known, _)| *known == ordinal).map(|(_, pod)| *pod);
        match pod {
            None => make(round, set, ordinal, present),
            Some(pod) if is_deleting(pod) => {}
            Some(pod) if has_ended(pod) => round.act(Action::Delete(Kind::Pod, key(pod))),
            Some(pod) if is_ready(pod) => continue,
            Some(_) => {}
        }
        if !parallel {
            return;
        }
    }
    for (_, pod) in pods.iter().rev().filter(|(ordinal, _)| *ordinal >= wanted) {
        if !is_deleting(pod) {
            round.act(Action::Delete(Kind::Pod, key(pod)));
        }
        if !parallel {
            return;
        }
    }
    let strategy = &set["spec"]["updateStrategy"];
    if strategy["type"] == "OnDelete" {
        return;
    }
    let partition = number(&strategy["rollingUpdate"]["partition"]);
    for (_, pod) in pods.iter().rev().filter(|(ordinal, _)| (partition..wanted).contains(ordinal)) {
        if is_deleting(pod) || !is_ready(pod) {
            return;
        }
        if !is_of(pod, &present.name) {
            return round.act(Action::Delete(Kind::Pod, key(pod)));
        }
    }
}

fn make(round: &mut Round<'_>, set: &Value, ordinal: u64, present: &Current) {
    let partition = number(&set["spec"]["updateStrategy"]["rollingUpdate"]["partition"]);
    let current = text(&set["status"]["currentRevision"]);
    let earlier = revision::template_of(round, set, current).filter(|_| ordinal < partition);
    let (revision, template) = match earlier {
        Some(template) => (current, template),
        None => (present.name.as_str(), &set["spec"]["template"]),
    };
    let mut pod = from_template(Kind::StatefulSet, set, template);
    let name = format!("{}-{ordinal}", name(set));
    let metadata = &mut pod["metadata"];
    metadata["generateName"] = Value::Null;
    metadata["name"] = name.as_str().into();
    metadata["labels"]["statefulset.kubernetes.io/pod-name"] = name.as_str().into();
    metadata["labels"][REVISION_HASH] = revision.into();
    let spec = &mut pod["spec"];
    spec["hostname"] = name.as_str().into();
    spec["subdomain"] = set["spec"]["serviceName"].clone();
    let mut volumes = list(&spec["volumes"]).to_vec();
    for template in list(&set["spec"]["volumeClaimTemplates"]) {
        let volume = &template["metadata"]["name"];
        let claim = format!("{}-{name}", text(volume));
        volumes.retain(|one| one["name"] != *volume);
        volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
        let place = (text(&set["metadata"]["namespace"]).to_owned(), claim.clone());
        if round.objects.get(Kind::PersistentVolumeClaim, &place).is_some() {
            continue;
        }
        let labels = &set["spec"]["selector"]["matchLabels"];
        round.act(Action::Create(
            Kind::PersistentVolumeClaim,
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": claim, "namespace": set["metadata"]["namespace"], "labels": labels},
                "spec": template["spec"]}),
        ));
    }
    if !volumes.is_empty() {
        spec["volumes"] = volumes.into();
    }
    round.act(Action::Create(Kind::Pod, pod));
}

fn ordinal(set: &Value, pod: &Value) -> Option<u64> {
    name(pod).strip_prefix(name(set))?.strip_prefix('-')?.parse().ok()
}

fn is_of(pod: &Value, revision: &str) -> bool {
    pod["metadata"]["labels"][REVISION_HASH] == revision
}
