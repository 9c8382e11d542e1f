//! Reconciles MachineSets: keeps the desired number of machines, cloned from templates.
//!
//! Left out: adopting machines by their labels, checks of kubeadm's version before machines are created, and a backoff
//! between failures.

use rand::Rng as _;
use serde_json::{Value, json};

use crate::clone::{Bootstrap, Plan, make, members};
use crate::cluster::{COUNTS, claim_template, counts};
use crate::names::{CLUSTER_NAME, DELETE_MACHINE, DEPLOYMENT_NAME, MACHINE_SET_FINALIZER, SET_NAME};
use crate::objects::{
    Kind, add_finalizer, add_owner, annotation, copy_members, has_finalizer, is_deleting, is_owned_by, key,
    name, number, observed, owner, owner_of, remove_finalizer, replicas, text,
};
use crate::round::{Action, Round, condition_of, is_true};

/// Reconciles all MachineSets of the cluster.
pub(crate) fn keep_all(round: &mut Round<'_>) {
    round.each(Kind::MachineSet, |round, before, after| {
        let machines = machines_of(round, before);
        if is_deleting(before) {
            delete(round, before, after, &machines);
        } else {
            keep(round, before, after, &machines);
        }
        summarize(round, before, after, &machines);
    });
}

/// The machines of a set.
pub(crate) fn machines_of<'a>(round: &Round<'a>, set: &Value) -> Vec<&'a Value> {
    round.of(Kind::Machine).into_iter().filter(|one| is_owned_by(one, set)).collect()
}

fn keep(round: &mut Round<'_>, before: &Value, after: &mut Value, machines: &[&Value]) {
    add_finalizer(after, MACHINE_SET_FINALIZER);
    after["metadata"]["labels"][CLUSTER_NAME] = round.cluster_name().into();
    let template = &before["spec"]["template"]["spec"];
    if owner_of(before, Kind::MachineDeployment).is_none() {
        add_owner(after, &owner(Kind::Cluster, round.cluster, false));
    }
    for reference in [&template["infrastructureRef"], &template["bootstrap"]["configRef"]] {
        if text(&reference["kind"]).ends_with("Template") {
            claim_template(round, reference);
        }
    }
    // Unhealthy machines are replaced.
    for machine in machines.iter().filter(|one| !is_deleting(one)) {
        if condition_of(machine, "OwnerRemediated").is_some_and(|one| one["status"] == "False") {
            round.act(Action::Delete(Kind::Machine.into(), key(machine)));
        }
    }
    let staying: Vec<&Value> = machines.iter().copied().filter(|one| !is_deleting(one)).collect();
    let (wanted, count) = (replicas(before), staying.len() as u64);
    for _ in count..wanted {
        if !control_plane_is_settled(round) {
            let why = "Waiting for the control plane to have its version";
            round.old_condition(after, "MachinesCreated", false, ("Error", "PreflightCheckFailed", why));
            return;
        }
        match make_machine(round, before) {
            Ok(()) => round.old_condition_holds(after, "MachinesCreated"),
            Err(why) => {
                let words = ("Error", "InfrastructureTemplateCloningFailed", why.as_str());
                return round.old_condition(after, "MachinesCreated", false, words);
            }
        }
    }
    let surplus = usize::try_from(count.saturating_sub(wanted)).unwrap_or_default();
    for machine in by_deletion_order(round, before, staying).into_iter().take(surplus) {
        round.act(Action::Delete(Kind::Machine.into(), key(machine)));
    }
}

/// Whether the control plane has its desired version: workers are upgraded after it.
fn control_plane_is_settled(round: &Round<'_>) -> bool {
    let Some((_, control_plane)) = round.referred(&round.cluster["spec"]["controlPlaneRef"]) else {
        return true;
    };
    let wanted = &control_plane["spec"]["version"];
    wanted.is_null() || control_plane["status"]["version"] == *wanted
}

fn make_machine(round: &mut Round<'_>, set: &Value) -> Result<(), String> {
    let template = &set["spec"]["template"];
    let mut labels = members(&template["metadata"], "labels");
    labels.insert(SET_NAME.to_owned(), name(set).into());
    if let Some(deployment) = owner_of(set, Kind::MachineDeployment) {
        labels.insert(DEPLOYMENT_NAME.to_owned(), deployment.into());
    }
    let mut spec = json!({});
    let copied = ["version", "failureDomain", "deletion", "readinessGates", "minReadySeconds", "bootstrap"];
    copy_members(&template["spec"], &mut spec, &copied);
    let configuration = &template["spec"]["bootstrap"]["configRef"];
    let plan = Plan {
        name: format!("{}-{}", name(set), round.suffix()),
        labels,
        annotations: members(&template["metadata"], "annotations"),
        owner: owner(Kind::MachineSet, set, true),
        spec,
        infrastructure: &template["spec"]["infrastructureRef"],
        bootstrap: if configuration.is_null() { Bootstrap::None } else { Bootstrap::Template(configuration) },
    };
    make(round, plan)
}

/// Sorts machines by order of deletion: first those with the annotation, then unhealthy ones, then by `deletion.order`.
fn by_deletion_order<'a>(round: &mut Round<'_>, set: &Value, machines: Vec<&'a Value>) -> Vec<&'a Value> {
    let order = text(&set["spec"]["deletion"]["order"]).to_owned();
    let mut ranked: Vec<_> = machines
        .into_iter()
        .map(|machine| {
            let asked = annotation(machine, DELETE_MACHINE).is_some();
            let has_node = !machine["status"]["nodeRef"].is_null();
            let chance: u32 = round.random.random();
            let born = text(&machine["metadata"]["creationTimestamp"]).to_owned();
            ((!asked, has_node && is_true(machine, "NodeHealthy")), born, chance, machine)
        })
        .collect();
    ranked.sort_by(|a, b| {
        let by_order = match order.as_str() {
            "Newest" => b.1.cmp(&a.1),
            "Oldest" => a.1.cmp(&b.1),
            _ => a.2.cmp(&b.2),
        };
        a.0.cmp(&b.0).then(by_order).then_with(|| name(a.3).cmp(name(b.3)))
    });
    ranked.into_iter().map(|(.., machine)| machine).collect()
}

fn delete(round: &mut Round<'_>, before: &Value, after: &mut Value, machines: &[&Value]) {
    if !has_finalizer(before, MACHINE_SET_FINALIZER) {
        return;
    }
    if machines.is_empty() {
        return remove_finalizer(after, MACHINE_SET_FINALIZER);
    }
    round.delete_all(&Kind::Machine.into(), machines.iter().copied());
}

fn summarize(round: &mut Round<'_>, before: &Value, after: &mut Value, machines: &[&Value]) {
    let wanted = replicas(before);
    let counts = counts(wanted, machines);
    copy_members(&counts, &mut after["status"], &COUNTS);
    let old = &mut after["status"]["deprecated"]["v1beta1"];
    copy_members(&counts, old, &["readyReplicas", "availableReplicas"]);
    old["fullyLabeledReplicas"] = counts["replicas"].clone();
    after["status"]["selector"] = format!("{SET_NAME}={}", name(before)).into();
    observed(after);
    let count = number(&counts["replicas"]);
    round.named_condition(after, "ScalingUp", count < wanted);
    round.named_condition(after, "ScalingDown", count > wanted);
    let ready = number(&counts["readyReplicas"]) == count;
    round.worded_condition(after, "MachinesReady", ready, "Ready", "");
    round.named_condition(after, "Deleting", is_deleting(before));
    round.old_condition(after, "MachinesReady", ready, ("Info", "WaitingForReady", ""));
}
