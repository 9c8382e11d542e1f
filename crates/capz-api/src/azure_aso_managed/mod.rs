//! AzureASOManagedCluster, AzureASOManagedControlPlane and AzureASOManagedMachinePool: clusters that Azure manages, as
//! whole resources of Azure Service Operator (ASO); and the templates from which they are created.

mod gate;
mod template;
mod types;

pub(crate) use gate::{KINDS, validate};
pub use template::{
    AzureAsoManagedClusterTemplateResource, AzureAsoManagedClusterTemplateResourceSpec,
    AzureAsoManagedClusterTemplateSpec, AzureAsoManagedControlPlaneTemplateResource,
    AzureAsoManagedControlPlaneTemplateResourceSpec, AzureAsoManagedControlPlaneTemplateSpec,
    AzureAsoManagedMachinePoolTemplateResource, AzureAsoManagedMachinePoolTemplateResourceSpec,
    AzureAsoManagedMachinePoolTemplateSpec,
};
pub use types::{
    AzureAsoManagedClusterSpec, AzureAsoManagedClusterStatus, AzureAsoManagedControlPlaneSpec,
    AzureAsoManagedControlPlaneStatus, AzureAsoManagedMachinePoolSpec, AzureAsoManagedMachinePoolStatus,
    RawResource, ResourceHandle, ResourceStatus,
};
