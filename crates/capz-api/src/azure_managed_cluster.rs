//! AzureManagedCluster: the endpoint of a cluster that Azure manages, for Cluster API, which wants such an object beside
//! the AzureManagedControlPlane; and AzureManagedClusterTemplate, from which they are created. Both are admitted as they
//! are.

use crate::common::{ApiEndpoint, Initialization, V1Beta2Status};
use crate::object::object;

object! {
    /// The desired state of the endpoint of a managed cluster.
    AzureManagedClusterSpec {
        /// The endpoint of the API server. Set by the controller.
        control_plane_endpoint: ApiEndpoint,
    }

    /// The observed state of the endpoint of a managed cluster.
    AzureManagedClusterStatus {
        /// What is complete, for Cluster API's contract v1beta2.
        initialization: Initialization,
        /// Whether Cluster API may continue with the control plane.
        ready: bool,
        /// What Cluster API's contract v1beta2 asks.
        v1beta2: V1Beta2Status,
    }

    /// The spec of a template of AzureManagedClusters.
    AzureManagedClusterTemplateSpec {
        /// The template.
        #[schemars(required)]
        template: AzureManagedClusterTemplateResource,
    }

    /// A template of AzureManagedClusters.
    AzureManagedClusterTemplateResource {
        /// What they have in common: nothing.
        #[schemars(required)]
        spec: AzureManagedClusterClassSpec,
    }

    /// What AzureManagedClusters of a template have in common: nothing.
    AzureManagedClusterClassSpec {}
}
