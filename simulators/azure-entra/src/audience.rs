//! Audiences: the resources that access tokens are for.

/// What tokens for container registries are for.
pub const REGISTRY_AUDIENCE: &str = "https://containerregistry.azure.net";
/// What tokens for Microsoft Graph are for.
pub(super) const GRAPH_AUDIENCE: &str = "https://graph.microsoft.com";
/// What tokens for the API servers of managed clusters are for: the application "Azure Kubernetes Service AAD Server".
const KUBERNETES_AUDIENCE: &str = "6dae42f8-4368-4678-94ff-3960e28e3630";
/// Resources that service principals of every tenant may ask tokens for, beside Resource Manager.
pub(super) const WELL_KNOWN_RESOURCES: [&str; 6] = [
    GRAPH_AUDIENCE,
    "https://vault.azure.net",
    "https://storage.azure.com",
    REGISTRY_AUDIENCE,
    KUBERNETES_AUDIENCE,
    "https://management.azure.com",
];
/// Audiences of Resource Manager in the public, Chinese and US government clouds.
pub(super) const MANAGEMENT_AUDIENCES: [&str; 6] = [
    "https://management.azure.com",
    "https://management.core.windows.net",
    "https://management.chinacloudapi.cn",
    "https://management.core.chinacloudapi.cn",
    "https://management.usgovcloudapi.net",
    "https://management.core.usgovcloudapi.net",
];
