//! The common parts of the documents of machines and scale sets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capz_api::Quantity;
use capz_api::machine::{
    AdditionalCapabilities, DataDisk, Diagnostics, ManagedDisk, OsDisk, SpotVmOptions, UserAssignedIdentity,
    identity_kinds,
};
use cloud_config::Secret;
use serde_json::{Map, Value, json};

use crate::document::text;
use crate::image::WINDOWS;
use crate::size_check::is_ultra_disk;
use crate::terminal::Terminal;

/// The name of the user that signs in.
const USER: &str = "capi";

/// The OS profile. The caller adds the computer name.
///
/// # Errors
/// The SSH key is invalid.
pub(crate) fn os_profile(
    os_type: Option<&str>,
    ssh_public_key: Option<&str>,
    bootstrap: &Secret,
    password: &Secret,
) -> Result<Value, Terminal> {
    let mut profile = json!({ "adminUsername": USER, "customData": bootstrap.reveal() });
    if os_type == Some(WINDOWS) {
        // This password is never used: the bootstrap process on the machine sets its own.
        profile["adminPassword"] = json!(password.reveal());
        profile["windowsConfiguration"] = json!({ "enableAutomaticUpdates": false });
        return Ok(profile);
    }
    let key = STANDARD
        .decode(ssh_public_key.unwrap_or_default())
        .ok()
        .and_then(|line| String::from_utf8(line).ok())
        .ok_or_else(|| {
            Terminal::create("failed to decode ssh public key: spec.sshPublicKey must be a line of authorized_keys in base64")
        })?;
    profile["linuxConfiguration"] = json!({
        "disablePasswordAuthentication": true,
        "ssh": { "publicKeys": [{ "path": format!("/home/{USER}/.ssh/authorized_keys"), "keyData": key }] },
    });
    Ok(profile)
}

/// The OS disk. It has a name if it belongs to one machine.
pub(crate) fn os_disk(disk: Option<&OsDisk>, name: Option<String>) -> Value {
    let none = OsDisk::default();
    let disk = disk.unwrap_or(&none);
    let settings = disk.diff_disk_settings.as_ref();
    json!({
        "name": name,
        "osType": disk.os_type,
        "createOption": "FromImage",
        "diskSizeGB": disk.disk_size_gb,
        "caching": text(&disk.caching_type),
        "diffDiskSettings": settings.map(|it| json!({ "option": it.option, "placement": it.placement })),
        "managedDisk": disk.managed_disk.as_ref().map(managed_disk),
    })
}

/// The data disks of a machine or scale set with this name.
pub(crate) fn data_disks(disks: Option<&[DataDisk]>, owner: &str, with_caching: bool) -> Vec<Value> {
    disks
        .unwrap_or_default()
        .iter()
        .map(|disk| {
            json!({
                "name": data_disk_name(owner, disk),
                "createOption": "Empty",
                "diskSizeGB": disk.disk_size_gb,
                "lun": disk.lun,
                "caching": text(&disk.caching_type).filter(|_| with_caching),
                "managedDisk": disk.managed_disk.as_ref().map(managed_disk),
            })
        })
        .collect()
}

/// The name of a data disk.
pub(crate) fn data_disk_name(owner: &str, disk: &DataDisk) -> String {
    format!("{owner}_{}", disk.name_suffix.as_deref().unwrap_or_default())
}

fn managed_disk(disk: &ManagedDisk) -> Value {
    let security = disk.security_profile.as_ref();
    json!({
        "storageAccountType": text(&disk.storage_account_type),
        "diskEncryptionSet": disk.disk_encryption_set.as_ref().map(|set| json!({ "id": set.id })),
        "securityProfile": security.map(|profile| json!({
            "securityEncryptionType": text(&profile.security_encryption_type),
            "diskEncryptionSet": profile.disk_encryption_set.as_ref().map(|set| json!({ "id": set.id })),
        })),
    })
}

/// The members of the properties that make a spot machine.
pub(crate) fn spot(options: Option<&SpotVmOptions>) -> Option<Map<String, Value>> {
    let options = options?;
    let price = options.max_price.as_ref().and_then(Quantity::as_f64);
    let members = json!({
        "priority": "Spot",
        "evictionPolicy": options.eviction_policy,
        "billingProfile": price.map(|price| json!({ "maxPrice": price })),
    });
    members.as_object().cloned()
}

/// The diagnostics of a machine's boot.
pub(crate) fn diagnostics(diagnostics: Option<&Diagnostics>) -> Option<Value> {
    let boot = diagnostics?.boot.as_ref()?;
    let said = match (boot.storage_account_type.as_deref()?, &boot.user_managed) {
        ("Disabled", _) => json!({ "enabled": false }),
        ("Managed", _) => json!({ "enabled": true }),
        ("UserManaged", Some(own)) => json!({ "enabled": true, "storageUri": own.storage_account_uri }),
        _ => return None,
    };
    Some(json!({ "bootDiagnostics": said }))
}

/// The identity of machines in Azure.
pub(crate) fn identity(kind: Option<&str>, identities: Option<&[UserAssignedIdentity]>) -> Option<Value> {
    match kind? {
        identity_kinds::SYSTEM_ASSIGNED => Some(json!({ "type": identity_kinds::SYSTEM_ASSIGNED })),
        identity_kinds::USER_ASSIGNED => {
            let ids: Map<String, Value> = identities
                .unwrap_or_default()
                .iter()
                .map(|it| (identity_id(it).to_owned(), json!({})))
                .collect();
            Some(json!({ "type": identity_kinds::USER_ASSIGNED, "userAssignedIdentities": ids }))
        }
        _ => None,
    }
}

/// The ID of an identity, without the prefix of provider IDs.
pub(crate) fn identity_id(identity: &UserAssignedIdentity) -> &str {
    let id = identity.provider_id.as_deref().unwrap_or_default();
    id.strip_prefix(PROVIDER_ID).unwrap_or(id)
}

/// The prefix of provider IDs.
pub(crate) const PROVIDER_ID: &str = "azure://";

/// Whether ultra disks can be attached: as declared, by default if there is one.
pub(crate) fn capabilities(
    declared: Option<&AdditionalCapabilities>,
    disks: Option<&[DataDisk]>,
) -> Option<Value> {
    let needed = disks.unwrap_or_default().iter().any(is_ultra_disk).then_some(true);
    let enabled = declared.and_then(|it| it.ultra_ssd_enabled).or(needed)?;
    Some(json!({ "ultraSSDEnabled": enabled }))
}

/// The provider ID of a resource, as nodes and the cloud controller manager have it: with the prefix `azure://`, and
/// the group's name in lower case.
pub fn provider_id(id: &str) -> String {
    let parts: Vec<String> = id
        .split('/')
        .scan(false, |after, part| {
            let spelled = if *after { part.to_lowercase() } else { part.to_owned() };
            *after = part.eq_ignore_ascii_case("resourceGroups");
            Some(spelled)
        })
        .collect();
    format!("{PROVIDER_ID}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_id_has_its_group_in_lower_case() {
        assert_eq!(
            provider_id(
                "/subscriptions/A/resourceGroups/My-RG/providers/Microsoft.Compute/virtualMachines/VM"
            ),
            "azure:///subscriptions/A/resourceGroups/my-rg/providers/Microsoft.Compute/virtualMachines/VM"
        );
    }
}
