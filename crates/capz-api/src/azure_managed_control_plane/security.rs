//! Security features of a cluster.

use crate::field_error::Field;
use crate::object::object;
use crate::text::{is_set, text};

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

/// Validates the security features of a cluster that has a user-assigned identity, and an issuer of tokens, or not.
pub(super) fn check(
    profile: Option<&ManagedSecurityProfile>,
    is_user_assigned: bool,
    has_issuer: bool,
    field: &Field<'_>,
) {
    let Some(profile) = profile else { return };
    if let Some(kms) = &profile.azure_key_vault_kms {
        check_kms(kms, is_user_assigned, &field.child("azureKeyVaultKms"));
    }
    field.child("workloadIdentity").invalid_if(
        profile.workload_identity.is_some() && !has_issuer,
        &profile.workload_identity,
        "it needs an issuer of tokens: set oidcIssuerProfile.enabled to true",
    );
}

fn check_kms(kms: &AzureKeyVaultKms, is_user_assigned: bool, field: &Field<'_>) {
    if !is_user_assigned {
        return field.invalid(
            kms,
            "the cluster reads the key with a user-assigned identity: set identity.type to UserAssigned",
        );
    }
    let vault = field.child("keyVaultResourceID");
    match text(&kms.key_vault_network_access) {
        "Private" => vault.required_if(
            !is_set(&kms.key_vault_resource_id),
            "a vault with private access is reached by its id",
        ),
        "" | "Public" => vault.forbidden_if(
            is_set(&kms.key_vault_resource_id),
            "only a vault with private access is reached by its id: set keyVaultNetworkAccess to Private",
        ),
        other => field.child("keyVaultNetworkAccess").one_of(Some(other), &["Public", "Private"]),
    }
}
