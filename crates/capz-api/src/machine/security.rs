//! The protection of a machine from its host.

use super::OsDisk;
use crate::field_error::Field;
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

    /// What a machine's firmware does.
    UefiSettings {
        /// Whether only signed systems start.
        secure_boot_enabled: bool,
        /// Whether the machine has a virtual TPM.
        #[serde(rename = "vTpmEnabled")]
        v_tpm_enabled: bool,
    }
}

/// Validates a confidential machine.
pub(crate) fn check_confidential(
    os_disk: Option<&OsDisk>,
    profile: Option<&SecurityProfile>,
    machine: &Field<'_>,
) {
    let Some(encryption) = os_disk.and_then(OsDisk::security_encryption_type) else { return };
    let Some(profile) = profile else { return };
    let field = machine.child("securityProfile");
    let whole_disk = encryption == "DiskWithVMGuestState";
    field.child("encryptionAtHost").invalid_if(
        whole_disk && profile.encryption_at_host == Some(true),
        true,
        "encryption at host cannot be used together with securityEncryptionType DiskWithVMGuestState",
    );
    field.child("securityType").invalid_if(
        profile.security_type.as_deref() != Some("ConfidentialVM"),
        &profile.security_type,
        "securityType should be set to ConfidentialVM when securityEncryptionType is set",
    );
    let field = field.child("uefiSettings");
    let Some(uefi) = &profile.uefi_settings else {
        return field.required("uefiSettings should be set when securityEncryptionType is set");
    };
    field.child("vTpmEnabled").invalid_if(
        uefi.v_tpm_enabled != Some(true),
        uefi.v_tpm_enabled,
        "vTpmEnabled should be true when securityEncryptionType is set",
    );
    field.child("secureBootEnabled").invalid_if(
        whole_disk && uefi.secure_boot_enabled != Some(true),
        uefi.secure_boot_enabled,
        "secureBootEnabled should be true when securityEncryptionType is DiskWithVMGuestState",
    );
}
