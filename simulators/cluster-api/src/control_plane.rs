//! Reconciles KubeadmControlPlanes: the first machine starts the cluster, the others join one by one once the API
//! answers, and changes roll.
//!
//! Left out: etcd (members, leadership, the hook that waits for it), health of single components, remediation, in-place
//! changes, and adopting machines. A machine is healthy here if its Node is ready.

use serde_json::{Value, json};

use crate::authorities::{AUTHORITIES, kubeconfig};
use crate::clone::{Bootstrap, Plan, is_clone_of, make, members};
use crate::cluster::{COUNTS, claim_template, counts, old_summary};
use crate::contract::{host_port, is_endpoint};
use crate::names::{
    CLUSTER_NAME, CONTROL_PLANE_FINALIZER, CONTROL_PLANE_LABEL, CONTROL_PLANE_NAME, DELETE_MACHINE,
};
use crate::objects::{
    Kind, add_finalizer, annotation, copy_members, has_finalizer, is_deleting, is_owned_by, key, label, list,
    name, number, observed, owner, remove_finalizer, replicas, text,
};
use crate::round::{Action, Round, is_true};

/// The annotation of a machine with the configuration that it was created from.
const MADE_FROM: &str = "controlplane.cluster.x-k8s.io/kubeadm-config-hash";

/// Reconciles the control plane of the cluster, of which there is at most one.
pub(crate) fn keep_all(round: &mut Round<'_>) {
    round.each(Kind::KubeadmControlPlane, |round, before, after| {
        let machines = machines_of(round, before);
        if is_deleting(before) {
            delete(round, before, after, &machines);
        } else {
            keep(round, before, after, &machines);
        }
        summarize(round, before, after, &machines);
    });
}

fn machines_of<'a>(round: &Round<'a>, control_plane: &Value) -> Vec<&'a Value> {
    let is_of = |one: &&Value| label(one, CONTROL_PLANE_LABEL).is_some() && is_owned_by(one, control_plane);
    round.of(Kind::Machine).into_iter().filter(is_of).collect()
}

fn keep(round: &mut Round<'_>, before: &Value, after: &mut Value, machines: &[&Value]) {
    add_finalizer(after, CONTROL_PLANE_FINALIZER);
    claim_template(round, &before["spec"]["machineTemplate"]["spec"]["infrastructureRef"]);
    if round.cluster["status"]["initialization"]["infrastructureProvisioned"] != true {
        return;
    }
    let me = owner(Kind::KubeadmControlPlane, before, true);
    let secret = |suffix: &str| round.get(Kind::Secret, &format!("{}-{suffix}", round.cluster_name()));
    if AUTHORITIES.iter().any(|(suffix, ..)| secret(suffix).is_none()) {
        let cluster = key(round.cluster);
        return round.act(Action::MakeAuthorities { cluster, owner: me });
    }
    round.condition(after, "CertificatesAvailable", true, "Available", "");
    round.old_condition_holds(after, "CertificatesAvailable");
    let endpoint = &round.cluster["spec"]["controlPlaneEndpoint"];
    if !is_endpoint(endpoint) {
        return;
    }
    if secret("kubeconfig").is_none() {
        let server = format!("https://{}", host_port(endpoint));
        let made =
            secret("ca").and_then(|authority| kubeconfig(&key(round.cluster), &server, authority, &me));
        if let Some(made) = made {
            round.act(Action::Create(Kind::Secret.into(), made));
        }
    }
    // kubeadm writes this ConfigMap once the API answers.
    if round.workload.is_some_and(|workload| workload.system("ConfigMap", "kubeadm-config").is_some()) {
        after["status"]["initialization"]["controlPlaneInitialized"] = true.into();
    }
    scale(round, before, after, machines);
}

fn scale(round: &mut Round<'_>, before: &Value, after: &mut Value, machines: &[&Value]) {
    let wanted = replicas(before);
    let count = machines.len() as u64;
    let initialized = after["status"]["initialization"]["controlPlaneInitialized"] == true;
    if !initialized {
        if machines.is_empty() && wanted > 0 {
            make_machine(round, before, after, machines, false);
        }
        return;
    }
    // One change at a time: only if all machines exist, have ready nodes, and none of them is being deleted.
    let settled = |one: &&Value| !is_deleting(one) && is_true(one, "NodeHealthy");
    let outdated: Vec<&Value> =
        machines.iter().copied().filter(|one| !is_up_to_date(round, before, one)).collect();
    let surge = before["spec"]["rollout"]["strategy"]["rollingUpdate"]["maxSurge"].as_u64().unwrap_or(1);
    let most = if outdated.is_empty() { wanted } else { wanted + surge };
    if !machines.iter().all(settled) {
        return;
    }
    if count < most && (count < wanted || surge > 0) {
        make_machine(round, before, after, machines, true);
    } else if count > wanted || !outdated.is_empty() {
        let candidates = if outdated.is_empty() { machines } else { &outdated };
        if let Some(machine) = to_delete(machines, candidates) {
            round.act(Action::Delete(Kind::Machine.into(), key(machine)));
        }
    }
}

/// The machine to delete: one with the annotation that requests it, otherwise the oldest in the failure domain with
/// most candidates, and then with most machines.
fn to_delete<'a>(all: &[&'a Value], candidates: &[&'a Value]) -> Option<&'a Value> {
    let of =
        |some: &[&Value], one: &Value| some.iter().filter(|other| domain_of(other) == domain_of(one)).count();
    let within = |one: &Value| (of(candidates, one), of(all, one));
    let rank = |one: &&Value| {
        let asked = annotation(one, DELETE_MACHINE).is_some();
        (
            !asked,
            std::cmp::Reverse(within(one)),
            text(&one["metadata"]["creationTimestamp"]).to_owned(),
            name(one).to_owned(),
        )
    };
    candidates.iter().copied().min_by_key(rank)
}

fn domain_of(machine: &Value) -> &str {
    text(&machine["spec"]["failureDomain"])
}

/// Whether a machine matches the control plane's current spec.
pub(crate) fn is_up_to_date(round: &Round<'_>, control_plane: &Value, machine: &Value) -> bool {
    let template = &control_plane["spec"]["machineTemplate"]["spec"]["infrastructureRef"];
    machine["spec"]["version"] == control_plane["spec"]["version"]
        && annotation(machine, MADE_FROM) == Some(fingerprint(control_plane).as_str())
        && round
            .referred(&machine["spec"]["infrastructureRef"])
            .is_none_or(|(_, object)| is_clone_of(object, template))
}

fn fingerprint(control_plane: &Value) -> String {
    let text = control_plane["spec"]["kubeadmConfigSpec"].to_string();
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn make_machine(round: &mut Round<'_>, before: &Value, after: &mut Value, machines: &[&Value], joins: bool) {
    let template = &before["spec"]["machineTemplate"];
    let machine_name = format!("{}-{}", name(before), round.suffix());
    let mut labels = members(&template["metadata"], "labels");
    labels.insert(CONTROL_PLANE_LABEL.to_owned(), "".into());
    labels.insert(CONTROL_PLANE_NAME.to_owned(), name(before).into());
    let mut annotations = members(&template["metadata"], "annotations");
    annotations.insert(MADE_FROM.to_owned(), fingerprint(before).into());
    let mut spec = json!({"version": before["spec"]["version"]});
    copy_members(&template["spec"], &mut spec, &["deletion", "readinessGates", "minReadySeconds"]);
    if let Some(domain) = next_domain(round, before, machines) {
        spec["failureDomain"] = domain.into();
    }
    let mut config = before["spec"]["kubeadmConfigSpec"].clone();
    if let Some(config) = config.as_object_mut() {
        if joins {
            config.remove("initConfiguration");
            config.entry("joinConfiguration").or_insert_with(|| json!({}))["controlPlane"] = json!({});
        } else {
            config.remove("joinConfiguration");
        }
    } else {
        config = if joins { json!({"joinConfiguration": {"controlPlane": {}}}) } else { json!({}) };
    }
    let plan = Plan {
        name: machine_name,
        labels,
        annotations,
        owner: owner(Kind::KubeadmControlPlane, before, true),
        spec,
        infrastructure: &template["spec"]["infrastructureRef"],
        bootstrap: Bootstrap::Spec(config),
    };
    match make(round, plan) {
        Ok(()) => round.old_condition_holds(after, "MachinesCreated"),
        Err(why) => round.old_condition(
            after,
            "MachinesCreated",
            false,
            ("Error", "InfrastructureTemplateCloningFailed", &why),
        ),
    }
}

/// The failure domain for control planes with the fewest up-to-date machines, then with the fewest machines, then by
/// name.
fn next_domain(round: &Round<'_>, control_plane: &Value, machines: &[&Value]) -> Option<String> {
    let domains =
        list(&round.cluster["status"]["failureDomains"]).iter().filter(|one| one["controlPlane"] == true);
    let stays = |one: &&&Value| is_up_to_date(round, control_plane, one) && !is_deleting(one);
    let new: Vec<&Value> = machines.iter().filter(stays).copied().collect();
    let of = |some: &[&Value], domain: &str| some.iter().filter(|one| domain_of(one) == domain).count();
    let rank = |domain: &&str| (of(&new, domain), of(machines, domain), (*domain).to_owned());
    domains.map(|one| text(&one["name"])).min_by_key(rank).map(str::to_owned)
}

/// Deletes the control plane after all workers, and after its machines.
fn delete(round: &mut Round<'_>, before: &Value, after: &mut Value, machines: &[&Value]) {
    if !has_finalizer(before, CONTROL_PLANE_FINALIZER) {
        return;
    }
    let workers = round.of(Kind::Machine).len() - machines.len();
    if workers > 0 || !round.of(Kind::MachinePool).is_empty() {
        let message = "Waiting for workers to be deleted";
        return round.condition(after, "Deleting", true, "WaitingForWorkersDeletion", message);
    }
    if !machines.is_empty() {
        round.delete_all(&Kind::Machine.into(), machines.iter().copied());
        let names: Vec<String> = machines.iter().map(|one| format!("* {}", name(one))).collect();
        return round.condition(after, "Deleting", true, "WaitingForMachineDeletion", &names.join("\n"));
    }
    round.condition(after, "Deleting", true, "DeletionCompleted", "Deletion completed");
    remove_finalizer(after, CONTROL_PLANE_FINALIZER);
}

fn summarize(round: &mut Round<'_>, before: &Value, after: &mut Value, machines: &[&Value]) {
    let wanted = replicas(before);
    if !is_deleting(before) {
        round.condition(after, "Deleting", false, "NotDeleting", "");
    }
    let counts = counts(wanted, machines);
    copy_members(&counts, &mut after["status"], &COUNTS);
    let updated = machines.iter().filter(|one| is_up_to_date(round, before, one)).count();
    after["status"]["upToDateReplicas"] = updated.into();
    let (count, ready) = (machines.len() as u64, number(&counts["readyReplicas"]));
    after["status"]["deprecated"]["v1beta1"]["readyReplicas"] = ready.into();
    after["status"]["deprecated"]["v1beta1"]["updatedReplicas"] = updated.into();
    after["status"]["deprecated"]["v1beta1"]["unavailableReplicas"] = wanted.saturating_sub(ready).into();
    after["status"]["selector"] =
        format!("{CLUSTER_NAME}={},{CONTROL_PLANE_LABEL}", round.cluster_name()).into();
    if let Some(lowest) =
        machines.iter().map(|one| text(&one["spec"]["version"])).min_by_key(|version| parts(version))
    {
        after["status"]["version"] = lowest.into();
    }
    observed(after);
    let initialized = after["status"]["initialization"]["controlPlaneInitialized"] == true;
    round.named_condition(after, "Initialized", initialized);
    // etcd needs a majority of its members.
    let available = initialized && ready * 2 > count && ready > 0 && !is_deleting(before);
    round.named_condition(after, "Available", available);
    let all_ready = ready == count;
    round.worded_condition(after, "MachinesReady", all_ready, "Ready", "");
    let rolling = updated as u64 != count;
    round.named_condition(after, "RollingOut", rolling);
    round.named_condition(after, "ScalingUp", count < wanted);
    let down = count > wanted;
    round.named_condition(after, "ScalingDown", down);
    round.old_condition(after, "Available", initialized, ("Info", "WaitingForKubeadmInit", ""));
    let message = format!("Scaling control plane to {wanted} replicas (actual {count})");
    let reason = if count < wanted { "ScalingUp" } else { "ScalingDown" };
    round.old_condition(after, "Resized", count == wanted, ("Warning", reason, &message));
    let message = format!(
        "Rolling {} replicas with outdated spec ({updated} replicas up to date)",
        count - updated as u64
    );
    round.old_condition(
        after,
        "MachinesSpecUpToDate",
        !rolling,
        ("Warning", "RollingUpdateInProgress", &message),
    );
    old_summary(round, after, &["Available", "MachinesCreated", "Resized", "MachinesSpecUpToDate"]);
}

/// The numbers of a version, for comparison.
pub(crate) fn parts(version: &str) -> Vec<u64> {
    version
        .trim_start_matches('v')
        .split(['.', '-', '+'])
        .take(3)
        .filter_map(|part| part.parse().ok())
        .collect()
}
