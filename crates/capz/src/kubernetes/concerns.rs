//! The parts of an object that other objects read. Changes of other parts wake no reconcile.
//!
//! | of | is read by | what |
//! |---|---|---|
//! | AzureClusterIdentity | all clusters that use it | specification, whether it is being deleted |
//! | Cluster | everything that belongs to it | specification, whether it has infrastructure, whether it is being deleted |
//! | Machine | its AzureMachine | specification, labels, annotations, whether it is being deleted |
//! | Machine | its AzureMachinePoolMachine | the same, and its status: its node, and how far it is drained |
//! | MachinePool | its AzureMachinePool | specification, annotations, whether it is being deleted |
//! | AzureManagedControlPlane | its AzureManagedCluster and its node pools | the same, whether it is initialized, and the version of an automatic upgrade |
//! | our own kinds | themselves, and objects made from them | everything but their status, which is written here |

use crate::kubernetes::core::{Cluster, ClusterStatus, Machine};
use crate::kubernetes::kinds::{
    AzureClusterIdentity, AzureManagedControlPlane, Object, ObjectKind, POOL_MACHINE,
};

/// Whether only the status changed.
pub(crate) fn same_but_status<K: ObjectKind>(before: &Object<K>, after: &Object<K>) -> bool {
    before.metadata.generation == after.metadata.generation && same_declaration(before, after)
}

/// Whether nothing changed, in the declaration or in the status, which other objects read.
pub(crate) fn same<K: ObjectKind>(before: &Object<K>, after: &Object<K>) -> bool {
    same_but_status(before, after) && before.status == after.status
}

/// Whether the declared parts are unchanged: everything but what this program writes itself, which also increases the
/// generation.
pub(crate) fn same_declaration<K: ObjectKind>(before: &Object<K>, after: &Object<K>) -> bool {
    let (one, other) = (&before.metadata, &after.metadata);
    before.spec == after.spec
        && same_life(before, after)
        && one.labels == other.labels
        && one.annotations == other.annotations
        && one.finalizers == other.finalizers
        && one.owner_references == other.owner_references
}

/// Whether an identity is unchanged for the clusters that use it. Finalizers of other clusters do not matter to them.
pub(crate) fn same_identity(before: &AzureClusterIdentity, after: &AzureClusterIdentity) -> bool {
    before.spec == after.spec && same_life(before, after)
}

/// Whether a Cluster is unchanged for the objects that belong to it.
pub(crate) fn same_cluster(before: &Cluster, after: &Cluster) -> bool {
    let has_network =
        |cluster: &Cluster| cluster.status.as_ref().is_some_and(ClusterStatus::has_infrastructure);
    before.spec == after.spec && same_life(before, after) && has_network(before) == has_network(after)
}

/// Whether an AzureManagedControlPlane is unchanged for itself and for its cluster's other objects, which wait until it
/// is initialized.
pub(crate) fn same_control_plane(
    before: &AzureManagedControlPlane,
    after: &AzureManagedControlPlane,
) -> bool {
    let read = |object: &AzureManagedControlPlane| {
        object.status.as_ref().map(|it| (it.initialized, it.auto_upgrade_version.clone()))
    };
    same_but_status(before, after) && read(before) == read(after)
}

/// Whether a Machine is unchanged for its infrastructure.
pub(crate) fn same_machine(before: &Machine, after: &Machine) -> bool {
    let reads_status = after.spec.infrastructure_ref.kind == POOL_MACHINE;
    same_but_status(before, after) && !(reads_status && before.status != after.status)
}

/// Whether both are the same object, and both or neither are being deleted.
fn same_life<K: ObjectKind>(before: &Object<K>, after: &Object<K>) -> bool {
    let (one, other) = (&before.metadata, &after.metadata);
    one.uid == other.uid && one.deletion_timestamp.is_some() == other.deletion_timestamp.is_some()
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn read<T: DeserializeOwned>(kind: &str, change: &Value) -> T {
        let mut object = json!({ "apiVersion": "g/v", "kind": kind,
            "metadata": { "name": "n", "uid": "u", "annotations": {} }, "spec": {}, "status": {} });
        for (member, more) in change.as_object().unwrap() {
            object[member].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        }
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn what_nobody_reads_concerns_nobody() {
        let goes = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
        let noted = json!({ "metadata": { "annotations": { "a": "b" } } });
        let ready =
            json!({ "status": { "conditions": [{ "type": "NodeReady", "status": "True", "reason": "r" }] } });
        let none = json!({});
        for (change, same) in [
            (json!({ "spec": { "paused": true } }), false),
            (json!({ "status": { "infrastructureReady": true } }), false),
            (json!({ "status": { "initialization": { "infrastructureProvisioned": true } } }), false),
            (json!({ "status": { "phase": "Provisioned", "conditions": [] } }), true),
            (goes.clone(), false),
            (noted.clone(), true),
        ] {
            assert_eq!(same_cluster(&read("Cluster", &none), &read("Cluster", &change)), same, "{change}");
        }
        let pool = json!({ "spec": { "infrastructureRef": { "kind": POOL_MACHINE } } });
        for (base, change, same) in [
            (&none, &ready, true),
            (&pool, &ready, false),
            (&none, &noted, false),
            (&none, &goes, false),
            (&none, &none, true),
        ] {
            let mut after = change.clone();
            after["spec"] = base["spec"].clone();
            if after["spec"].is_null() {
                after["spec"] = json!({});
            }
            assert_eq!(
                same_machine(&read("Machine", base), &read("Machine", &after)),
                same,
                "{base} {change}"
            );
        }
        let counted = json!({ "metadata": { "generation": 2 } });
        let wanted: Machine = read("Machine", &none);
        for (change, same) in
            [(&counted, true), (&ready, true), (&noted, false), (&goes, false), (&pool, false)]
        {
            assert_eq!(same_declaration(&wanted, &read("Machine", change)), same, "{change}");
        }
        let finalizers = json!({ "metadata": { "finalizers": ["a"] } });
        for (change, same) in
            [(finalizers, true), (goes, false), (json!({ "spec": { "tenantID": "t" } }), false)]
        {
            let kind = "AzureClusterIdentity";
            assert_eq!(same_identity(&read(kind, &none), &read(kind, &change)), same, "{change}");
        }
    }
}
