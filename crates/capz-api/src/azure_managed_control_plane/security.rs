//! Security features of a cluster.

use crate::object::object;

object! {
    /// Security features of a cluster. None of them can be removed again.
    ManagedSecurityProfile {
        /// Encryption of Secrets with a key of Azure Key Vault.
        azure_key_vault_kms: AzureKeyVaultKms,
        /// Microsoft Defender.
        defender: Defender,
        /// Removal of unused images from machines.
        image_cleaner: ImageCleaner,
        /// Access of workloads to Azure with tokens of their service accounts. Needs oidcIssuerProfile.
        workload_identity: WorkloadIdentity,
    }

    /// Encryption of Secrets with a key of Azure Key Vault.
    AzureKeyVaultKms {
        /// Whether it is on.
        #[schemars(required)]
        enabled: bool,
        /// The identifier of the key.
        #[serde(rename = "keyID")]
        #[schemars(required)]
        key_id: String,
        /// Public, or Private for a vault that is reached by a private link.
        #[schemars(extend("default" = "Public"))]
        key_vault_network_access: String,
        /// The id of the vault, if its network access is Private.
        #[serde(rename = "keyVaultResourceID")]
        key_vault_resource_id: String,
    }

    /// Microsoft Defender.
    Defender {
        /// The id of the Log Analytics workspace.
        #[serde(rename = "logAnalyticsWorkspaceResourceID")]
        #[schemars(required)]
        log_analytics_workspace_resource_id: String,
        /// The detection of threats.
        #[schemars(required)]
        security_monitoring: SecurityMonitoring,
    }

    /// The detection of threats.
    SecurityMonitoring {
        /// Whether it is on.
        #[schemars(required)]
        enabled: bool,
    }

    /// Removal of unused images from machines.
    ImageCleaner {
        /// Whether it is on.
        #[schemars(required)]
        enabled: bool,
        /// The hours between two looks.
        #[schemars(range(min = 24, max = 2160))]
        interval_hours: i64,
    }

    /// Access of workloads to Azure with tokens of their service accounts.
    WorkloadIdentity {
        /// Whether it is on.
        #[schemars(required)]
        enabled: bool,
    }
}
