//! The last System pool of a cluster: AKS runs the cluster's own pods on System pools, and needs one.

use serde_json::Value;

use crate::context::{Context, Lookup};
use crate::field_error::{Field, FieldErrors};

/// The label with the mode of a pool.
pub const MODE_LABEL: &str = "azuremanagedmachinepool.infrastructure.cluster.x-k8s.io/agentpoolmode";
/// The mode of pools that run the cluster's own pods.
pub const SYSTEM: &str = "System";

/// The label with the name of an object's cluster.
const CLUSTER_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// The annotation with which clusterctl deletes the object that it has moved elsewhere.
const MOVED: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";

/// Whether a stored pool may be its cluster's last System pool: then the others have to be looked up before it goes.
pub(crate) fn may_be_last(object: &Value) -> bool {
    let metadata = &object["metadata"];
    object["spec"]["mode"] == SYSTEM
        && metadata["labels"][CLUSTER_LABEL].as_str().is_some_and(|name| !name.is_empty())
        && metadata["annotations"].get(MOVED).is_none()
        && metadata.get("deletionTimestamp").is_none_or(Value::is_null)
}

/// Validates the deletion of a pool.
pub fn validate_deletion(name: &str, context: &Context) -> FieldErrors {
    FieldErrors::of(|object| check_others(name, "delete it", context, &object.child("spec.mode")))
}

/// Refuses an act on a System pool after which the cluster would have none.
pub(super) fn check_others(name: &str, act: &str, context: &Context, mode: &Field<'_>) {
    match &context.system_pools {
        Lookup::Found(pools) if !pools.cluster_goes && pools.others == 0 => mode.forbidden(format_args!(
            "{name} is the last System pool of its cluster, and AKS needs one: create another System pool, then {act}; \
             or delete the Cluster. If the MachinePool of {name} is deleted already, docs/clusters/managed-pools.md \
             says how to keep the pool"
        )),
        Lookup::Failed(reason) => mode.forbidden(format_args!(
            "whether the cluster of {name} has another System pool is unknown: {reason}; try again"
        )),
        Lookup::Found(_) | Lookup::NotNeeded => {}
    }
}
