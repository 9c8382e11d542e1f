//! Immutable members of an AzureManagedControlPlane and its template: Azure cannot change them, or cannot take them back.

use serde_json::json;

use super::extension;
use super::types::AzureManagedControlPlaneSpec;
use super::version::is_older;
use crate::field_error::Field;
use crate::immutable::{Fixed, Rule, check as check_rules};
use crate::text::{is_set, text};

/// Of control planes and templates.
const RULES: [Rule; 21] = [
    ("subscriptionID", Fixed::Always),
    ("location", Fixed::Always),
    ("dnsServiceIP", Fixed::Always),
    ("networkPlugin", Fixed::Always),
    ("networkPolicy", Fixed::Always),
    ("networkDataplane", Fixed::Always),
    ("loadBalancerSKU", Fixed::Always),
    ("outboundType", Fixed::Always),
    ("virtualNetwork.cidrBlock", Fixed::Always),
    ("virtualNetwork.subnet.name", Fixed::Always),
    ("virtualNetwork.subnet.cidrBlock", Fixed::Always),
    ("apiServerAccessProfile.enablePrivateCluster", Fixed::Always),
    ("apiServerAccessProfile.enablePrivateClusterPublicFQDN", Fixed::Always),
    ("apiServerAccessProfile.privateDNSZone", Fixed::Always),
    ("aadProfile", Fixed::Kept),
    ("aadProfile.managed", Fixed::Kept),
    ("aadProfile.adminGroupObjectIDs", Fixed::Kept),
    ("securityProfile.azureKeyVaultKms", Fixed::Kept),
    ("securityProfile.defender", Fixed::Kept),
    ("securityProfile.imageCleaner", Fixed::Kept),
    ("securityProfile.workloadIdentity", Fixed::Kept),
];

/// Of control planes only.
const RULES_OF_CLUSTERS: [Rule; 13] = [
    ("resourceGroupName", Fixed::Always),
    ("nodeResourceGroupName", Fixed::Always),
    ("sshPublicKey", Fixed::Always),
    ("httpProxyConfig", Fixed::Always),
    ("azureEnvironment", Fixed::Always),
    ("dnsPrefix", Fixed::Always),
    ("virtualNetwork.name", Fixed::Always),
    ("virtualNetwork.resourceGroup", Fixed::Always),
    // With another name there would be a second member.
    ("fleetsMember.name", Fixed::NotReplaced),
    ("disableLocalAccounts", Fixed::OnceChosen),
    // `none` turns upgrades off.
    ("autoUpgradeProfile.upgradeChannel", Fixed::Kept),
    ("oidcIssuerProfile.enabled", Fixed::Kept),
    ("networkPluginMode", Fixed::Kept),
];

/// Compares the new spec of the control plane `name` with the old one. `upgraded` is the version to which Azure has
/// upgraded the cluster, or empty.
pub(super) fn check(
    name: &str,
    new: &AzureManagedControlPlaneSpec,
    old: &AzureManagedControlPlaneSpec,
    upgraded: &str,
    spec: &Field<'_>,
) {
    check_template(new, old, spec);
    let (before, now) = (json!(old.with_dns_prefix(name)), json!(new.with_dns_prefix(name)));
    check_rules(&RULES_OF_CLUSTERS, &before, &now, spec);
    let version = text(&new.version);
    spec.child("version").invalid_if(
        new.version != old.version && !upgraded.is_empty() && is_older(version, upgraded),
        version,
        format_args!("Azure has upgraded the cluster to {upgraded}, and a version cannot be downgraded"),
    );
    check_addons(new, old, &spec.child("addonProfiles"));
    let words = "the mode overlay cannot be turned on in a cluster with a networkPolicy";
    spec.child("networkPluginMode")
        .forbidden_if(!old.is_overlay() && new.is_overlay() && is_set(&old.network_policy), words);
}

/// Compares the new spec of a template with the old one.
pub(super) fn check_template(
    new: &AzureManagedControlPlaneSpec,
    old: &AzureManagedControlPlaneSpec,
    spec: &Field<'_>,
) {
    check_rules(&RULES, &json!(old), &json!(new), spec);
    let version = text(&new.version);
    spec.child("version").invalid_if(
        is_older(version, text(&old.version)),
        version,
        format_args!("a version cannot be downgraded: it is {}", text(&old.version)),
    );
    extension::check_changes(old.extensions.as_deref(), new.extensions.as_deref(), &spec.child("extensions"));
}

/// Azure does not take an add-on back: it is turned off.
fn check_addons(new: &AzureManagedControlPlaneSpec, old: &AzureManagedControlPlaneSpec, list: &Field<'_>) {
    let now = new.addon_profiles.as_deref().unwrap_or_default();
    for addon in old.addon_profiles.iter().flatten() {
        let words = format!("add-on {} cannot be removed: set its enabled to false", text(&addon.name));
        list.invalid_if(now.iter().all(|now| now.name != addon.name), now, words);
    }
}
