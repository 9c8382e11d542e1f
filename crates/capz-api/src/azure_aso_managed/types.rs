//! The fields of the kinds with raw resources.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::common::{ApiEndpoint, Condition, Future, Initialization, V1Beta2Status};
use crate::object::object;

/// An object of Azure Service Operator as it was written, with its apiVersion, kind, metadata and spec.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawResource(pub Map<String, Value>);

impl JsonSchema for RawResource {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RawResource".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }
}

object! {
    /// The desired state of a managed cluster's infrastructure.
    AzureAsoManagedClusterSpec {
        /// The endpoint of the API server. Set by the controller.
        control_plane_endpoint: ApiEndpoint,
        /// Resources of Azure Service Operator, such as a ResourceGroup.
        resources: Vec<RawResource>,
    }

    /// The observed state of a managed cluster's infrastructure.
    AzureAsoManagedClusterStatus {
        /// What is complete, for Cluster API's contract v1beta2.
        initialization: Initialization,
        /// Conditions of the object.
        conditions: Vec<Condition>,
        /// Operations of Azure that had not ended at the last reconcile.
        long_running_operation_states: Vec<Future>,
        /// Whether all resources exist and the endpoint is known.
        ready: bool,
        /// The observed state of each resource.
        resources: Vec<ResourceStatus>,
        /// What Cluster API's contract v1beta2 asks.
        v1beta2: V1Beta2Status,
    }

    /// The desired state of a managed cluster's control plane.
    AzureAsoManagedControlPlaneSpec {
        /// Resources of Azure Service Operator, among them one ManagedCluster.
        resources: Vec<RawResource>,
        /// The version of Kubernetes. If it is not set, the ManagedCluster's own version counts.
        version: String,
    }

    /// The observed state of a managed cluster's control plane.
    AzureAsoManagedControlPlaneStatus {
        /// What is complete, for Cluster API's contract v1beta2.
        initialization: Initialization,
        /// The endpoint of the API server.
        control_plane_endpoint: ApiEndpoint,
        /// Conditions of the object.
        conditions: Vec<Condition>,
        /// Whether the API server has answered: the same as ready.
        initialized: bool,
        /// Operations of Azure that had not ended at the last reconcile.
        long_running_operation_states: Vec<Future>,
        /// Whether all resources exist and the API server can be used.
        ready: bool,
        /// The observed state of each resource.
        resources: Vec<ResourceStatus>,
        /// The version of Kubernetes that the control plane runs.
        version: String,
        /// What Cluster API's contract v1beta2 asks.
        v1beta2: V1Beta2Status,
    }

    /// The desired state of a node pool.
    AzureAsoManagedMachinePoolSpec {
        /// The ids of the nodes' machines, with azure:// before each. Set by the controller.
        #[serde(rename = "providerIDList")]
        provider_id_list: Vec<String>,
        /// Resources of Azure Service Operator, among them one ManagedClustersAgentPool.
        resources: Vec<RawResource>,
    }

    /// The observed state of a node pool.
    AzureAsoManagedMachinePoolStatus {
        /// What is complete, for Cluster API's contract v1beta2.
        initialization: Initialization,
        /// Conditions of the object.
        conditions: Vec<Condition>,
        /// Operations of Azure that had not ended at the last reconcile.
        long_running_operation_states: Vec<Future>,
        /// Whether all resources exist and the nodes' machines are known.
        ready: bool,
        /// The number of machines.
        replicas: i32,
        /// The observed state of each resource.
        resources: Vec<ResourceStatus>,
        /// What Cluster API's contract v1beta2 asks.
        v1beta2: V1Beta2Status,
    }

    /// The observed state of a resource.
    ResourceStatus {
        /// Whether Azure has the resource as its object describes it.
        #[schemars(required)]
        ready: bool,
        /// The object.
        #[schemars(required)]
        resource: ResourceHandle,
    }

    /// The kind and name of an object of Azure Service Operator.
    ResourceHandle {
        /// The group of its kind.
        #[schemars(required)]
        group: String,
        /// Its kind.
        #[schemars(required)]
        kind: String,
        /// Its name.
        #[schemars(required)]
        name: String,
        /// The version of its kind.
        #[schemars(required)]
        version: String,
    }
}
