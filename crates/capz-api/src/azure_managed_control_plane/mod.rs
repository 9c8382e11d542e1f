//! AzureManagedControlPlane: a cluster that Azure manages (AKS); and AzureManagedControlPlaneTemplate, from which they
//! are created.

mod access;
mod autoscaler;
mod defaults;
mod extension;
mod immutable;
mod network;
mod security;
mod template;
mod types;
mod validation;
mod version;

pub use access::{AadProfile, ApiServerAccessProfile};
pub use autoscaler::AutoscalerProfile;
pub use defaults::set_defaults;
pub use extension::{AksExtension, ExtensionPlan, ExtensionScope};
pub use network::{LoadBalancerProfile, ManagedSubnet, ManagedVirtualNetwork};
pub use security::{
    AzureKeyVaultKms, Defender, ImageCleaner, ManagedSecurityProfile, SecurityMonitoring, WorkloadIdentity,
};
pub use template::{
    AzureManagedControlPlaneTemplateResource, AzureManagedControlPlaneTemplateSpec, set_template_defaults,
    validate_template,
};
pub use types::{
    AddonProfile, AksSku, AutoUpgradeProfile, AzureManagedControlPlaneSpec, AzureManagedControlPlaneStatus,
    FleetsMember, HttpProxyConfig, ManagedIdentity, ManagedMachineTemplate, OidcIssuerProfile,
    OidcIssuerProfileStatus,
};
pub use validation::validate;
