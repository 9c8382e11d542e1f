//! The keys of parameters, as users write them. They are read in any case.

pub use crate::model::disk_sku::SKU_NAME;

/// Another key for the SKU, from the in-tree driver.
pub const STORAGE_ACCOUNT_TYPE: &str = "storageAccountType";
/// The in-tree driver's kind of disk.
pub const KIND: &str = "kind";
/// The file system.
pub const FS_TYPE: &str = "fsType";
/// The machine's cache.
pub const CACHING_MODE: &str = "cachingMode";
/// The region.
pub const LOCATION: &str = "location";
/// The resource group.
pub const RESOURCE_GROUP: &str = "resourceGroup";
/// The subscription.
pub const SUBSCRIPTION_ID: &str = "subscriptionID";
/// Operations a second.
pub const IOPS: &str = "DiskIOPSReadWrite";
/// Throughput in MB a second.
pub const MBPS: &str = "DiskMBpsReadWrite";
/// Bytes of a sector.
pub const SECTOR_SIZE: &str = "LogicalSectorSize";
/// Tags.
pub const TAGS: &str = "tags";
/// What separates tags.
pub const TAG_DELIMITER: &str = "tagValueDelimiter";
/// The disk encryption set.
pub const ENCRYPTION_SET: &str = "diskEncryptionSetID";
/// The kind of encryption.
pub const ENCRYPTION_TYPE: &str = "diskEncryptionType";
/// Write acceleration.
pub const WRITE_ACCELERATOR: &str = "writeAcceleratorEnabled";
/// The profile of device settings.
pub const PERF_PROFILE: &str = "perfProfile";
/// What keys of device settings begin with.
pub const DEVICE_SETTING: &str = "device-setting/";
/// Access over the network.
pub const NETWORK_ACCESS: &str = "networkAccessPolicy";
/// Access over the public network.
pub const PUBLIC_ACCESS: &str = "publicNetworkAccess";
/// The disk access for private links.
pub const DISK_ACCESS: &str = "diskAccessID";
/// Bursting on demand.
pub const BURSTING: &str = "enableBursting";
/// Performance plus.
pub const PERFORMANCE_PLUS: &str = "enablePerformancePlus";
/// How many machines may share the disk.
pub const MAX_SHARES: &str = "maxShares";
/// How long attaches wait for others.
pub const ATTACH_DELAY: &str = "attachDiskInitialDelay";
/// The caller's name in requests to Azure.
pub const USER_AGENT: &str = "userAgent";
/// The disk's name.
pub const DISK_NAME: &str = "diskName";
/// Without effect.
pub const ASYNC_ATTACH: &str = "enableAsyncAttach";
/// Without effect.
pub const ZONED: &str = "zoned";
/// The claim's name, from the provisioner.
pub const PVC_NAME: &str = "csi.storage.k8s.io/pvc/name";
/// The claim's namespace, from the provisioner.
pub const PVC_NAMESPACE: &str = "csi.storage.k8s.io/pvc/namespace";
/// The volume's name, from the provisioner.
pub const PV_NAME: &str = "csi.storage.k8s.io/pv/name";
/// Only what changed is stored.
pub const INCREMENTAL: &str = "incremental";
/// Who may read a snapshot's data.
pub const DATA_ACCESS: &str = "dataAccessAuthMode";
/// How long a snapshot can be restored before its data are copied.
pub const INSTANT_ACCESS: &str = "instantAccessDurationMinutes";
/// The snapshot's name, from the snapshotter.
pub const SNAPSHOT_NAME: &str = "csi.storage.k8s.io/volumesnapshot/name";
/// The snapshot's namespace, from the snapshotter.
pub const SNAPSHOT_NAMESPACE: &str = "csi.storage.k8s.io/volumesnapshot/namespace";
/// The name of the snapshot's content, from the snapshotter.
pub const CONTENT_NAME: &str = "csi.storage.k8s.io/volumesnapshotcontent/name";
