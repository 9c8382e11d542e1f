//! The requirements of a declaration on the machine size. Requests that Azure would always refuse are not sent.

use capz_api::azure_machine::AzureMachineSpec;
use capz_api::azure_machine_pool::AzureMachinePoolMachineTemplate;
use capz_api::machine::{DataDisk, OsDisk, SecurityProfile, ULTRA_SSD};

use crate::sku::{Sku, Skus, capability};
use crate::terminal::Terminal;

/// The minimum for a machine of Kubernetes: processors, and memory in GiB.
const MINIMUM: f64 = 2.0;
const CONFIDENTIAL: &str = "ConfidentialVM";
const TRUSTED: &str = "TrustedLaunch";
const WHOLE_DISK: &str = "DiskWithVMGuestState";

/// Checks a machine of this size in this zone before its creation.
///
/// # Errors
/// Azure would refuse the machine, or Kubernetes would not run on it.
pub fn check_machine(
    spec: &AzureMachineSpec,
    size: &Sku,
    location: &str,
    zone: Option<&str>,
) -> Result<(), Terminal> {
    check_strength(size)?;
    check_ephemeral(spec.os_disk.as_ref(), size)?;
    if has_ultra_disk(spec.data_disks.as_deref()) && !size.has_ultra_disks(zone) {
        return Err(no_ultra_disks(size, location));
    }
    check_security(spec.os_disk.as_ref(), spec.security_profile.as_ref(), size)
}

/// Checks the machines of a pool in these failure domains.
///
/// # Errors
/// Azure would refuse the scale set, or Kubernetes would not run on its machines.
pub fn check_pool(
    template: &AzureMachinePoolMachineTemplate,
    size: &Sku,
    failure_domains: &[String],
    location: &str,
    skus: &Skus,
) -> Result<(), Terminal> {
    check_strength(size)?;
    check_ephemeral(template.os_disk.as_ref(), size)?;
    if template.security_profile.is_some() && !size.can(capability::ENCRYPTION_AT_HOST) {
        return Err(no_encryption_at_host(size));
    }
    let asked = template.additional_capabilities.as_ref().and_then(|it| it.ultra_ssd_enabled);
    let needs_ultra = has_ultra_disk(template.data_disks.as_deref()) || asked == Some(true);
    if needs_ultra && !skus.zones().iter().all(|zone| size.has_ultra_disks(Some(zone))) {
        return Err(no_ultra_disks(size, location));
    }
    check_diagnostics(template)?;
    for zone in failure_domains {
        if !size.zones().any(|offered| offered == zone) {
            let name = size.name();
            let offered: Vec<&str> = size.zones().collect();
            return Err(Terminal::create(format!(
                "availability zone {zone} is not available for VM type {name} in location {location}: it is offered in {offered:?}"
            )));
        }
    }
    Ok(())
}

fn check_strength(size: &Sku) -> Result<(), Terminal> {
    let name = size.name();
    let enough = |capability: &str| size.amount(capability).is_some_and(|amount| amount.round() >= MINIMUM);
    refuse_if(!enough(capability::VCPUS), || {
        format!(
            "VM size should be bigger or equal to at least 2 vCPUs: {name} has {}",
            size.capability(capability::VCPUS).unwrap_or("none")
        )
    })?;
    refuse_if(!enough(capability::MEMORY_GB), || {
        format!(
            "VM memory should be bigger or equal to at least 2Gi: {name} has {}",
            size.capability(capability::MEMORY_GB).unwrap_or("none")
        )
    })?;
    Ok(())
}

fn check_ephemeral(disk: Option<&OsDisk>, size: &Sku) -> Result<(), Terminal> {
    let ephemeral = disk.is_some_and(|disk| disk.diff_disk_settings.is_some());
    refuse_if(ephemeral && !size.can(capability::EPHEMERAL_OS_DISK), || {
        format!(
            "VM size {} does not support ephemeral os. Select a different VM size or disable ephemeral os",
            size.name()
        )
    })?;
    Ok(())
}

fn refuse_if(is_wrong: bool, words: impl FnOnce() -> String) -> Result<(), Terminal> {
    if is_wrong { Err(Terminal::create(words())) } else { Ok(()) }
}

fn has_ultra_disk(disks: Option<&[DataDisk]>) -> bool {
    disks.unwrap_or_default().iter().any(is_ultra_disk)
}

/// Whether a disk is an ultra disk, which only some sizes in some zones can have.
pub(crate) fn is_ultra_disk(disk: &DataDisk) -> bool {
    let kind = disk.managed_disk.as_ref().and_then(|managed| managed.storage_account_type.as_deref());
    kind == Some(ULTRA_SSD)
}

fn no_ultra_disks(size: &Sku, location: &str) -> Terminal {
    let name = size.name();
    Terminal::create(format!(
        "VM size {name} does not support ultra disks in location {location}. Select a different VM size or disable ultra disks"
    ))
}

fn no_encryption_at_host(size: &Sku) -> Terminal {
    Terminal::create(format!("encryption at host is not supported for VM type {}", size.name()))
}

/// Checks the requirements of a machine that is protected from its host.
fn check_security(
    disk: Option<&OsDisk>,
    profile: Option<&SecurityProfile>,
    size: &Sku,
) -> Result<(), Terminal> {
    let name = size.name();
    let secured = disk.and_then(|disk| disk.managed_disk.as_ref()?.security_profile.as_ref()).is_some();
    refuse_if(secured && size.capability(capability::CONFIDENTIAL_COMPUTING).is_none(), || {
        format!(
            "VM size {name} does not support confidential computing. Select a different VM size or remove the security profile of the OS disk"
        )
    })?;
    let Some(profile) = profile else { return Ok(()) };
    let encrypts = profile.encryption_at_host == Some(true);
    let confidential = disk.and_then(OsDisk::security_encryption_type);
    if let Some(encryption) = confidential {
        check_confidential(encryption, profile)?;
    }
    if encrypts && !size.can(capability::ENCRYPTION_AT_HOST) {
        return Err(no_encryption_at_host(size));
    }
    let Some(uefi) = profile.uefi_settings.as_ref().filter(|_| confidential.is_none()) else { return Ok(()) };
    for (wanted, what, member) in [
        (uefi.secure_boot_enabled, "secure boot", "secureBootEnabled"),
        (uefi.v_tpm_enabled, "vTPM", "vTpmEnabled"),
    ] {
        if wanted != Some(true) {
            continue;
        }
        refuse_if(size.can(capability::TRUSTED_LAUNCH_DISABLED), || {
            format!("{what} is not supported for VM type {name}")
        })?;
        refuse_if(profile.security_type.as_deref() != Some(TRUSTED), || {
            format!("securityType should be set to {TRUSTED} when {member} is true")
        })?;
    }
    Ok(())
}

fn check_confidential(encryption: &str, profile: &SecurityProfile) -> Result<(), Terminal> {
    let whole_disk = encryption == WHOLE_DISK;
    refuse_if(whole_disk && profile.encryption_at_host == Some(true), || {
        format!("encryption at host is not supported when securityEncryptionType is set to {WHOLE_DISK}")
    })?;
    refuse_if(profile.security_type.as_deref() != Some(CONFIDENTIAL), || {
        format!("securityType should be set to {CONFIDENTIAL} when securityEncryptionType is set")
    })?;
    let Some(uefi) = profile.uefi_settings.as_ref().filter(|uefi| uefi.v_tpm_enabled != Some(false)) else {
        return Err(Terminal::create("vTpmEnabled should be true when securityEncryptionType is set"));
    };
    refuse_if(whole_disk && uefi.secure_boot_enabled != Some(true), || {
        format!("secureBootEnabled should be true when securityEncryptionType is set to {WHOLE_DISK}")
    })?;
    Ok(())
}

fn check_diagnostics(template: &AzureMachinePoolMachineTemplate) -> Result<(), Terminal> {
    let Some(boot) = template.diagnostics.as_ref().and_then(|it| it.boot.as_ref()) else { return Ok(()) };
    let uri = boot.user_managed.as_ref().map(|managed| managed.storage_account_uri.as_deref());
    match (boot.storage_account_type.as_deref(), uri) {
        (Some("UserManaged"), None) => {
            Err(Terminal::create("userManaged must be specified when storageAccountType is 'UserManaged'"))
        }
        (Some("UserManaged"), Some(None | Some(""))) => Err(Terminal::create(
            "storageAccountURI cannot be empty when storageAccountType is 'UserManaged'",
        )),
        (Some("UserManaged" | "Managed" | "Disabled"), _) => Ok(()),
        (other, _) => Err(Terminal::create(format!(
            "invalid storageAccountType: {}. Allowed values are [Disabled Managed UserManaged]",
            other.unwrap_or_default()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sku::tests::{document, size};
    use serde_json::{Value, json};

    /// Capabilities of a size that can run Kubernetes.
    const ENOUGH: [(&str, &str); 2] = [("vCPUs", "2"), ("MemoryGB", "8")];

    fn with(more: &[(&'static str, &'static str)]) -> Sku {
        size(&[&ENOUGH[..], more].concat())
    }

    fn refusal(spec: Value, size: &Sku) -> Option<String> {
        let spec: AzureMachineSpec = serde_json::from_value(spec).unwrap();
        let refused = check_machine(&spec, size, "westus2", Some("1")).err()?;
        assert_eq!(refused.reason.as_str(), "CreateError");
        assert_eq!(refused.reason.event(), "ReconcileError");
        Some(refused.message)
    }

    /// CAPZ-109.
    #[test]
    fn machines_have_two_processors_and_two_gibibytes() {
        for (processors, memory, words) in [
            ("2", "2", None),
            ("2", "1.75", None),
            ("1", "8", Some("VM size should be bigger or equal to at least 2 vCPUs")),
            ("2", "1", Some("VM memory should be bigger or equal to at least 2Gi")),
            ("many", "8", Some("VM size should be bigger or equal to at least 2 vCPUs")),
        ] {
            let refused = refusal(json!({}), &size(&[("vCPUs", processors), ("MemoryGB", memory)]));
            assert_eq!(refused.is_some(), words.is_some(), "{refused:?}");
            assert!(refused.unwrap_or_default().starts_with(words.unwrap_or_default()));
        }
        assert!(refusal(json!({}), &size(&[])).is_some());
    }

    /// CAPZ-111, CAPZ-112.
    #[test]
    fn disks_are_such_that_the_size_can_have_them() {
        let ephemeral = json!({ "osDisk": { "diffDiskSettings": { "option": "Local" } } });
        let ultra = json!({ "dataDisks": [{ "managedDisk": { "storageAccountType": "UltraSSD_LRS" } }] });
        let words = "VM size Standard_D2s_v3 does not support ephemeral os. Select a different VM size or disable ephemeral os";
        assert_eq!(refusal(ephemeral.clone(), &with(&[])).as_deref(), Some(words));
        assert_eq!(refusal(ephemeral, &with(&[("EphemeralOSDiskSupported", "True")])), None);
        let words = "VM size Standard_D2s_v3 does not support ultra disks in location westus2. Select a different VM size or disable ultra disks";
        assert_eq!(refusal(ultra.clone(), &with(&[])).as_deref(), Some(words));
        let mut known = document("Standard_D2s_v3", &ENOUGH, &["1"]);
        known["locationInfo"][0]["zoneDetails"] =
            json!([{ "name": ["1"], "capabilities": [{ "name": "UltraSSDAvailable", "value": "True" }] }]);
        let skus = Skus::read("westus2", &[known]);
        assert_eq!(refusal(ultra, skus.get("Standard_D2s_v3", "virtualMachines").unwrap()), None);
    }

    /// CAPZ-122: checks that admission cannot make, since it does not know sizes.
    #[test]
    fn a_machine_is_as_safe_as_its_size_allows() {
        let confidential = |encryption: &str, profile: Value| {
            json!({
                "osDisk": { "managedDisk": { "securityProfile": { "securityEncryptionType": encryption } } },
                "securityProfile": profile,
            })
        };
        let cvm = json!({ "securityType": "ConfidentialVM", "uefiSettings": { "vTpmEnabled": true, "secureBootEnabled": true } });
        let but = |path: &str, value: Value| {
            let mut profile = cvm.clone();
            let at = profile.pointer_mut(path).unwrap();
            *at = value;
            profile
        };
        let encrypted = |profile: &Value| {
            let mut profile = profile.clone();
            profile["encryptionAtHost"] = json!(true);
            profile
        };
        let trusted = json!({ "securityType": "TrustedLaunch", "uefiSettings": { "secureBootEnabled": true, "vTpmEnabled": true } });
        let plain = with(&[]);
        let safe = with(&[("ConfidentialComputingType", "SNP"), ("EncryptionAtHostSupported", "True")]);
        let old = with(&[("TrustedLaunchDisabled", "True")]);
        let none = with(&[("ConfidentialComputingType", "SNP")]);
        for (spec, size, words) in [
            (confidential("VMGuestStateOnly", cvm.clone()), &safe, None),
            (confidential("DiskWithVMGuestState", cvm.clone()), &safe, None),
            (
                confidential("VMGuestStateOnly", cvm.clone()),
                &plain,
                Some("does not support confidential computing"),
            ),
            (
                confidential("DiskWithVMGuestState", encrypted(&cvm)),
                &safe,
                Some("encryption at host is not supported when securityEncryptionType"),
            ),
            (confidential("VMGuestStateOnly", encrypted(&cvm)), &safe, None),
            (
                confidential("VMGuestStateOnly", encrypted(&cvm)),
                &none,
                Some("encryption at host is not supported for VM type"),
            ),
            (
                confidential("VMGuestStateOnly", but("/securityType", json!("TrustedLaunch"))),
                &safe,
                Some("securityType should be set to ConfidentialVM"),
            ),
            (
                confidential("VMGuestStateOnly", but("/uefiSettings/vTpmEnabled", json!(false))),
                &safe,
                Some("vTpmEnabled should be true"),
            ),
            (
                confidential("VMGuestStateOnly", json!({ "securityType": "ConfidentialVM" })),
                &safe,
                Some("vTpmEnabled should be true"),
            ),
            (
                confidential("DiskWithVMGuestState", but("/uefiSettings/secureBootEnabled", json!(false))),
                &safe,
                Some("secureBootEnabled should be true"),
            ),
            (json!({ "securityProfile": { "encryptionAtHost": true } }), &safe, None),
            (
                json!({ "securityProfile": { "encryptionAtHost": true } }),
                &plain,
                Some("encryption at host is not supported for VM type Standard_D2s_v3"),
            ),
            (json!({ "securityProfile": { "encryptionAtHost": false } }), &plain, None),
            (json!({ "securityProfile": trusted }), &plain, None),
            (json!({ "securityProfile": trusted }), &old, Some("secure boot is not supported")),
            (
                json!({ "securityProfile": { "uefiSettings": { "vTpmEnabled": true } } }),
                &plain,
                Some("securityType should be set to TrustedLaunch when vTpmEnabled is true"),
            ),
            (json!({ "securityProfile": { "uefiSettings": { "vTpmEnabled": false } } }), &old, None),
        ] {
            let refused = refusal(spec.clone(), size);
            assert_eq!(refused.is_some(), words.is_some(), "{spec} {refused:?}");
            let refused = refused.unwrap_or_default();
            assert!(refused.contains(words.unwrap_or_default()), "{spec} {refused}");
        }
    }

    #[test]
    fn a_pool_is_such_that_the_size_can_have_it() {
        let mut known = document("A", &ENOUGH, &["1", "2"]);
        known["locationInfo"][0]["zoneDetails"] =
            json!([{ "name": ["1"], "capabilities": [{ "name": "UltraSSDAvailable", "value": "True" }] }]);
        let skus = Skus::read(
            "westus2",
            &[
                known,
                document("B", &[&ENOUGH[..], &[("EncryptionAtHostSupported", "True")]].concat(), &["1"]),
            ],
        );
        let ultra = json!({ "additionalCapabilities": { "ultraSSDEnabled": true } });
        for (template, size, zones, words) in [
            (json!({}), "A", &["1", "2"][..], None),
            (json!({}), "A", &["1", "3"][..], Some("availability zone 3 is not available for VM type A")),
            (ultra, "A", &["1"][..], Some("does not support ultra disks")),
            (
                json!({ "securityProfile": { "encryptionAtHost": true } }),
                "A",
                &[][..],
                Some("encryption at host is not supported"),
            ),
            (json!({ "securityProfile": { "encryptionAtHost": true } }), "B", &[][..], None),
            (
                json!({ "diagnostics": { "boot": { "storageAccountType": "UserManaged" } } }),
                "A",
                &[][..],
                Some("userManaged must be specified"),
            ),
            (
                json!({ "diagnostics": { "boot": { "storageAccountType": "UserManaged", "userManaged": { "storageAccountURI": "" } } } }),
                "A",
                &[][..],
                Some("storageAccountURI cannot be empty"),
            ),
            (
                json!({ "diagnostics": { "boot": { "storageAccountType": "Mine" } } }),
                "A",
                &[][..],
                Some("invalid storageAccountType: Mine"),
            ),
            (json!({ "diagnostics": { "boot": { "storageAccountType": "Managed" } } }), "A", &[][..], None),
        ] {
            let size = skus.get(size, "virtualMachines").unwrap();
            let zones: Vec<String> = zones.iter().map(|zone| (*zone).to_owned()).collect();
            let template_value = template.clone();
            let template: AzureMachinePoolMachineTemplate = serde_json::from_value(template).unwrap();
            let refused = check_pool(&template, size, &zones, "westus2", &skus).err().map(|it| it.message);
            assert_eq!(refused.is_some(), words.is_some(), "{template_value} {refused:?}");
            let refused = refused.unwrap_or_default();
            assert!(refused.contains(words.unwrap_or_default()), "{template_value} {refused}");
        }
    }
}
