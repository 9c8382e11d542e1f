//! Disks of a machine.

use std::collections::BTreeSet;

use crate::field_error::Field;
use crate::object::object;
use crate::text::{fill, is_set, text};

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

    /// A disk on the host.
    DiffDiskSettings {
        /// Local.
        #[schemars(required, extend("enum" = ["Local"]))]
        option: String,
        /// The host's disk: CacheDisk, NvmeDisk or ResourceDisk.
        #[schemars(extend("enum" = ["CacheDisk", "NvmeDisk", "ResourceDisk"]))]
        placement: String,
    }

    /// A managed disk.
    ManagedDisk {
        /// The customer-managed keys that encrypt the disk.
        disk_encryption_set: DiskEncryptionSet,
        /// The encryption of a confidential machine's disk.
        security_profile: DiskSecurityProfile,
        /// The kind, such as Premium_LRS.
        storage_account_type: String,
    }

    /// A set of keys of a customer.
    DiskEncryptionSet {
        /// The id of the disk encryption set.
        id: String,
    }

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
        let kind = disk.managed_disk.as_ref().and_then(|disk| disk.storage_account_type.as_deref());
        fill(&mut disk.caching_type, if kind == Some(ULTRA_SSD) { "None" } else { "ReadWrite" });
    }
}

/// Validates the OS disk.
pub(crate) fn check_os_disk(disk: Option<&OsDisk>, field: &Field<'_>) {
    let Some(disk) = disk else { return };
    if let Some(size) = disk.disk_size_gb {
        let words = "the Disk size should be a value between 1 and 2048";
        field.child("diskSizeGB").invalid_if(!(1..=2048).contains(&size), size, words);
    }
    let words = "the OS type cannot be empty: Linux or Windows";
    field.child("osType").required_if(!is_set(&disk.os_type), words);
    check_cache(&disk.caching_type, field);
    if let Some(managed) = &disk.managed_disk {
        let field = field.child("managedDisk");
        check_managed_disk(managed, &KINDS[..KINDS.len() - 1], &field);
        check_disk_security(managed.security_profile.as_ref(), &field.child("securityProfile"));
    }
    let encryption = disk.managed_disk.as_ref().and_then(|disk| disk.disk_encryption_set.as_ref());
    field.child("managedDisks.diskEncryptionSet").invalid_if(
        disk.is_ephemeral() && encryption.is_some(),
        encryption,
        "diskEncryptionSet is not supported when diffDiskSettings.option is 'Local'",
    );
    if let Some(settings) = &disk.diff_disk_settings {
        let words = "placement is only supported when diffDiskSettings.option is 'Local'";
        let is_wrong = settings.placement.is_some() && !disk.is_ephemeral();
        field.child("diffDiskSettings").invalid_if(is_wrong, settings, words);
    }
}

/// Validates data disks.
pub(crate) fn check_data_disks(disks: Option<&[DataDisk]>, list: &Field<'_>) {
    let (mut names, mut luns) = (BTreeSet::new(), BTreeSet::new());
    for (index, disk) in disks.into_iter().flatten().enumerate() {
        let field = list.index(index);
        let size = disk.disk_size_gb.unwrap_or_default();
        let words = "the disk size should be a value between 4 and 32767";
        field.child("diskSizeGB").invalid_if(!(4..=32767).contains(&size), size, words);
        match text(&disk.name_suffix) {
            "" => field.child("nameSuffix").required("the name suffix cannot be empty"),
            name => field.child("nameSuffix").duplicate_if(!names.insert(name), name),
        }
        match disk.lun {
            None => field.child("lun").required("LUN should not be nil"),
            Some(lun) if !(0..MAX_LUNS).contains(&lun) => {
                field.child("lun").invalid(lun, "logical unit number must be between 0 and 63");
            }
            Some(lun) => field.child("lun").duplicate_if(!luns.insert(lun), lun),
        }
        if let Some(managed) = &disk.managed_disk {
            check_managed_disk(managed, &KINDS, &field.child("managedDisk"));
        }
        check_cache(&disk.caching_type, &field);
        let kind = disk.managed_disk.as_ref().and_then(|managed| managed.storage_account_type.as_deref());
        let cache = text(&disk.caching_type);
        field.child("cachingType").invalid_if(
            kind == Some(ULTRA_SSD) && cache != "None",
            cache,
            "cachingType must be None when the storage account type is UltraSSD_LRS",
        );
    }
}

fn check_cache(cache: &Option<String>, disk: &Field<'_>) {
    if is_set(cache) {
        disk.child("cachingType").one_of(cache.as_deref(), &CACHES);
    }
}

fn check_managed_disk(disk: &ManagedDisk, kinds: &[&str], field: &Field<'_>) {
    let field = field.child("storageAccountType");
    match text(&disk.storage_account_type) {
        "" => field.required("the Storage Account Type for Managed Disk cannot be empty"),
        ULTRA_SSD if !kinds.contains(&ULTRA_SSD) => {
            field.invalid(
                ULTRA_SSD,
                "UltraSSD_LRS can only be used with data disks, it cannot be used with OS Disks",
            );
        }
        kind => field.one_of(Some(kind), kinds),
    }
}

/// Encryption of the guest state only uses keys of Azure's.
fn check_disk_security(profile: Option<&DiskSecurityProfile>, field: &Field<'_>) {
    let Some(profile) = profile else { return };
    let whole_disk = profile.security_encryption_type.as_deref() == Some("DiskWithVMGuestState");
    let set = &profile.disk_encryption_set;
    let words = "diskEncryptionSet is only supported when securityEncryptionType is DiskWithVMGuestState";
    field.child("diskEncryptionSet").invalid_if(set.is_some() && !whole_disk, set, words);
}
