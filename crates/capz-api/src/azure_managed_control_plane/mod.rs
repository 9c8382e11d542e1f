//! AzureManagedControlPlane: a cluster that Azure manages (AKS); and AzureManagedControlPlaneTemplate, from which they
//! are created.

mod access;
mod autoscaler;
mod extension;
mod network;
mod security;
mod template;
mod types;

pub use access::{AadProfile, ApiServerAccessProfile};
pub use autoscaler::AutoscalerProfile;
pub use extension::{AksExtension, ExtensionPlan, ExtensionScope};
pub use network::{LoadBalancerProfile, ManagedSubnet, ManagedVirtualNetwork};
pub use security::{
    AzureKeyVaultKms, Defender, ImageCleaner, ManagedSecurityProfile, SecurityMonitoring, WorkloadIdentity,
};
pub use template::{AzureManagedControlPlaneTemplateResource, AzureManagedControlPlaneTemplateSpec};
pub use types::{
    AddonProfile, AksSku, AutoUpgradeProfile, AzureManagedControlPlaneSpec, AzureManagedControlPlaneStatus,
    FleetsMember, HttpProxyConfig, ManagedIdentity, ManagedMachineTemplate, OidcIssuerProfile,
    OidcIssuerProfileStatus,
};
