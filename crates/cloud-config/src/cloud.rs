//! The clouds and their endpoints.

/// The endpoints of one cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloudEndpoints {
    /// Its name in a metadata document.
    pub name: &'static str,
    /// Azure Resource Manager, without a trailing slash.
    pub resource_manager: &'static str,
    /// The audience of its tokens, with its trailing slash.
    pub audience: &'static str,
    /// The authority that issues tokens, with its trailing slash.
    pub authority: &'static str,
    /// The domain of container registries.
    pub container_registry_suffix: &'static str,
    /// The domain of storage accounts.
    pub storage_suffix: &'static str,
    /// The suffix of public DNS names, which the region precedes.
    pub public_ip_suffix: &'static str,
}

/// The public cloud.
pub const PUBLIC: CloudEndpoints = CloudEndpoints {
    name: "AzureCloud",
    resource_manager: "https://management.azure.com",
    audience: "https://management.core.windows.net/",
    authority: "https://login.microsoftonline.com/",
    container_registry_suffix: "azurecr.io",
    storage_suffix: "core.windows.net",
    public_ip_suffix: "cloudapp.azure.com",
};

/// The cloud of the US government.
pub const US_GOVERNMENT: CloudEndpoints = CloudEndpoints {
    name: "AzureUSGovernment",
    resource_manager: "https://management.usgovcloudapi.net",
    audience: "https://management.core.usgovcloudapi.net/",
    authority: "https://login.microsoftonline.us/",
    container_registry_suffix: "azurecr.us",
    storage_suffix: "core.usgovcloudapi.net",
    public_ip_suffix: "cloudapp.usgovcloudapi.net",
};

/// The cloud operated in China.
pub const CHINA: CloudEndpoints = CloudEndpoints {
    name: "AzureChinaCloud",
    resource_manager: "https://management.chinacloudapi.cn",
    audience: "https://management.core.chinacloudapi.cn/",
    authority: "https://login.chinacloudapi.cn/",
    container_registry_suffix: "azurecr.cn",
    storage_suffix: "core.chinacloudapi.cn",
    public_ip_suffix: "cloudapp.chinacloudapi.cn",
};

impl CloudEndpoints {
    /// The cloud of a configured name, without regard to case and surrounding spaces. Empty names, unknown ones and
    /// Azure Stack start from the public cloud; the flag is whether the name is known.
    pub fn named(name: &str) -> (Self, bool) {
        match name.trim().to_ascii_uppercase().as_str() {
            "" | "AZURECLOUD" | "AZUREPUBLICCLOUD" | AZURE_STACK => (PUBLIC, true),
            "AZUREUSGOVERNMENT" | "AZUREUSGOVERNMENTCLOUD" => (US_GOVERNMENT, true),
            "AZURECHINACLOUD" => (CHINA, true),
            _ => (PUBLIC, false),
        }
    }
}

/// The name of Azure Stack, in upper case.
pub(crate) const AZURE_STACK: &str = "AZURESTACKCLOUD";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_cloud() {
        for (name, cloud, known) in [
            ("", PUBLIC, true),
            ("AzureCloud", PUBLIC, true),
            ("  azurepubliccloud ", PUBLIC, true),
            ("AzureUSGovernment", US_GOVERNMENT, true),
            ("AZUREUSGOVERNMENTCLOUD", US_GOVERNMENT, true),
            ("AzureChinaCloud", CHINA, true),
            ("AzureStackCloud", PUBLIC, true),
            ("Somewhere", PUBLIC, false),
        ] {
            assert_eq!(CloudEndpoints::named(name), (cloud, known), "{name}");
        }
    }
}
