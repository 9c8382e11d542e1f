//! Reconciles MachinePools: adopts the objects that a pool refers to, copies the provider's list of instances, and
//! creates a Machine for each instance that the provider represents as an object.
//!
//! Left out: nodes of pools whose instances are not objects are neither drained nor annotated.

use serde_json::{Value, json};

use crate::clone::does_not_exist;
use crate::contract::{ProviderStatus, claim};
use crate::names::{CLUSTER_NAME, MACHINE_POOL_FINALIZER, POOL_NAME, REPLICAS_MANAGED_BY};
use crate::objects::{
    GroupKind, Kind, add_finalizer, add_owner, annotation, copy_members, has_finalizer, hash, is_deleting,
    key, label, list, name, number, observed, owner, reference_to, remove_finalizer, replicas, text, uid,
};
use crate::round::{Action, Round, is_true};

/// The reason of conditions about missing references.
const INCORRECT_REFERENCE: &str = "IncorrectExternalRef";

/// Reconciles all MachinePools of the cluster.
pub(crate) fn keep_all(round: &mut Round<'_>) {
    round.each(Kind::MachinePool, |round, before, after| {
        if is_deleting(before) {
            delete(round, before, after);
        } else {
            add_finalizer(after, MACHINE_POOL_FINALIZER);
            add_owner(after, &owner(Kind::Cluster, round.cluster, false));
            after["metadata"]["labels"][CLUSTER_NAME] = round.cluster_name().into();
            if before["spec"]["replicas"].is_null() {
                after["spec"]["replicas"] = 1.into();
            }
            bootstrap(round, before, after);
            infrastructure(round, before, after);
        }
        nodes(round, after);
        summarize(round, before, after);
    });
}

fn bootstrap(round: &mut Round<'_>, before: &Value, after: &mut Value) {
    let template = &before["spec"]["template"]["spec"];
    let Some((kind, config)) = round.referred(&template["bootstrap"]["configRef"]) else {
        let given = template["bootstrap"]["dataSecretName"].is_string();
        after["status"]["initialization"]["bootstrapDataSecretCreated"] = given.into();
        let why = does_not_exist(&template["bootstrap"]["configRef"]);
        return round.old_condition(after, "BootstrapReady", given, ("Error", INCORRECT_REFERENCE, &why));
    };
    claim(round, &kind, config, &owner(Kind::MachinePool, before, true), &[]);
    let secret = ProviderStatus::by(round, &kind, config).data_secret();
    if let Some(secret) = secret {
        after["spec"]["template"]["spec"]["bootstrap"]["dataSecretName"] = secret.into();
        after["status"]["initialization"]["bootstrapDataSecretCreated"] = true.into();
    }
    round.old_condition(after, "BootstrapReady", secret.is_some(), ("Info", "WaitingForDataSecret", ""));
}

fn infrastructure(round: &mut Round<'_>, before: &Value, after: &mut Value) {
    let reference = &before["spec"]["template"]["spec"]["infrastructureRef"];
    let Some((kind, pool)) = round.referred(reference) else {
        let words = ("Error", INCORRECT_REFERENCE, &*does_not_exist(reference));
        return round.old_condition(after, "InfrastructureReady", false, words);
    };
    claim(round, &kind, pool, &owner(Kind::MachinePool, before, true), &[]);
    let provisioned = ProviderStatus::by(round, &kind, pool).provisioned();
    after["status"]["initialization"]["infrastructureProvisioned"] = provisioned.into();
    round.mirror(after, "InfrastructureReady", Some(pool), provisioned, "WaitingForInfrastructure");
    if is_deleting(pool) {
        return;
    }
    if let Some(machine) =
        pool["status"]["infrastructureMachineKind"].as_str().filter(|kind| !kind.is_empty())
    {
        machines(round, before, &GroupKind::new(&kind.group, machine));
    }
    if !provisioned {
        return;
    }
    let ids = &pool["spec"]["providerIDList"];
    copy_members(&pool["status"], &mut after["status"], &["replicas"]);
    if list(ids).is_empty() && number(&pool["status"]["replicas"]) != 0 {
        return;
    }
    after["spec"]["providerIDList"] = list(ids).to_vec().into();
}

/// Creates a Machine for each infrastructure machine without one.
fn machines(round: &mut Round<'_>, pool: &Value, kind: &GroupKind) {
    let in_pool = label_value(name(pool));
    let all = round.objects.belonging(kind, &key(round.cluster));
    let of_pool = all.filter(|one| label(one, POOL_NAME) == Some(in_pool.as_str()));
    let of_pool: Vec<&Value> = of_pool.collect();
    let known = round.of(Kind::Machine);
    for theirs in of_pool {
        let has_one = known.iter().any(|one| {
            let reference = &one["spec"]["infrastructureRef"];
            reference["name"] == theirs["metadata"]["name"] && reference["kind"] == kind.kind.as_str()
        });
        if has_one || is_deleting(theirs) {
            continue;
        }
        let template = &pool["spec"]["template"]["metadata"];
        let mut labels = template["labels"].as_object().cloned().unwrap_or_default();
        labels.insert(POOL_NAME.to_owned(), in_pool.as_str().into());
        labels.insert(CLUSTER_NAME.to_owned(), round.cluster_name().into());
        let mut spec = json!({"clusterName": round.cluster_name(), "bootstrap": {"dataSecretName": ""},
            "infrastructureRef": reference_to(kind, name(theirs))});
        copy_members(&pool["spec"]["template"]["spec"], &mut spec, &["deletion"]);
        let version = theirs["spec"]["providerID"].as_str().and_then(|id| {
            let node = round.workload?.nodes().find(|node| node["spec"]["providerID"] == id)?;
            node["status"]["nodeInfo"]["kubeletVersion"].as_str()
        });
        if let Some(version) = version {
            spec["version"] = version.into();
        }
        let machine = json!({"apiVersion": Kind::Machine.api_version(), "kind": "Machine", "spec": spec,
            "metadata": {"namespace": round.namespace(), "name": name(theirs), "labels": labels,
                "annotations": template["annotations"].as_object().cloned().unwrap_or_default(),
                "ownerReferences": [owner(Kind::MachinePool, pool, true)]}});
        round.act(Action::Create(Kind::Machine.into(), machine));
    }
}

/// A label value for a name: long names are hashed.
fn label_value(name: &str) -> String {
    use base64::Engine as _;
    if name.len() <= 63 {
        return name.to_owned();
    }
    let hash = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(hash(name).to_be_bytes());
    format!("hash_{hash}_z")
}

/// The nodes of the instances, and the number of ready ones.
fn nodes(round: &mut Round<'_>, after: &mut Value) {
    let Some(workload) = round.workload else { return };
    let ids = list(&after["spec"]["providerIDList"]).to_vec();
    let known: Vec<&Value> =
        workload.nodes().filter(|node| ids.contains(&node["spec"]["providerID"])).collect();
    let ready = known.iter().filter(|node| is_true(node, "Ready")).count() as u64;
    after["status"]["nodeRefs"] = known
        .iter()
        .map(|node| json!({"apiVersion": "v1", "kind": "Node", "name": name(node), "uid": uid(node)}))
        .collect();
    for member in ["readyReplicas", "availableReplicas"] {
        after["status"][member] = ready.into();
        after["status"]["deprecated"]["v1beta1"][member] = ready.into();
    }
    after["status"]["upToDateReplicas"] = ready.into();
    let missing = number(&after["status"]["replicas"]).saturating_sub(ready);
    after["status"]["deprecated"]["v1beta1"]["unavailableReplicas"] = missing.into();
}

/// Deletes the configuration and the provider's pool; once they are gone, so are the Machines.
fn delete(round: &mut Round<'_>, before: &Value, after: &mut Value) {
    if !has_finalizer(before, MACHINE_POOL_FINALIZER) {
        return;
    }
    let template = &before["spec"]["template"]["spec"];
    let mut waits = false;
    for reference in [&template["bootstrap"]["configRef"], &template["infrastructureRef"]] {
        if let Some((kind, object)) = round.referred(reference) {
            waits = true;
            if !is_deleting(object) {
                round.act(Action::Delete(kind, key(object)));
            }
        }
    }
    if !waits {
        remove_finalizer(after, MACHINE_POOL_FINALIZER);
    }
}

fn summarize(round: &mut Round<'_>, before: &Value, after: &mut Value) {
    let wanted = replicas(after);
    let ready = number(&after["status"]["readyReplicas"]);
    let is = |after: &Value, member: &str| after["status"]["initialization"][member] == true;
    let managed = annotation(before, REPLICAS_MANAGED_BY).is_some_and(|by| by != "false");
    let provisioned = is(after, "infrastructureProvisioned");
    let phase = match () {
        () if is_deleting(before) => "Deleting",
        () if provisioned && ready == wanted => "Running",
        () if provisioned && managed => "Scaling",
        () if provisioned && ready < wanted => "ScalingUp",
        () if provisioned => "ScalingDown",
        () if !list(&after["status"]["nodeRefs"]).is_empty() => "Provisioned",
        () if is(after, "bootstrapDataSecretCreated") => "Provisioning",
        () => "Pending",
    };
    after["status"]["phase"] = phase.into();
    after["status"]["selector"] = format!("{POOL_NAME}={}", text(&before["metadata"]["name"])).into();
    observed(after);
    let all = ready == number(&after["status"]["replicas"]);
    round.old_condition(after, "ReplicasReady", all, ("Info", "WaitingForReplicasReady", ""));
    crate::cluster::old_summary(round, after, &["BootstrapReady", "InfrastructureReady", "ReplicasReady"]);
}
