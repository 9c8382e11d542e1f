//! Reconciles Machines: adopts the objects that a machine refers to, copies their data and addresses, finds the node,
//! and deletes in order: drain, then the infrastructure, the bootstrap configuration, the node.
//!
//! Left out: waiting for volumes to be detached, rules for draining (MachineDrainRule), in-place changes, and labels
//! and taints that are copied from Machines to Nodes.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::{old_summary, ready_condition};
use crate::contract::{ProviderStatus, claim};
use crate::names::{
    CLUSTER_NAME, CONTROL_PLANE_LABEL, EXCLUDE_DRAINING, MACHINE_FINALIZER, NODE_CLUSTER_NAME,
    NODE_CLUSTER_NAMESPACE, NODE_MACHINE, NODE_OWNER_KIND, NODE_OWNER_NAME, PRE_DRAIN_HOOK,
    PRE_TERMINATE_HOOK,
};
use crate::objects::{
    Kind, add_finalizer, add_owner, annotation, has_finalizer, is_deleting, key, label, list, name, observed,
    owner, owner_of, remove_finalizer, seconds, text, time,
};
use crate::round::{Action, Round, condition_of, is_true};
use crate::{control_plane, health_check, machine_deployment};

/// The interval of drain attempts while a node still has pods.
const DRAIN_INTERVAL: Duration = Duration::from_secs(2);

/// The default timeout of a node's deletion.
const NODE_DELETION_SECONDS: u64 = 10;

/// Reconciles all Machines of the cluster.
pub(crate) fn keep_all(round: &mut Round<'_>) {
    round.each(Kind::Machine, |round, before, after| {
        if is_deleting(before) {
            delete(round, before, after);
        } else {
            keep(round, before, after);
        }
        summarize(round, before, after);
    });
}

fn keep(round: &mut Round<'_>, before: &Value, after: &mut Value) {
    add_finalizer(after, MACHINE_FINALIZER);
    after["metadata"]["labels"][CLUSTER_NAME] = round.cluster_name().into();
    let owners = list(&before["metadata"]["ownerReferences"]);
    if !owners.iter().any(|one| one["controller"] == true || one["kind"] == "Cluster") {
        add_owner(after, &owner(Kind::Cluster, round.cluster, false));
    }
    bootstrap(round, before, after);
    infrastructure(round, before, after);
    find_node(round, before, after);
}

/// Kinds of owners that the objects of a machine have before the machine exists.
const MAKERS: [&str; 2] = ["MachineSet", "KubeadmControlPlane"];

fn bootstrap(round: &mut Round<'_>, before: &Value, after: &mut Value) {
    let reference = &before["spec"]["bootstrap"]["configRef"];
    let kind = text(&reference["kind"]);
    let provided = before["spec"]["bootstrap"]["dataSecretName"].is_string();
    let found = round.referred(reference);
    if let Some((group_kind, config)) = &found {
        claim(round, group_kind, config, &owner(Kind::Machine, before, true), &MAKERS);
    }
    if kind.is_empty() || provided {
        let secret = if kind.is_empty() { "DataSecretProvided" } else { "Ready" };
        if provided {
            after["status"]["initialization"]["bootstrapDataSecretCreated"] = true.into();
        }
        round.condition(after, "BootstrapConfigReady", provided, secret, "");
        round.old_condition(after, "BootstrapReady", provided, ("Info", "WaitingForDataSecret", ""));
        return;
    }
    let Some((group_kind, config)) = found else {
        let message = format!("{kind} does not exist");
        return round.condition(after, "BootstrapConfigReady", false, "ObjectDoesNotExist", &message);
    };
    let secret = ProviderStatus::by(round, &group_kind, config).data_secret();
    match secret {
        Some(secret) => {
            after["spec"]["bootstrap"]["dataSecretName"] = secret.into();
            after["status"]["initialization"]["bootstrapDataSecretCreated"] = true.into();
            round.condition(after, "BootstrapConfigReady", true, "Ready", "");
        }
        None => {
            let why = condition_of(config, "DataSecretAvailable").map(|one| text(&one["message"]));
            let why = why.filter(|why| !why.is_empty()).unwrap_or("the data Secret is not there yet");
            round.condition(after, "BootstrapConfigReady", false, "NotReady", why);
        }
    }
    round.old_condition(after, "BootstrapReady", secret.is_some(), ("Info", "WaitingForDataSecret", ""));
}

fn infrastructure(round: &mut Round<'_>, before: &Value, after: &mut Value) {
    let reference = &before["spec"]["infrastructureRef"];
    let kind = text(&reference["kind"]);
    let was = before["status"]["initialization"]["infrastructureProvisioned"] == true;
    let Some((group_kind, object)) = round.referred(reference) else {
        let (reason, message) = match was {
            true => ("ObjectDeleted", format!("{kind} has been deleted while the Machine still exists")),
            false => ("ObjectDoesNotExist", format!("{kind} does not exist")),
        };
        round.condition(after, "InfrastructureReady", false, reason, &message);
        round.old_condition(after, "InfrastructureReady", false, ("Info", "WaitingForInfrastructure", ""));
        return;
    };
    claim(round, &group_kind, object, &owner(Kind::Machine, before, true), &MAKERS);
    let said = ProviderStatus::by(round, &group_kind, object);
    ready_condition(round, after, "InfrastructureReady", kind, object, said.provisioned());
    round.mirror(after, "InfrastructureReady", Some(object), said.provisioned(), "WaitingForInfrastructure");
    for member in ["failureReason", "failureMessage"] {
        if let Some(failure) = object["status"][member].as_str().filter(|text| !text.is_empty()) {
            let failure = match member {
                "failureMessage" => format!(
                    "Failure detected from referenced resource {}/{}, Kind={kind} with name \"{}\": {failure}",
                    group_kind.group,
                    text(&object["apiVersion"]).rsplit('/').next().unwrap_or_default(),
                    name(object),
                ),
                _ => failure.to_owned(),
            };
            after["status"]["deprecated"]["v1beta1"][member] = failure.into();
        }
    }
    if !(said.provisioned() || was) || is_deleting(object) {
        return;
    }
    let Some(id) = said.provider_id() else { return };
    after["spec"]["providerID"] = id.into();
    after["status"]["initialization"]["infrastructureProvisioned"] = true.into();
    if object["status"]["addresses"].is_array() {
        after["status"]["addresses"] = object["status"]["addresses"].clone();
    }
    if let Some(domain) = said.failure_domain() {
        after["spec"]["failureDomain"] = domain.into();
        after["status"]["failureDomain"] = domain.into();
    }
}

fn find_node(round: &mut Round<'_>, before: &Value, after: &mut Value) {
    let Some(id) = after["spec"]["providerID"].as_str() else { return };
    let Some(workload) = round.workload else { return };
    let Some(node) = workload.nodes().find(|node| node["spec"]["providerID"] == id) else { return };
    after["status"]["nodeRef"] = json!({"name": name(node)});
    after["status"]["nodeInfo"] = node["status"]["nodeInfo"].clone();
    let mut wanted = node["metadata"]["annotations"].clone();
    let controller =
        list(&before["metadata"]["ownerReferences"]).iter().find(|one| one["controller"] == true);
    for (annotation, value) in [
        (NODE_CLUSTER_NAME, Some(round.cluster_name())),
        (NODE_CLUSTER_NAMESPACE, Some(round.namespace())),
        (NODE_MACHINE, Some(name(before))),
        (NODE_OWNER_KIND, controller.map(|one| text(&one["kind"]))),
        (NODE_OWNER_NAME, controller.map(|one| text(&one["name"]))),
    ] {
        if let Some(value) = value {
            wanted[annotation] = value.into();
        }
    }
    if wanted != node["metadata"]["annotations"] {
        round.act(Action::PatchThere {
            plural: "nodes",
            key: key(node),
            patch: json!({"metadata": {"annotations": wanted}}),
        });
    }
}

/// Drains and deletes step by step.
fn delete(round: &mut Round<'_>, before: &Value, after: &mut Value) {
    if !has_finalizer(before, MACHINE_FINALIZER) {
        return;
    }
    let deleting = |round: &Round<'_>, after: &mut Value, reason: &str, message: &str| {
        round.condition(after, "Deleting", true, reason, message);
    };
    let infrastructure = round.referred(&before["spec"]["infrastructureRef"]);
    let node = node_to_delete(round, before);
    if let Some(node) = &node {
        if let Some(hooks) = hooks(before, PRE_DRAIN_HOOK) {
            deleting(round, after, "WaitingForPreDrainHook", &waiting_for("pre-drain", &hooks));
            return;
        }
        // Drains even if the infrastructure is already being deleted: its pods run as long as it exists.
        if infrastructure.is_some()
            && annotation(before, EXCLUDE_DRAINING).is_none()
            && !drained(round, before, after, node)
        {
            return;
        }
    }
    if let Some(hooks) = hooks(before, PRE_TERMINATE_HOOK) {
        deleting(round, after, "WaitingForPreTerminateHook", &waiting_for("pre-terminate", &hooks));
        return;
    }
    for (found, reason) in [
        (infrastructure, "WaitingForInfrastructureDeletion"),
        (round.referred(&before["spec"]["bootstrap"]["configRef"]), "WaitingForBootstrapDeletion"),
    ] {
        let Some((kind, object)) = found else { continue };
        deleting(round, after, reason, &format!("Waiting for {} to be deleted", kind.kind));
        if !is_deleting(object) {
            round.act(Action::Delete(kind, key(object)));
        }
        return;
    }
    if let Some(node) = node
        && round.workload.is_some_and(|workload| workload.node(&node).is_some())
        && !gave_up(round, before)
    {
        deleting(round, after, "DeletingNode", "");
        round.act(Action::DeleteNode { machine: key(before), node });
        return;
    }
    deleting(round, after, "DeletionCompleted", "Deletion completed");
    remove_finalizer(after, MACHINE_FINALIZER);
}

/// The node to drain and delete with its machine: no node if the cluster or the control plane is being deleted, or for
/// the last machine of a control plane.
fn node_to_delete(round: &Round<'_>, machine: &Value) -> Option<String> {
    let node = machine["status"]["nodeRef"]["name"].as_str()?;
    let going = is_deleting(round.cluster)
        || round
            .referred(&round.cluster["spec"]["controlPlaneRef"])
            .is_some_and(|(_, control_plane)| is_deleting(control_plane));
    let is_control_plane = |one: &Value| label(one, CONTROL_PLANE_LABEL).is_some();
    let last = is_control_plane(machine)
        && round.of(Kind::Machine).into_iter().filter(|one| is_control_plane(one)).count() < 2;
    (!going && !last && round.workload.is_some()).then(|| node.to_owned())
}

/// Whether the timeout of the node's deletion has passed.
fn gave_up(round: &mut Round<'_>, machine: &Value) -> bool {
    let limit =
        machine["spec"]["deletion"]["nodeDeletionTimeoutSeconds"].as_u64().unwrap_or(NODE_DELETION_SECONDS);
    let since = round.objects.stuck_nodes.get(&key(machine)).copied();
    // Zero means no timeout.
    limit > 0 && since.is_some_and(|since| round.has_come(since + Duration::from_secs(limit)))
}

fn hooks(machine: &Value, prefix: &str) -> Option<Vec<String>> {
    let annotations = machine["metadata"]["annotations"].as_object()?;
    let hooks: Vec<String> = annotations.keys().filter(|name| name.starts_with(prefix)).cloned().collect();
    (!hooks.is_empty()).then_some(hooks)
}

fn waiting_for(what: &str, hooks: &[String]) -> String {
    format!("Waiting for {what} hooks to succeed (hooks: {})", hooks.join(","))
}

/// Whether the node has been drained, or the timeout has passed.
fn drained(round: &mut Round<'_>, before: &Value, after: &mut Value, node: &str) -> bool {
    const DONE: &str = "DrainingSucceeded";
    let old = list(&before["status"]["deprecated"]["v1beta1"]["conditions"]);
    if old.iter().any(|one| one["type"] == DONE && one["status"] == "True") {
        return true;
    }
    let started = time(&before["status"]["deletion"]["nodeDrainStartTime"]).unwrap_or(round.now);
    after["status"]["deletion"]["nodeDrainStartTime"] = seconds(started).into();
    let limit = before["spec"]["deletion"]["nodeDrainTimeoutSeconds"].as_u64().filter(|limit| *limit > 0);
    let over = limit.is_some_and(|limit| round.has_come(started + Duration::from_secs(limit)));
    let drain = round.objects.drains.get(&key(before)).copied();
    if over || drain.is_some_and(|drain| drain.remaining == Some(0)) {
        round.old_condition_holds(after, DONE);
        return true;
    }
    let rest = drain
        .and_then(|drain| drain.remaining)
        .map(|count| format!(" {count} pods remain"))
        .unwrap_or_default();
    let message = format!("Drain not completed yet (started at {}):{rest}", seconds(started));
    round.condition(after, "Deleting", true, "DrainingNode", &message);
    round.old_condition(after, DONE, false, ("Info", "Draining", "Draining the node before deletion"));
    if drain.is_none_or(|drain| round.has_come(drain.at + DRAIN_INTERVAL)) {
        round.act(Action::Drain { machine: key(before), node: node.to_owned() });
    }
    false
}

/// Sets phase and conditions.
fn summarize(round: &mut Round<'_>, before: &Value, after: &mut Value) {
    let deleting = is_deleting(before);
    if !deleting {
        round.condition(after, "Deleting", false, "NotDeleting", "");
    }
    round.condition(after, "Updating", false, "NotUpdating", "");
    round.condition(after, "Paused", false, "NotPaused", "");
    if let Some(up_to_date) = is_up_to_date(round, before) {
        round.named_condition(after, "UpToDate", up_to_date);
    }
    node_conditions(round, after);
    if let Some(health) = health_check::check(round, before) {
        let (reason, message) = health.unhealthy.clone().unwrap_or(("HealthCheckSucceeded", String::new()));
        let well = health.unhealthy.is_none();
        round.condition(after, "HealthCheckSucceeded", well, reason, &message);
        round.old_condition(after, "HealthCheckSucceeded", well, ("Warning", reason, &message));
        if health.remediate {
            let waits = "Waiting for remediation";
            round.condition(after, "OwnerRemediated", false, "WaitingForRemediation", waits);
            round.old_condition(after, "OwnerRemediated", false, ("Warning", "WaitingForRemediation", waits));
        }
    }
    let parts = ["BootstrapConfigReady", "InfrastructureReady", "NodeHealthy"];
    let missing: Vec<String> = parts
        .into_iter()
        .filter(|part| !is_true(after, part))
        .map(|part| {
            format!(
                "* {part}: {}",
                condition_of(after, part).map(|one| text(&one["message"])).unwrap_or_default()
            )
        })
        .collect();
    let ready = missing.is_empty() && !deleting;
    round.worded_condition(after, "Ready", ready, "Ready", &missing.join("\n"));
    available(round, after, ready);
    old_summary(round, after, &["BootstrapReady", "InfrastructureReady", "NodeHealthy"]);
    let is = |member: &str| after["status"]["initialization"][member] == true;
    let phase = match () {
        () if deleting => "Deleting",
        () if is("infrastructureProvisioned") && after["status"]["nodeRef"]["name"].is_string() => "Running",
        () if after["spec"]["providerID"].is_string() => "Provisioned",
        () if is("bootstrapDataSecretCreated") => "Provisioning",
        () => "Pending",
    };
    if before["status"]["phase"] != phase {
        after["status"]["lastUpdated"] = round.time().into();
    }
    after["status"]["phase"] = phase.into();
    observed(after);
}

fn node_conditions(round: &Round<'_>, after: &mut Value) {
    let reference = after["status"]["nodeRef"]["name"].as_str().map(str::to_owned);
    let old =
        |round: &Round<'_>, after: &mut Value, healthy: bool, severity: &str, reason: &str, message: &str| {
            round.old_condition(after, "NodeHealthy", healthy, (severity, reason, message));
        };
    let both = |round: &Round<'_>, after: &mut Value, status: &str, reason: (&str, &str), message: &str| {
        round.put_condition(after, "NodeReady", status, reason.0, message);
        round.put_condition(after, "NodeHealthy", status, reason.1, message);
    };
    let Some(reference) = reference else {
        let message = match after["spec"]["providerID"].as_str() {
            Some(id) => format!("Waiting for a Node with spec.providerID {id} to exist"),
            None => "Waiting for the infrastructure to report spec.providerID".to_owned(),
        };
        both(round, after, "Unknown", ("NodeDoesNotExist", "NodeDoesNotExist"), &message);
        return old(round, after, false, "Info", "WaitingForNodeRef", "");
    };
    let Some(workload) = round.workload else {
        return both(round, after, "Unknown", ("ConnectionDown", "ConnectionDown"), "Remote connection down");
    };
    let Some(node) = workload.node(&reference) else {
        let message = format!("Node {reference} has been deleted while the Machine still exists");
        both(round, after, "False", ("NodeDeleted", "NodeDeleted"), &message);
        return old(round, after, false, "Error", "NodeNotFound", "");
    };
    let said = condition_of(node, "Ready");
    let status = said.map_or("Unknown", |said| text(&said["status"]));
    let names = match status {
        "True" => ("NodeReady", "NodeHealthy"),
        "False" => ("NodeNotReady", "NodeNotHealthy"),
        _ => ("NodeReadyUnknown", "NodeHealthyUnknown"),
    };
    let message = match said {
        Some(said) if status != "True" => format!("* Node.Ready: {}", text(&said["message"])),
        None => "* Node.Ready: Condition not yet reported".to_owned(),
        Some(_) => String::new(),
    };
    both(round, after, status, names, &message);
    old(round, after, status == "True", "Warning", "NodeConditionsFailed", &message);
}

/// Whether the machine has been ready for `minReadySeconds`.
fn available(round: &mut Round<'_>, after: &mut Value, ready: bool) {
    let needed = after["spec"]["minReadySeconds"].as_u64().unwrap_or_default();
    let since = condition_of(after, "Ready").and_then(|one| time(&one["lastTransitionTime"]));
    let long = since.is_none_or(|since| round.has_come(since + Duration::from_secs(needed)));
    let reason = match (ready, long) {
        (true, true) => "Available",
        (true, false) => "WaitingForMinReadySeconds",
        _ => "NotReady",
    };
    round.condition(after, "Available", ready && long, reason, "");
}

/// Whether the machine matches its owner's current spec; `None` without an owner.
fn is_up_to_date(round: &Round<'_>, machine: &Value) -> Option<bool> {
    let control_plane = owner_of(machine, Kind::KubeadmControlPlane);
    if let Some(owner) = control_plane.and_then(|name| round.get(Kind::KubeadmControlPlane, name)) {
        return Some(control_plane::is_up_to_date(round, owner, machine));
    }
    let set = owner_of(machine, Kind::MachineSet).and_then(|name| round.get(Kind::MachineSet, name))?;
    let deployment = owner_of(set, Kind::MachineDeployment)?;
    Some(machine_deployment::is_current(round.get(Kind::MachineDeployment, deployment)?, set))
}
