//! The members of a managed cluster's document about its users, and about access to its API server and its nodes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capz_api::azure_managed_control_plane::AzureManagedControlPlaneSpec;
use serde_json::{Value, json};

use crate::document::{items, list, text};
use crate::terminal::Terminal;

/// The user that signs in to nodes.
const USER: &str = "azureuser";

/// Access to nodes by SSH.
///
/// # Errors
/// The key is not in base64.
pub(super) fn linux_profile(spec: &AzureManagedControlPlaneSpec) -> Result<Option<Value>, Terminal> {
    let Some(key) = text(&spec.ssh_public_key) else { return Ok(None) };
    let key = STANDARD.decode(key).ok().and_then(|line| String::from_utf8(line).ok()).ok_or_else(|| {
        Terminal::configuration(
            "failed to decode SSHPublicKey: spec.sshPublicKey must be a line of authorized_keys in base64",
        )
    })?;
    Ok(Some(json!({ "adminUsername": USER, "ssh": { "publicKeys": [{ "keyData": key }] } })))
}

/// Users of Microsoft Entra ID.
pub(super) fn aad_profile(spec: &AzureManagedControlPlaneSpec) -> Option<Value> {
    let profile = spec.aad_profile.as_ref()?;
    Some(json!({
        "managed": profile.managed,
        "enableAzureRBAC": profile.managed,
        "adminGroupObjectIDs": profile.admin_group_object_ids,
    }))
}

/// Access to the API server. An empty list of ranges lets everybody in: it is sent where Azure holds ranges.
pub(super) fn api_server(spec: &AzureManagedControlPlaneSpec, held: Option<&Value>) -> Option<Value> {
    let profile = spec.api_server_access_profile.as_ref()?;
    let has_ranges = || {
        let ranges = held?.pointer("/properties/apiServerAccessProfile/authorizedIPRanges")?;
        list(ranges).next()
    };
    let none: &[String] = &[];
    let ranges = items(&profile.authorized_ip_ranges).or_else(|| has_ranges().map(|_| none));
    Some(json!({
        "authorizedIPRanges": ranges,
        "enablePrivateCluster": profile.enable_private_cluster,
        "privateDNSZone": text(&profile.private_dns_zone),
        "enablePrivateClusterPublicFQDN": profile.enable_private_cluster_public_fqdn,
    }))
}
