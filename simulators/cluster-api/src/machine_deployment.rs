//! Reconciles MachineDeployments: creates a machine set for each template, and rolls from one to the next.
//!
//! A rollout follows `maxSurge` and `maxUnavailable`, or `OnDelete`. Left out: limits for remediation, in-place changes
//! of existing machines, and reuse of old sets. Empty old sets are deleted at once.

use serde_json::{Value, json};

use crate::names::{CLUSTER_NAME, DEPLOYMENT_NAME, MACHINE_DEPLOYMENT_FINALIZER, REVISION, TEMPLATE_HASH};
use crate::objects::{
    Kind, add_finalizer, add_owner, annotation, copy_members, has_finalizer, hash, is_deleting, is_owned_by,
    key, name, number, observed, owner, remove_finalizer, replicas, text,
};
use crate::round::{Action, Round};

/// The members of a template's `spec` whose change requires new machines.
const DECISIVE: [&str; 4] = ["version", "infrastructureRef", "bootstrap", "failureDomain"];

/// Reconciles all MachineDeployments of the cluster.
pub(crate) fn keep_all(round: &mut Round<'_>) {
    round.each(Kind::MachineDeployment, |round, before, after| {
        let all = round.of(Kind::MachineSet).into_iter();
        let sets: Vec<&Value> = all.filter(|one| is_owned_by(one, before)).collect();
        if is_deleting(before) {
            delete(round, before, after, &sets);
        } else {
            keep(round, before, after, &sets);
        }
        summarize(round, before, after, &sets);
    });
}

/// Whether a set has the current template of its deployment.
pub(crate) fn is_current(deployment: &Value, set: &Value) -> bool {
    let of = |object: &Value, member: &str| object["spec"]["template"]["spec"][member].clone();
    DECISIVE.iter().all(|member| of(deployment, member) == of(set, member))
}

fn keep(round: &mut Round<'_>, before: &Value, after: &mut Value, sets: &[&Value]) {
    add_finalizer(after, MACHINE_DEPLOYMENT_FINALIZER);
    add_owner(after, &owner(Kind::Cluster, round.cluster, false));
    defaults(round, before, after);
    let (current, old): (Vec<&Value>, Vec<&Value>) =
        sets.iter().copied().filter(|one| !is_deleting(one)).partition(|set| is_current(before, set));
    if before["spec"]["paused"] == true {
        return;
    }
    let Some(current) = current.into_iter().min_by_key(|set| text(&set["metadata"]["creationTimestamp"]))
    else {
        return make_set(round, after, sets);
    };
    roll(round, before, current, &old);
    for set in old.iter().filter(|set| replicas(set) == 0 && number(&set["status"]["replicas"]) == 0) {
        // A set without a status may already have machines.
        if !set["status"]["replicas"].is_null() {
            round.act(Action::Delete(Kind::MachineSet.into(), key(set)));
        }
    }
}

/// Applies the defaults of the established webhook.
fn defaults(round: &Round<'_>, before: &Value, after: &mut Value) {
    after["metadata"]["labels"][CLUSTER_NAME] = round.cluster_name().into();
    if before["spec"]["replicas"].is_null() {
        after["spec"]["replicas"] = 1.into();
    }
    let labels = [(CLUSTER_NAME, round.cluster_name()), (DEPLOYMENT_NAME, name(before))];
    for (label, value) in labels {
        for place in ["/spec/template/metadata/labels", "/spec/selector/matchLabels"] {
            if label == DEPLOYMENT_NAME
                && !before.pointer(place).is_none_or(|known| {
                    known[label].is_null()
                        && known.as_object().is_none_or(|all| all.keys().all(|key| key == CLUSTER_NAME))
                })
            {
                continue;
            }
            let members = match place {
                "/spec/selector/matchLabels" => &mut after["spec"]["selector"]["matchLabels"],
                _ => &mut after["spec"]["template"]["metadata"]["labels"],
            };
            members[label] = value.into();
        }
    }
}

fn make_set(round: &mut Round<'_>, deployment: &Value, sets: &[&Value]) {
    let suffix = round.suffix();
    let hash = format!("{}-{suffix}", hash(&deployment["spec"]["template"].to_string()));
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"][TEMPLATE_HASH] = hash.as_str().into();
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"][TEMPLATE_HASH] = hash.as_str().into();
    let labels = template["metadata"]["labels"].clone();
    let revisions = sets.iter().filter_map(|set| annotation(set, REVISION)?.parse::<u64>().ok());
    let revision = revisions.max().unwrap_or_default() + 1;
    // The first set gets all machines at once; later sets are scaled by the rollout.
    let count = if sets.is_empty() { replicas(deployment) } else { 0 };
    let mut spec = json!({"clusterName": round.cluster_name(), "replicas": count, "selector": selector,
        "template": template});
    copy_members(&deployment["spec"], &mut spec, &["deletion", "machineNaming"]);
    let set = json!({"apiVersion": Kind::MachineSet.api_version(), "kind": "MachineSet", "spec": spec,
        "metadata": {"namespace": round.namespace(), "name": format!("{}-{suffix}", name(deployment)),
            "labels": labels, "annotations": {REVISION: revision.to_string()},
            "ownerReferences": [owner(Kind::MachineDeployment, deployment, true)]}});
    round.act(Action::Create(Kind::MachineSet.into(), set));
}

fn scale(round: &mut Round<'_>, set: &Value, count: u64) {
    if replicas(set) != count {
        let patch = json!({"spec": {"replicas": count}});
        round.act(Action::Patch(Kind::MachineSet.into(), key(set), patch));
    }
}

/// Scales the sets: the current one up, the others down.
fn roll(round: &mut Round<'_>, deployment: &Value, current: &Value, old: &[&Value]) {
    let wanted = replicas(deployment);
    let strategy = &deployment["spec"]["rollout"]["strategy"];
    let old_total: u64 = old.iter().map(|set| replicas(set)).sum();
    if strategy["type"] == "OnDelete" {
        for set in old {
            let left = number(&set["status"]["replicas"]);
            let count =
                if set["status"]["replicas"].is_null() { replicas(set) } else { replicas(set).min(left) };
            scale(round, set, count);
        }
        return scale(round, current, wanted.saturating_sub(old_total).max(replicas(current).min(wanted)));
    }
    let limits = &strategy["rollingUpdate"];
    let surge = scaled(&limits["maxSurge"], wanted, true).unwrap_or(1);
    let mut unavailable = scaled(&limits["maxUnavailable"], wanted, false).unwrap_or(0);
    if surge == 0 && unavailable == 0 {
        unavailable = 1;
    }
    let (now, total) = (replicas(current), replicas(current) + old_total);
    if now > wanted || old_total == 0 {
        return scale(round, current, wanted);
    }
    // Machines that are being deleted count, because they still exist in Azure.
    let there: u64 = old.iter().map(|set| number(&set["status"]["replicas"]).max(replicas(set))).sum();
    let room = (wanted + surge).saturating_sub(now + there);
    scale(round, current, (now + room).min(wanted));
    let least = wanted.saturating_sub(unavailable);
    let new_missing = now.saturating_sub(number(&current["status"]["availableReplicas"]));
    let mut may_go = total.saturating_sub(least + new_missing);
    // Unavailable machines are deleted first.
    let mut counts: Vec<u64> = old.iter().map(|set| replicas(set)).collect();
    for healthy in [false, true] {
        for (set, count) in old.iter().zip(&mut counts) {
            let served = number(&set["status"]["availableReplicas"]);
            let candidates = if healthy { *count } else { count.saturating_sub(served) };
            let going = candidates.min(may_go);
            (*count, may_go) = (*count - going, may_go - going);
        }
    }
    for (set, count) in old.iter().zip(counts) {
        scale(round, set, count);
    }
}

/// Reads a number, or a percentage of `whole`, rounded up or down.
pub(crate) fn scaled(value: &Value, whole: u64, up: bool) -> Option<u64> {
    match value {
        Value::String(text) => {
            let percent: u64 = text.strip_suffix('%')?.parse().ok()?;
            Some(if up { (percent * whole).div_ceil(100) } else { percent * whole / 100 })
        }
        value => value.as_u64(),
    }
}

fn delete(round: &mut Round<'_>, before: &Value, after: &mut Value, sets: &[&Value]) {
    if !has_finalizer(before, MACHINE_DEPLOYMENT_FINALIZER) {
        return;
    }
    if sets.is_empty() {
        return remove_finalizer(after, MACHINE_DEPLOYMENT_FINALIZER);
    }
    round.delete_all(&Kind::MachineSet.into(), sets.iter().copied());
}

fn summarize(round: &mut Round<'_>, before: &Value, after: &mut Value, sets: &[&Value]) {
    let wanted = replicas(before);
    let sum = |member: &str, of: &[&Value]| of.iter().map(|set| number(&set["status"][member])).sum::<u64>();
    let current: Vec<&Value> = sets.iter().copied().filter(|set| is_current(before, set)).collect();
    let (count, updated) = (sum("replicas", sets), sum("replicas", &current));
    let (ready, available) = (sum("readyReplicas", sets), sum("availableReplicas", sets));
    for (member, value) in [
        ("replicas", count),
        ("readyReplicas", ready),
        ("availableReplicas", available),
        ("upToDateReplicas", updated),
    ] {
        after["status"][member] = value.into();
    }
    let missing = wanted.saturating_sub(available);
    for (member, value) in [
        ("readyReplicas", ready),
        ("availableReplicas", available),
        ("updatedReplicas", updated),
        ("unavailableReplicas", missing),
    ] {
        after["status"]["deprecated"]["v1beta1"][member] = value.into();
    }
    after["status"]["selector"] = selector(&after["spec"]["selector"]["matchLabels"]).into();
    observed(after);
    let phase = match () {
        () if count < wanted => "ScalingUp",
        () if count > wanted => "ScalingDown",
        () if ready == wanted && available == wanted => "Running",
        () => "ScalingUp",
    };
    after["status"]["phase"] = phase.into();
    let unavailable =
        scaled(&before["spec"]["rollout"]["strategy"]["rollingUpdate"]["maxUnavailable"], wanted, false);
    let enough = available >= wanted.saturating_sub(unavailable.unwrap_or_default());
    let message = if enough {
        String::new()
    } else {
        format!("{available} available replicas, at least {wanted} required")
    };
    round.worded_condition(after, "Available", enough, "Available", &message);
    round.named_condition(after, "RollingOut", updated != count);
    round.named_condition(after, "Deleting", is_deleting(before));
    for kind in ["Available", "Ready"] {
        round.old_condition(after, kind, enough, ("Warning", "WaitingForAvailableMachines", &message));
    }
}

fn selector(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    labels.map(|(name, value)| format!("{name}={}", text(value))).collect::<Vec<_>>().join(",")
}
