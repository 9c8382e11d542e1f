//! What a managed cluster in Azure says about itself.

use capz_api::ApiEndpoint;
use serde_json::Value;

use super::scope::ManagedScope;

/// The port of API servers.
const PORT: i32 = 443;
/// The channels by which Azure upgrades a cluster to other versions of Kubernetes by itself.
const UPGRADING: [&str; 3] = ["patch", "rapid", "stable"];

/// The observed facts that an AzureManagedControlPlane reports.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reported {
    /// `spec.controlPlaneEndpoint`; `None` while Azure has given the cluster no name.
    pub endpoint: Option<ApiEndpoint>,
    /// `status.oidcIssuerProfile.issuerURL`.
    pub issuer_url: Option<String>,
    /// `status.version`: the version that runs, with `v`.
    pub version: Option<String>,
    /// `status.autoUpgradeVersion`: the same, if Azure upgrades the cluster by itself.
    pub auto_upgrade_version: Option<String>,
}

/// Reads the document of the managed cluster.
pub fn read_back(scope: ManagedScope<'_>, held: &Value) -> Reported {
    let properties = &held["properties"];
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let access = scope.spec.api_server_access_profile.as_ref();
    let is_hidden = access.is_some_and(|access| {
        access.enable_private_cluster == Some(true) && access.enable_private_cluster_public_fqdn != Some(true)
    });
    let host = text(if is_hidden { &properties["privateFQDN"] } else { &properties["fqdn"] });
    let version = text(&properties["currentKubernetesVersion"]).map(|version| format!("v{version}"));
    let channel = properties["autoUpgradeProfile"]["upgradeChannel"].as_str();
    let upgrades = channel.is_some_and(|channel| UPGRADING.iter().any(|it| it.eq_ignore_ascii_case(channel)));
    Reported {
        endpoint: host.map(|host| ApiEndpoint {
            host: Some(host),
            port: Some(PORT),
            ..ApiEndpoint::default()
        }),
        issuer_url: text(&properties["oidcIssuerProfile"]["issuerURL"]),
        auto_upgrade_version: version.clone().filter(|_| upgrades),
        version,
    }
}
