//! The protection of a machine from its host.

use serde_json::json;

use super::OsDisk;
use crate::field_error::{FieldErrors, Path};
use crate::object::object;

object! {
    /// How a machine is kept safe from its host.
    SecurityProfile {
        /// Whether everything that the host stores for the machine is encrypted there.
        encryption_at_host: bool,
        /// ConfidentialVM or TrustedLaunch.
        #[schemars(extend("enum" = ["ConfidentialVM", "TrustedLaunch"]))]
        security_type: String,
        /// The settings of the machine's firmware.
        uefi_settings: UefiSettings,
    }
}

object! {
    /// What a machine's firmware does.
    UefiSettings {
        /// Whether only signed systems start.
        secure_boot_enabled: bool,
        /// Whether the machine has a virtual TPM.
        #[serde(rename = "vTpmEnabled")]
        v_tpm_enabled: bool,
    }
}

/// Validates a confidential machine. `path` is that of the machine.
pub(crate) fn check_confidential(
    os_disk: Option<&OsDisk>,
    profile: Option<&SecurityProfile>,
    path: &Path,
    errors: &mut FieldErrors,
) {
    let Some(encryption) = os_disk.and_then(OsDisk::security_encryption_type) else { return };
    let Some(profile) = profile else { return };
    let path = path.child("securityProfile");
    let whole_disk = encryption == "DiskWithVMGuestState";
    if whole_disk && profile.encryption_at_host == Some(true) {
        errors.invalid(
            &path.child("encryptionAtHost"),
            true,
            "encryption at host cannot be used together with securityEncryptionType DiskWithVMGuestState",
        );
    }
    if profile.security_type.as_deref() != Some("ConfidentialVM") {
        errors.invalid(
            &path.child("securityType"),
            json!(profile.security_type),
            "securityType should be set to ConfidentialVM when securityEncryptionType is set",
        );
    }
    let Some(uefi) = &profile.uefi_settings else {
        errors.required(
            &path.child("uefiSettings"),
            "uefiSettings should be set when securityEncryptionType is set",
        );
        return;
    };
    let path = path.child("uefiSettings");
    if uefi.v_tpm_enabled != Some(true) {
        errors.invalid(
            &path.child("vTpmEnabled"),
            json!(uefi.v_tpm_enabled),
            "vTpmEnabled should be true when securityEncryptionType is set",
        );
    }
    if whole_disk && uefi.secure_boot_enabled != Some(true) {
        errors.invalid(
            &path.child("secureBootEnabled"),
            json!(uefi.secure_boot_enabled),
            "secureBootEnabled should be true when securityEncryptionType is DiskWithVMGuestState",
        );
    }
}
