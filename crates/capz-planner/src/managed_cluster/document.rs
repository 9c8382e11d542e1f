//! The document of a managed cluster.

use std::collections::BTreeMap;

use capz_api::azure_managed_control_plane::{
    AutoscalerProfile, HttpProxyConfig, ManagedIdentity, ManagedSecurityProfile,
};
use capz_api::machine::identity_kinds;
use serde_json::{Map, Value, json};

use super::scope::ManagedScope;
use super::{access, network_profile, version};
use crate::document::{items, text};
use crate::goal::GoalError;
use crate::terminal::Terminal;

/// The document without node pools and tags. `held` is the observed one.
///
/// # Errors
/// The declaration is invalid.
pub(super) fn document(scope: ManagedScope<'_>, held: Option<&Value>) -> Result<Value, GoalError> {
    let spec = scope.spec;
    let kubelet = text(&spec.kubelet_user_assigned_identity);
    let oidc = spec.oidc_issuer_profile.as_ref();
    let upgrades = spec.auto_upgrade_profile.as_ref();
    Ok(json!({
        "location": scope.cluster.location(),
        "sku": spec.sku.as_ref().map(|sku| json!({ "name": "Base", "tier": tier(sku.tier.as_deref()) })),
        "identity": identity(spec.identity.as_ref())?,
        "properties": {
            "identityProfile": kubelet.map(|id| json!({ "kubeletidentity": { "resourceId": id } })),
            "nodeResourceGroup": scope.node_group().name(),
            "enableRBAC": true,
            "dnsPrefix": text(&spec.dns_prefix).unwrap_or(scope.cluster.name),
            "kubernetesVersion": version::of_control_plane(scope, held),
            "servicePrincipalProfile": { "clientId": "msi" },
            "networkProfile": network_profile::document(scope)?,
            "linuxProfile": access::linux_profile(spec)?,
            "aadProfile": access::aad_profile(spec),
            // Local accounts are needed by a cluster without Microsoft Entra ID.
            "disableLocalAccounts": spec.disable_local_accounts.filter(|_| spec.aad_profile.is_some()),
            "apiServerAccessProfile": access::api_server(spec, held),
            "addonProfiles": addons(scope),
            "httpProxyConfig": spec.http_proxy_config.as_ref().map(proxy),
            "oidcIssuerProfile": oidc.map(|profile| json!({ "enabled": profile.enabled })),
            "autoUpgradeProfile": upgrades.map(|profile| json!({ "upgradeChannel": profile.upgrade_channel })),
            "securityProfile": spec.security_profile.as_ref().map(security),
            "autoScalerProfile": spec.autoscaler_profile.as_ref().map(autoscaler),
        },
    }))
}

/// The tier, by its name of today.
fn tier(declared: Option<&str>) -> Option<&str> {
    declared.map(|tier| if tier == "Paid" { "Standard" } else { tier })
}

fn identity(declared: Option<&ManagedIdentity>) -> Result<Value, Terminal> {
    let kind = declared.and_then(|identity| text(&identity.kind)).unwrap_or(identity_kinds::SYSTEM_ASSIGNED);
    if kind != identity_kinds::USER_ASSIGNED {
        return Ok(json!({ "type": kind }));
    }
    let id = declared.and_then(|identity| text(&identity.user_assigned_identity_resource_id));
    let id = id.ok_or_else(|| {
        Terminal::configuration(
            "spec.identity.type is UserAssigned, and no identity is named: set spec.identity.userAssignedIdentityResourceID",
        )
    })?;
    Ok(json!({ "type": kind, "userAssignedIdentities": { id: {} } }))
}

fn addons(scope: ManagedScope<'_>) -> Option<Map<String, Value>> {
    let addons = items(&scope.spec.addon_profiles)?.iter();
    let document = |config: &Option<BTreeMap<String, String>>, enabled: Option<bool>| json!({ "enabled": enabled.unwrap_or_default(), "config": config });
    let named =
        addons.filter_map(|addon| Some((addon.name.clone()?, document(&addon.config, addon.enabled))));
    Some(named.collect())
}

fn proxy(declared: &HttpProxyConfig) -> Value {
    json!({
        "httpProxy": text(&declared.http_proxy),
        "httpsProxy": text(&declared.https_proxy),
        "noProxy": items(&declared.no_proxy),
        "trustedCa": text(&declared.trusted_ca),
    })
}

fn security(declared: &ManagedSecurityProfile) -> Value {
    let defender = declared.defender.as_ref();
    let monitoring = defender.and_then(|defender| defender.security_monitoring.as_ref());
    json!({
        "azureKeyVaultKms": declared.azure_key_vault_kms.as_ref().map(|kms| json!({
            "enabled": kms.enabled,
            "keyId": text(&kms.key_id),
            "keyVaultNetworkAccess": text(&kms.key_vault_network_access),
            "keyVaultResourceId": text(&kms.key_vault_resource_id),
        })),
        "defender": defender.map(|defender| json!({
            "logAnalyticsWorkspaceResourceId": text(&defender.log_analytics_workspace_resource_id),
            "securityMonitoring": monitoring.map(|monitoring| json!({ "enabled": monitoring.enabled })),
        })),
        "imageCleaner": declared.image_cleaner.as_ref().map(|cleaner| json!({
            "enabled": cleaner.enabled,
            "intervalHours": cleaner.interval_hours,
        })),
        "workloadIdentity": declared
            .workload_identity
            .as_ref()
            .map(|identity| json!({ "enabled": identity.enabled })),
    })
}

/// The parameters of the cluster autoscaler, under Azure's names: those of the autoscaler's options.
fn autoscaler(declared: &AutoscalerProfile) -> Value {
    json!({
        "balance-similar-node-groups": declared.balance_similar_node_groups,
        "expander": declared.expander,
        "max-empty-bulk-delete": declared.max_empty_bulk_delete,
        "max-graceful-termination-sec": declared.max_graceful_termination_sec,
        "max-node-provision-time": declared.max_node_provision_time,
        "max-total-unready-percentage": declared.max_total_unready_percentage,
        "new-pod-scale-up-delay": declared.new_pod_scale_up_delay,
        "ok-total-unready-count": declared.ok_total_unready_count,
        "scan-interval": declared.scan_interval,
        "scale-down-delay-after-add": declared.scale_down_delay_after_add,
        "scale-down-delay-after-delete": declared.scale_down_delay_after_delete,
        "scale-down-delay-after-failure": declared.scale_down_delay_after_failure,
        "scale-down-unneeded-time": declared.scale_down_unneeded_time,
        "scale-down-unready-time": declared.scale_down_unready_time,
        "scale-down-utilization-threshold": declared.scale_down_utilization_threshold,
        "skip-nodes-with-local-storage": declared.skip_nodes_with_local_storage,
        "skip-nodes-with-system-pods": declared.skip_nodes_with_system_pods,
    })
}
