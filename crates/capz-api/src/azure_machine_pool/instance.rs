//! AzureMachinePoolMachine: an instance of a scale set.

use crate::common::{Condition, Future, Initialization, ObjectReference, V1Beta2Status};
use crate::field_error::FieldErrors;
use crate::object::object;
use crate::text::text;

object! {
    /// The identity of an instance of a scale set.
    AzureMachinePoolMachineSpec {
        /// The instance's id in the scale set.
        #[serde(rename = "instanceID")]
        instance_id: String,
        /// The id of the instance, with azure:// before it.
        #[serde(rename = "providerID")]
        #[schemars(required)]
        provider_id: String,
    }

    /// The observed state of an instance of a scale set.
    AzureMachinePoolMachineStatus {
        /// What is complete, for Cluster API's contract v1beta2.
        initialization: Initialization,
        /// Conditions of the instance.
        conditions: Vec<Condition>,
        /// The message of a terminal failure of the instance.
        failure_message: String,
        /// The reason of a terminal failure of the instance, in one word.
        failure_reason: String,
        /// The name of the instance.
        instance_name: String,
        /// Whether the instance has the latest model of the scale set.
        latest_model_applied: bool,
        /// Operations of Azure that had not ended at the last reconcile.
        long_running_operation_states: Vec<Future>,
        /// The node of the instance.
        #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
        node_ref: ObjectReference,
        /// The state of the instance in Azure.
        provisioning_state: String,
        /// Whether the instance's node is ready.
        ready: bool,
        /// The version of Kubernetes of the instance's node.
        version: String,
        /// What Cluster API's contract v1beta2 asks.
        v1beta2: V1Beta2Status,
    }
}

/// Validates an instance; `old` is its previous version: it keeps its instance.
pub fn validate_instance(
    new: &AzureMachinePoolMachineSpec,
    old: Option<&AzureMachinePoolMachineSpec>,
) -> FieldErrors {
    let before = old.map(|old| text(&old.provider_id)).unwrap_or_default();
    let now = text(&new.provider_id);
    FieldErrors::of(|object| {
        let is_changed = !before.is_empty() && before != now;
        object.child("spec.providerID").invalid_if(is_changed, now, "providerID is immutable");
    })
}
