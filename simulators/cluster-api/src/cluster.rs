//! Reconciles Clusters: adopts the infrastructure and the control plane, derives the cluster's status from theirs, and
//! deletes in order.
//!
//! Left out: ClusterClass and topologies, hooks of the runtime SDK, and resource sets.

use serde_json::{Value, json};

use crate::clone::does_not_exist;
use crate::contract::{ProviderStatus, claim, host_port, is_endpoint};
use crate::names::{CLUSTER_FINALIZER, CONTROL_PLANE_LABEL};
use crate::objects::{
    GroupKind, Kind, add_finalizer, has_finalizer, is_deleting, key, label, list, number, observed, owner,
    owner_of, remove_finalizer, replicas, text,
};
use crate::round::{Action, Round, condition_of, is_true};

/// Reconciles the Cluster.
pub(crate) fn keep(round: &mut Round<'_>) {
    let before = round.cluster;
    let mut after = before.clone();
    if before["spec"]["paused"] == true {
        round.condition(&mut after, "Paused", true, "Paused", "Cluster spec.paused is set to true");
        round.save(&Kind::Cluster.into(), before, &after);
        return;
    }
    round.condition(&mut after, "Paused", false, "NotPaused", "");
    if is_deleting(before) {
        delete(round, &mut after);
    } else {
        add_finalizer(&mut after, CLUSTER_FINALIZER);
        infrastructure(round, &mut after);
        control_plane(round, &mut after);
    }
    summarize(round, &mut after);
    round.save(&Kind::Cluster.into(), before, &after);
}

fn infrastructure(round: &mut Round<'_>, after: &mut Value) {
    let reference = &round.cluster["spec"]["infrastructureRef"];
    if reference["kind"].is_null() {
        after["status"]["initialization"]["infrastructureProvisioned"] = true.into();
        round.old_condition_holds(after, "InfrastructureReady");
        round.condition(after, "InfrastructureReady", true, "Ready", "");
        return;
    }
    let kind = text(&reference["kind"]);
    let Some((group_kind, object)) = round.referred(reference) else {
        let message = does_not_exist(reference);
        round.condition(after, "InfrastructureReady", false, "ObjectDoesNotExist", &message);
        round.mirror(after, "InfrastructureReady", None, false, "WaitingForInfrastructure");
        return;
    };
    claim(round, &group_kind, object, &owner(Kind::Cluster, round.cluster, false), &[]);
    let said = ProviderStatus::by(round, &group_kind, object);
    let provisioned = said.provisioned();
    round.mirror(after, "InfrastructureReady", Some(object), provisioned, "WaitingForInfrastructure");
    ready_condition(round, after, "InfrastructureReady", kind, object, provisioned);
    if !provisioned || is_deleting(object) {
        return;
    }
    take_endpoint(after, object);
    let domains = said.failure_domains();
    if !list(&domains).is_empty() || !after["status"]["failureDomains"].is_null() {
        after["status"]["failureDomains"] = domains;
    }
    after["status"]["initialization"]["infrastructureProvisioned"] = true.into();
}

/// Takes the endpoint of a provider's object, if the cluster has none.
fn take_endpoint(after: &mut Value, object: &Value) {
    let endpoint = &object["spec"]["controlPlaneEndpoint"];
    if !is_endpoint(&after["spec"]["controlPlaneEndpoint"]) && is_endpoint(endpoint) {
        after["spec"]["controlPlaneEndpoint"] = json!({"host": endpoint["host"], "port": endpoint["port"]});
    }
}

fn control_plane(round: &mut Round<'_>, after: &mut Value) {
    let reference = &round.cluster["spec"]["controlPlaneRef"];
    if reference["kind"].is_null() {
        // Control planes of standalone Machines: the control plane is initialized by its first machine with a node.
        let mut machines = round.of(Kind::Machine).into_iter();
        if machines
            .any(|one| label(one, CONTROL_PLANE_LABEL).is_some() && !one["status"]["nodeRef"].is_null())
        {
            after["status"]["initialization"]["controlPlaneInitialized"] = true.into();
        }
        initialized_condition(
            round,
            after,
            "Waiting for the first control plane machine to have status.nodeRef set",
        );
        return;
    }
    let kind = text(&reference["kind"]);
    let Some((group_kind, object)) = round.referred(reference) else {
        let message = does_not_exist(reference);
        round.condition(after, "ControlPlaneAvailable", false, "ObjectDoesNotExist", &message);
        initialized_condition(round, after, &message);
        return;
    };
    claim(round, &group_kind, object, &owner(Kind::Cluster, round.cluster, false), &[]);
    let initialized = ProviderStatus::by(round, &group_kind, object).control_plane_initialized();
    if initialized {
        after["status"]["initialization"]["controlPlaneInitialized"] = true.into();
        take_endpoint(after, object);
    }
    let old_ready = list(&object["status"]["deprecated"]["v1beta1"]["conditions"]);
    let as_old = json!({"status": {"conditions": old_ready}});
    let said = if old_ready.is_empty() { object } else { &as_old };
    round.mirror(after, "ControlPlaneReady", Some(said), initialized, "WaitingForControlPlane");
    let (status, reason, message) = match condition_of(object, "Available") {
        Some(theirs) => (text(&theirs["status"]), text(&theirs["reason"]), text(&theirs["message"])),
        None if initialized => ("True", "Available", ""),
        None => ("False", "NotAvailable", ""),
    };
    let message = if message.is_empty() && status != "True" {
        format!("{kind} is not available")
    } else {
        message.to_owned()
    };
    round.put_condition(after, "ControlPlaneAvailable", status, reason, &message);
    initialized_condition(round, after, "Control plane not yet initialized");
}

fn initialized_condition(round: &Round<'_>, after: &mut Value, waiting: &str) {
    let initialized = after["status"]["initialization"]["controlPlaneInitialized"] == true;
    let message = if initialized { "" } else { waiting };
    round.worded_condition(after, "ControlPlaneInitialized", initialized, "Initialized", message);
    round.old_condition(
        after,
        "ControlPlaneInitialized",
        initialized,
        ("Info", "WaitingForControlPlaneProviderInitialized", message),
    );
}

/// Reports the readiness of a provider's object as a condition of the object that refers to it.
pub(crate) fn ready_condition(
    round: &Round<'_>,
    after: &mut Value,
    condition: &str,
    kind: &str,
    object: &Value,
    ready: bool,
) {
    match condition_of(object, "Ready") {
        Some(theirs) => {
            let is = text(&theirs["status"]);
            let reason = theirs["reason"].as_str().filter(|reason| !reason.is_empty());
            let reason = reason.unwrap_or(if is == "True" { "Ready" } else { "NotReady" });
            round.put_condition(after, condition, is, reason, text(&theirs["message"]));
        }
        None if ready => round.condition(after, condition, true, "Ready", ""),
        None => {
            let message = format!("{kind} status.ready is false");
            round.condition(after, condition, false, "NotReady", &message);
        }
    }
}

/// Deletes workers first, then the control plane, then the infrastructure.
fn delete(round: &mut Round<'_>, after: &mut Value) {
    if !has_finalizer(round.cluster, CLUSTER_FINALIZER) {
        return;
    }
    let mut waiting = Vec::new();
    for kind in [Kind::MachineDeployment, Kind::MachinePool, Kind::MachineSet, Kind::Machine] {
        for object in round.of(kind) {
            let (is_machine, is_control_plane) =
                (kind == Kind::Machine, label(object, CONTROL_PLANE_LABEL).is_some());
            if is_machine && is_control_plane && !round.cluster["spec"]["controlPlaneRef"]["kind"].is_null() {
                continue;
            }
            waiting.push(format!("{} {}", kind.names().1, text(&object["metadata"]["name"])));
            let has_owner =
                [Kind::MachineDeployment, Kind::MachineSet, Kind::MachinePool, Kind::KubeadmControlPlane]
                    .iter()
                    .any(|owner| owner_of(object, *owner).is_some());
            if !is_deleting(object) && !has_owner {
                round.act(Action::Delete(kind.into(), key(object)));
            }
        }
    }
    if !waiting.is_empty() {
        let message = format!("* {}", waiting.join("\n* "));
        round.condition(after, "Deleting", true, "WaitingForWorkersDeletion", &message);
        return;
    }
    for (member, reason) in [
        ("controlPlaneRef", "WaitingForControlPlaneDeletion"),
        ("infrastructureRef", "WaitingForInfrastructureDeletion"),
    ] {
        let reference = &round.cluster["spec"][member];
        if let Some((kind, object)) = round.referred(reference) {
            if !is_deleting(object) {
                round.act(Action::Delete(kind.clone(), key(object)));
            }
            let message = format!("* {} {}", kind.kind, text(&object["metadata"]["name"]));
            round.condition(after, "Deleting", true, reason, &message);
            let old = if member == "controlPlaneRef" { "ControlPlaneReady" } else { "InfrastructureReady" };
            round.old_condition(after, old, false, ("Info", "Deleting", ""));
            return;
        }
    }
    round.condition(after, "Deleting", true, "DeletionCompleted", "");
    remove_finalizer(after, CLUSTER_FINALIZER);
}

/// Sets phase, counts, and the conditions of the cluster as a whole.
fn summarize(round: &Round<'_>, after: &mut Value) {
    let deleting = is_deleting(round.cluster);
    if !deleting {
        round.condition(after, "Deleting", false, "NotDeleting", "");
    }
    let initialization = after["status"]["initialization"].clone();
    let endpoint = is_endpoint(&after["spec"]["controlPlaneEndpoint"]);
    let referred = !after["spec"]["infrastructureRef"]["kind"].is_null()
        || !after["spec"]["controlPlaneRef"]["kind"].is_null();
    let phase = match () {
        () if deleting => "Deleting",
        () if initialization["infrastructureProvisioned"] == true && endpoint => "Provisioned",
        () if referred => "Provisioning",
        () => "Pending",
    };
    after["status"]["phase"] = phase.into();
    observed(after);
    let machines = round.of(Kind::Machine);
    let (control, work): (Vec<&Value>, Vec<&Value>) =
        machines.into_iter().partition(|one| label(one, CONTROL_PLANE_LABEL).is_some());
    let wanted =
        round.referred(&round.cluster["spec"]["controlPlaneRef"]).map(|(_, object)| replicas(object));
    if let Some(wanted) = wanted {
        after["status"]["controlPlane"] = counts(wanted, &control);
    }
    let sets =
        round.of(Kind::MachineSet).into_iter().filter(|one| owner_of(one, Kind::MachineDeployment).is_none());
    let groups: Vec<&Value> = [Kind::MachineDeployment, Kind::MachinePool]
        .iter()
        .flat_map(|kind| round.of(*kind))
        .chain(sets)
        .collect();
    let mut workers = counts(groups.iter().map(|one| replicas(one)).sum(), &work);
    for pool in round.of(Kind::MachinePool) {
        // Pools whose instances have no Machines count by their own status.
        if !work.iter().any(|one| owner_of(one, Kind::MachinePool) == pool["metadata"]["name"].as_str()) {
            for member in COUNTS {
                workers[member] = (number(&workers[member]) + number(&pool["status"][member])).into();
            }
        }
    }
    let available =
        groups.iter().all(|one| condition_of(one, "Available").is_none_or(|said| said["status"] == "True"));
    let (reason, message) = match (groups.is_empty(), available) {
        (true, _) => ("NoWorkers", ""),
        (_, true) => ("Available", ""),
        _ => ("NotAvailable", "Not all workers are available"),
    };
    round.condition(after, "WorkersAvailable", available, reason, message);
    after["status"]["workers"] = workers;
    if endpoint {
        let reached = round.workload.is_some();
        let message = if reached {
            String::new()
        } else {
            format!("{} does not answer", host_port(&after["spec"]["controlPlaneEndpoint"]))
        };
        let reason = if reached { "ProbeSucceeded" } else { "ProbeFailed" };
        round.condition(after, "RemoteConnectionProbe", reached, reason, &message);
    }
    let parts = ["InfrastructureReady", "ControlPlaneAvailable", "WorkersAvailable", "RemoteConnectionProbe"];
    let missing: Vec<&str> = parts.into_iter().filter(|part| !is_true(after, part)).collect();
    let available = missing.is_empty() && !deleting;
    let message = missing.iter().map(|part| format!("* {part}")).collect::<Vec<_>>().join("\n");
    round.worded_condition(after, "Available", available, "Available", &message);
    old_summary(round, after, &["ControlPlaneInitialized", "ControlPlaneReady", "InfrastructureReady"]);
}

/// Sets the `v1beta1` condition `Ready`: the first of `parts` that is not true, otherwise true.
pub(crate) fn old_summary(round: &Round<'_>, after: &mut Value, parts: &[&str]) {
    let all = list(&after["status"]["deprecated"]["v1beta1"]["conditions"]).to_vec();
    let failed =
        parts.iter().find_map(|part| all.iter().find(|one| one["type"] == *part && one["status"] != "True"));
    match failed {
        Some(failed) => {
            let words = (text(&failed["severity"]), text(&failed["reason"]), text(&failed["message"]));
            round.old_condition(after, "Ready", false, words);
        }
        None => round.old_condition_holds(after, "Ready"),
    }
}

/// The replica counts that the status of a workload has.
pub(crate) const COUNTS: [&str; 4] = ["replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"];

/// The replica counts of a status for these machines.
pub(crate) fn counts(wanted: u64, machines: &[&Value]) -> Value {
    let with = |condition: &str| machines.iter().filter(|one| is_true(one, condition)).count();
    json!({
        "desiredReplicas": wanted,
        "replicas": machines.len(),
        "readyReplicas": with("Ready"),
        "availableReplicas": with("Available"),
        "upToDateReplicas": with("UpToDate"),
    })
}

/// Makes the cluster the owner of a template, as every controller that clones a template does.
pub(crate) fn claim_template(round: &mut Round<'_>, reference: &Value) -> Option<GroupKind> {
    let (kind, template) = round.referred(reference)?;
    claim(round, &kind, template, &owner(Kind::Cluster, round.cluster, false), &[]);
    Some(kind)
}
