//! Disks of a machine.

use std::collections::BTreeSet;

use serde_json::json;

use crate::field_error::{FieldErrors, Path};
use crate::object::object;

/// The kind of disk that only some sizes in some zones can have, without a cache.
pub const ULTRA_SSD: &str = "UltraSSD_LRS";

/// Kinds of managed disks (Azure, "Azure managed disk types"). An OS disk cannot be of the last one.
const KINDS: [&str; 7] = [
    "Premium_LRS",
    "Premium_ZRS",
    "PremiumV2_LRS",
    "StandardSSD_LRS",
    "StandardSSD_ZRS",
    "Standard_LRS",
    ULTRA_SSD,
];
const CACHES: [&str; 3] = ["None", "ReadOnly", "ReadWrite"];
/// The largest number of data disks of a machine: LUNs are below.
const MAX_LUNS: i32 = 64;

object! {
    /// The disk with a machine's system.
    OsDisk {
        /// The cache: None, ReadOnly or ReadWrite.
        #[schemars(extend("default" = "None", "enum" = ["None", "ReadOnly", "ReadWrite"]))]
        caching_type: String,
        /// Whether the disk is on the host, and lost with the machine's placement.
        diff_disk_settings: DiffDiskSettings,
        /// The size in GiB, from 1 to 2048; the image's if it is not set.
        #[serde(rename = "diskSizeGB")]
        disk_size_gb: i32,
        /// The kind of managed disk.
        managed_disk: ManagedDisk,
        /// Linux or Windows.
        #[schemars(required, extend("default" = "Linux"))]
        os_type: String,
    }
}

object! {
    /// A data disk.
    DataDisk {
        /// The cache: None, ReadOnly or ReadWrite.
        #[schemars(extend("enum" = ["None", "ReadOnly", "ReadWrite"]))]
        caching_type: String,
        /// The size in GiB, from 4 to 32767.
        #[serde(rename = "diskSizeGB")]
        #[schemars(required)]
        disk_size_gb: i32,
        /// The logical unit number, from 0 to 63; the lowest free one if it is not set.
        lun: i32,
        /// The kind of managed disk.
        managed_disk: ManagedDisk,
        /// The suffix of the disk's name after the machine's name.
        #[schemars(required)]
        name_suffix: String,
    }
}

object! {
    /// A disk on the host.
    DiffDiskSettings {
        /// Local.
        #[schemars(required, extend("enum" = ["Local"]))]
        option: String,
        /// The host's disk: CacheDisk, NvmeDisk or ResourceDisk.
        #[schemars(extend("enum" = ["CacheDisk", "NvmeDisk", "ResourceDisk"]))]
        placement: String,
    }
}

object! {
    /// A managed disk.
    ManagedDisk {
        /// The customer-managed keys that encrypt the disk.
        disk_encryption_set: DiskEncryptionSet,
        /// The encryption of a confidential machine's disk.
        security_profile: DiskSecurityProfile,
        /// The kind, such as Premium_LRS.
        storage_account_type: String,
    }
}

object! {
    /// A set of keys of a customer.
    DiskEncryptionSet {
        /// The id of the disk encryption set.
        id: String,
    }
}

object! {
    /// The encryption of a confidential machine's disk.
    DiskSecurityProfile {
        /// The customer-managed keys, only for DiskWithVMGuestState.
        disk_encryption_set: DiskEncryptionSet,
        /// VMGuestStateOnly or DiskWithVMGuestState.
        #[schemars(extend("enum" = ["VMGuestStateOnly", "DiskWithVMGuestState"]))]
        security_encryption_type: String,
    }
}

impl OsDisk {
    /// Whether the disk is on the host.
    pub fn is_ephemeral(&self) -> bool {
        self.diff_disk_settings.as_ref().is_some_and(|settings| settings.option.as_deref() == Some("Local"))
    }

    /// The encryption of a confidential machine's disk.
    pub fn security_encryption_type(&self) -> Option<&str> {
        let profile = self.managed_disk.as_ref()?.security_profile.as_ref()?;
        profile.security_encryption_type.as_deref().filter(|kind| !kind.is_empty())
    }
}

/// Sets the defaults of data disks: the lowest free LUN, and a cache.
pub(crate) fn default_data_disks(disks: Option<&mut Vec<DataDisk>>) {
    let Some(disks) = disks else { return };
    let mut taken: BTreeSet<i32> = disks.iter().filter_map(|disk| disk.lun).collect();
    for disk in disks {
        if disk.lun.is_none() {
            disk.lun = (0..MAX_LUNS).find(|lun| taken.insert(*lun));
        }
        if disk.caching_type.as_deref().unwrap_or_default().is_empty() {
            let kind = disk.managed_disk.as_ref().and_then(|disk| disk.storage_account_type.as_deref());
            disk.caching_type = Some(if kind == Some(ULTRA_SSD) { "None" } else { "ReadWrite" }.to_owned());
        }
    }
}

/// Validates the OS disk.
pub(crate) fn check_os_disk(disk: Option<&OsDisk>, path: &Path, errors: &mut FieldErrors) {
    let Some(disk) = disk else { return };
    if let Some(size) = disk.disk_size_gb
        && !(1..=2048).contains(&size)
    {
        errors.invalid(&path.child("diskSizeGB"), size, "the Disk size should be a value between 1 and 2048");
    }
    if disk.os_type.as_deref().unwrap_or_default().is_empty() {
        errors.required(&path.child("osType"), "the OS type cannot be empty: Linux or Windows");
    }
    check_cache(disk.caching_type.as_deref(), path, errors);
    if let Some(managed) = &disk.managed_disk {
        let path = path.child("managedDisk");
        check_managed_disk(managed, &KINDS[..KINDS.len() - 1], &path, errors);
        check_disk_security(managed.security_profile.as_ref(), &path.child("securityProfile"), errors);
    }
    let encrypted = disk.managed_disk.as_ref().is_some_and(|disk| disk.disk_encryption_set.is_some());
    if disk.is_ephemeral() && encrypted {
        errors.invalid(
            &path.child("managedDisks").child("diskEncryptionSet"),
            json!(disk.managed_disk.as_ref().and_then(|disk| disk.disk_encryption_set.as_ref())),
            "diskEncryptionSet is not supported when diffDiskSettings.option is 'Local'",
        );
    }
    if let Some(settings) = &disk.diff_disk_settings
        && settings.placement.is_some()
        && !disk.is_ephemeral()
    {
        errors.invalid(
            &path.child("diffDiskSettings"),
            json!(settings),
            "placement is only supported when diffDiskSettings.option is 'Local'",
        );
    }
}

/// Validates data disks.
pub(crate) fn check_data_disks(disks: Option<&[DataDisk]>, path: &Path, errors: &mut FieldErrors) {
    let (mut names, mut luns) = (BTreeSet::new(), BTreeSet::new());
    for (index, disk) in disks.into_iter().flatten().enumerate() {
        let path = path.index(index);
        let size = disk.disk_size_gb.unwrap_or_default();
        if !(4..=32767).contains(&size) {
            errors.invalid(
                &path.child("diskSizeGB"),
                size,
                "the disk size should be a value between 4 and 32767",
            );
        }
        let name = disk.name_suffix.as_deref().unwrap_or_default();
        if name.is_empty() {
            errors.required(&path.child("nameSuffix"), "the name suffix cannot be empty");
        } else if !names.insert(name) {
            errors.duplicate(&path.child("nameSuffix"), name);
        }
        match disk.lun {
            None => errors.required(&path.child("lun"), "LUN should not be nil"),
            Some(lun) if !(0..MAX_LUNS).contains(&lun) => {
                errors.invalid(&path.child("lun"), lun, "logical unit number must be between 0 and 63");
            }
            Some(lun) if !luns.insert(lun) => errors.duplicate(&path.child("lun"), lun),
            Some(_) => {}
        }
        let mut kind = None;
        if let Some(managed) = &disk.managed_disk {
            kind = managed.storage_account_type.as_deref();
            check_managed_disk(managed, &KINDS, &path.child("managedDisk"), errors);
        }
        check_cache(disk.caching_type.as_deref(), &path, errors);
        let cache = disk.caching_type.as_deref().unwrap_or_default();
        if kind == Some(ULTRA_SSD) && cache != "None" {
            errors.invalid(
                &path.child("cachingType"),
                cache,
                "cachingType must be None when the storage account type is UltraSSD_LRS",
            );
        }
    }
}

fn check_cache(cache: Option<&str>, path: &Path, errors: &mut FieldErrors) {
    if let Some(cache) = cache
        && !cache.is_empty()
        && !CACHES.contains(&cache)
    {
        errors.not_supported(&path.child("cachingType"), cache, &CACHES);
    }
}

fn check_managed_disk(disk: &ManagedDisk, kinds: &[&str], path: &Path, errors: &mut FieldErrors) {
    let kind_path = path.child("storageAccountType");
    match disk.storage_account_type.as_deref() {
        None | Some("") => {
            errors.required(&kind_path, "the Storage Account Type for Managed Disk cannot be empty")
        }
        Some(ULTRA_SSD) if !kinds.contains(&ULTRA_SSD) => errors.invalid(
            &kind_path,
            ULTRA_SSD,
            "UltraSSD_LRS can only be used with data disks, it cannot be used with OS Disks",
        ),
        Some(kind) if !kinds.contains(&kind) => errors.not_supported(&kind_path, kind, kinds),
        Some(_) => {}
    }
}

/// Encryption of the guest state only uses keys of Azure's.
fn check_disk_security(profile: Option<&DiskSecurityProfile>, path: &Path, errors: &mut FieldErrors) {
    let Some(profile) = profile else { return };
    let whole_disk = profile.security_encryption_type.as_deref() == Some("DiskWithVMGuestState");
    if profile.disk_encryption_set.is_some() && !whole_disk {
        errors.invalid(
            &path.child("diskEncryptionSet"),
            json!(profile.disk_encryption_set),
            "diskEncryptionSet is only supported when securityEncryptionType is DiskWithVMGuestState",
        );
    }
}
