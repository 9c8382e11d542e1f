//! Parameters of StorageClasses and VolumeAttributesClasses: one row each.

use super::form::Form::{AnyCase, Boolean, OneOf, OnlyTrue, ResourceId, Text, Whole};
use super::keys;
use super::table::{Parameter, parameter};
use crate::model::disk_sku::{CACHING_NAMES, SKU_NAMES};

/// Kinds of encryption (Azure REST reference, "Disks", `EncryptionType`).
pub const ENCRYPTION_TYPES: &[&str] = &[
    "EncryptionAtRestWithCustomerKey",
    "EncryptionAtRestWithPlatformAndCustomerKeys",
    "EncryptionAtRestWithPlatformKey",
];
/// Access over the network (Azure REST reference, "Disks", `NetworkAccessPolicy`).
pub const NETWORK_POLICIES: &[&str] = &["AllowAll", "DenyAll", "AllowPrivate"];
/// Access over the public network.
pub const PUBLIC_ACCESS: &[&str] = &["Enabled", "Disabled"];
/// Profiles of device settings.
pub const PROFILES: &[&str] = &["none", "basic", "advanced"];
const FILE_SYSTEMS: &[&str] = &["ext2", "ext3", "ext4", "xfs", "btrfs", "ntfs"];

const ANY_NUMBER: super::form::Form = Whole { min: 1, max: u64::MAX };

/// All parameters of disks.
pub const DISK_PARAMETERS: &[Parameter] = &[
    parameter(
        keys::SKU_NAME,
        OneOf(SKU_NAMES),
        "`StandardSSD_LRS`; `Standard_LRS` on Azure Stack",
        "the kind of disk; Azure Stack has `Standard_LRS` and `Premium_LRS`",
    )
    .aliases(&[keys::STORAGE_ACCOUNT_TYPE])
    .mutable(),
    parameter(keys::KIND, Text, "`managed`", "nothing: all disks are managed"),
    parameter(keys::FS_TYPE, AnyCase(FILE_SYSTEMS), "`ext4`; `ntfs` on Windows", "the file system"),
    parameter(
        keys::CACHING_MODE,
        OneOf(CACHING_NAMES),
        "`ReadOnly`",
        "the machine's cache for the disk; `None` for `PremiumV2_LRS` and `UltraSSD_LRS`, for premium disks that are \
         shared, and from 4096 GiB on",
    ),
    parameter(keys::LOCATION, Text, "the zone's region, or the cluster's", "the region"),
    parameter(keys::RESOURCE_GROUP, Text, "the cluster's", "the resource group, which has to exist"),
    parameter(
        keys::SUBSCRIPTION_ID,
        Text,
        "the cluster's",
        "the subscription; with another one than the cluster's, `resourceGroup` is needed",
    ),
    parameter(
        keys::IOPS,
        ANY_NUMBER,
        "`UltraSSD_LRS`: one a GiB, at least 500; else Azure's",
        "operations a second",
    )
    .provisioned()
    .mutable(),
    parameter(keys::MBPS, ANY_NUMBER, "`UltraSSD_LRS`: 100, or what the operations need; else Azure's", "MB a second")
        .provisioned()
        .mutable(),
    parameter(keys::SECTOR_SIZE, OneOf(&["512", "4096"]), "Azure's, 4096", "bytes of a sector").provisioned(),
    parameter(
        keys::TAGS,
        Text,
        "none",
        "tags of the disk, as `key1=value1,key2=value2`; values may contain `${pvc.metadata.name}`, \
         `${pvc.metadata.namespace}` and `${pv.metadata.name}`",
    ),
    parameter(keys::TAG_DELIMITER, Text, "`,`", "what separates the tags, so that values may contain commas"),
    parameter(keys::ENCRYPTION_SET, ResourceId, "Azure's keys", "the disk encryption set with the customer's key"),
    parameter(
        keys::ENCRYPTION_TYPE,
        OneOf(ENCRYPTION_TYPES),
        "`EncryptionAtRestWithCustomerKey`",
        "the keys that encrypt; needs `diskEncryptionSetID`",
    ),
    parameter(
        keys::WRITE_ACCELERATOR,
        Boolean,
        "`false`",
        "the disk is attached with write acceleration; stored as its tag `writeacceleratorenabled`",
    ),
    parameter(
        keys::PERF_PROFILE,
        AnyCase(PROFILES),
        "`none`",
        "device settings: computed from disk and machine (`basic`), or as given (`advanced`)",
    ),
    parameter(
        keys::DEVICE_SETTING,
        Text,
        "none",
        "the value of a file below the block device's folder; needed by `perfProfile` `advanced`, else without effect",
    )
    .prefix(),
    parameter(
        keys::NETWORK_ACCESS,
        OneOf(NETWORK_POLICIES),
        "`DenyAll`; `AllowPrivate` with `diskAccessID`",
        "export and import over the network; no effect on Azure Stack",
    ),
    parameter(
        keys::PUBLIC_ACCESS,
        OneOf(PUBLIC_ACCESS),
        "`Disabled`",
        "export and import over the public network; no effect on Azure Stack",
    ),
    parameter(
        keys::DISK_ACCESS,
        ResourceId,
        "none",
        "the disk access of private endpoints; needs `networkAccessPolicy` `AllowPrivate`",
    ),
    parameter(keys::BURSTING, OnlyTrue, "off", "bursting on demand"),
    parameter(
        keys::PERFORMANCE_PLUS,
        Boolean,
        "`false`",
        "more operations and throughput; the disk has at least 513 GiB",
    ),
    parameter(
        keys::MAX_SHARES,
        ANY_NUMBER,
        "`1`",
        "how many machines may have the disk at a time; only 1 on Azure Stack",
    ),
    parameter(
        keys::ATTACH_DELAY,
        Whole { min: 0, max: u64::MAX },
        "the program's flag",
        "milliseconds that an attach waits for others of the same machine",
    ),
    parameter(keys::USER_AGENT, Text, "the program's", "the user agent of requests to Azure"),
    parameter(
        keys::DISK_NAME,
        Text,
        "the PersistentVolume's name",
        "the disk's name, which may contain `${pvc.metadata.name}`, `${pvc.metadata.namespace}` and \
         `${pv.metadata.name}`; cut to 80 characters; replaced by a hash if Azure does not take it",
    ),
    parameter(keys::ASYNC_ATTACH, Text, "", "nothing: accepted for compatibility"),
    parameter(keys::ZONED, Text, "", "nothing: accepted for compatibility"),
    parameter(keys::PVC_NAME, Text, "", "set by the provisioner: tag `kubernetes.io-created-for-pvc-name`"),
    parameter(
        keys::PVC_NAMESPACE,
        Text,
        "",
        "set by the provisioner: tag `kubernetes.io-created-for-pvc-namespace`",
    ),
    parameter(keys::PV_NAME, Text, "", "set by the provisioner: tag `kubernetes.io-created-for-pv-name`"),
];
