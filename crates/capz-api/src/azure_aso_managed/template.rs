//! The fields of the templates of kinds with raw resources.

use super::types::RawResource;
use crate::object::object;

object! {
    /// The spec of a template of AzureASOManagedClusters.
    AzureAsoManagedClusterTemplateSpec {
        /// The template.
        #[schemars(required)]
        template: AzureAsoManagedClusterTemplateResource,
    }

    /// A template of AzureASOManagedClusters.
    AzureAsoManagedClusterTemplateResource {
        /// The infrastructure of managed clusters.
        spec: AzureAsoManagedClusterTemplateResourceSpec,
    }

    /// What AzureASOManagedClusters of a template have.
    AzureAsoManagedClusterTemplateResourceSpec {
        /// Resources of Azure Service Operator, such as a ResourceGroup.
        resources: Vec<RawResource>,
    }

    /// The spec of a template of AzureASOManagedControlPlanes.
    AzureAsoManagedControlPlaneTemplateSpec {
        /// The template.
        #[schemars(required)]
        template: AzureAsoManagedControlPlaneTemplateResource,
    }

    /// A template of AzureASOManagedControlPlanes.
    AzureAsoManagedControlPlaneTemplateResource {
        /// The control planes of managed clusters.
        spec: AzureAsoManagedControlPlaneTemplateResourceSpec,
    }

    /// What AzureASOManagedControlPlanes of a template have.
    AzureAsoManagedControlPlaneTemplateResourceSpec {
        /// Resources of Azure Service Operator, among them one ManagedCluster.
        resources: Vec<RawResource>,
        /// The version of Kubernetes.
        version: String,
    }

    /// The spec of a template of AzureASOManagedMachinePools.
    AzureAsoManagedMachinePoolTemplateSpec {
        /// The template.
        #[schemars(required)]
        template: AzureAsoManagedMachinePoolTemplateResource,
    }

    /// A template of AzureASOManagedMachinePools.
    AzureAsoManagedMachinePoolTemplateResource {
        /// The node pools of managed clusters.
        spec: AzureAsoManagedMachinePoolTemplateResourceSpec,
    }

    /// What AzureASOManagedMachinePools of a template have.
    AzureAsoManagedMachinePoolTemplateResourceSpec {
        /// Resources of Azure Service Operator, among them one ManagedClustersAgentPool.
        resources: Vec<RawResource>,
        /// A version that is not used: the version of Kubernetes of a pool is its MachinePool's.
        version: String,
    }
}
