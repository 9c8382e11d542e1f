//! Public DNS names of API servers.

/// The suffix of public names in a cloud. `None` for an unknown cloud.
pub fn dns_suffix(environment: &str) -> Option<&'static str> {
    Some(match environment {
        "" | "AzurePublicCloud" => "cloudapp.azure.com",
        "AzureChinaCloud" => "cloudapp.chinacloudapi.cn",
        "AzureUSGovernmentCloud" => "cloudapp.usgovcloudapi.net",
        "AzureGermanCloud" => "cloudapp.microsoftazure.de",
        _ => return None,
    })
}

/// FNV-1a with 32 bits.
pub(crate) fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The public name of an API server whose public IP has this name.
pub fn api_server_name(
    cluster: &str,
    subscription: &str,
    group: &str,
    public_ip: &str,
    location: &str,
    suffix: &str,
) -> String {
    let hash = hash(&format!("{subscription}/{group}/{public_ip}"));
    format!("{cluster}-{hash:x}.{location}.{suffix}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CAPZ-049, CAPZ-051.
    #[test]
    fn names_are_made_from_the_public_ip() {
        let name = |environment| {
            api_server_name(
                "my-cluster",
                "123",
                "my-rg",
                "pip-my-cluster-apiserver",
                "eastus",
                dns_suffix(environment).unwrap(),
            )
        };
        assert_eq!(name("AzurePublicCloud"), "my-cluster-3f5c6fa8.eastus.cloudapp.azure.com");
        assert_eq!(name(""), "my-cluster-3f5c6fa8.eastus.cloudapp.azure.com");
        assert_eq!(name("AzureUSGovernmentCloud"), "my-cluster-3f5c6fa8.eastus.cloudapp.usgovcloudapi.net");
        assert_eq!(dns_suffix("AzureChinaCloud"), Some("cloudapp.chinacloudapi.cn"));
        assert_eq!(dns_suffix("AzureGermanCloud"), Some("cloudapp.microsoftazure.de"));
        assert_eq!(dns_suffix("AzureStackCloud"), None);
    }
}
