//! Parameters of classes for shares: one row each.

use super::disk_table::PUBLIC_ACCESS;
use super::form::Form::{AnyCase, Boolean, OneOf, Text, Whole};
use super::table::{Parameter, parameter};
use super::{keys, share_keys as own};
use crate::model::account_sku::SKU_NAMES;

/// Protocols of shares.
pub const PROTOCOLS: &[&str] = &["smb", "nfs"];
/// File systems; those of disks are in a file on the share.
pub const FILE_SYSTEMS: &[&str] = &["cifs", "smb", "nfs", "ext2", "ext3", "ext4", "xfs"];
/// Tiers of shares.
pub const SHARE_TIERS: &[&str] = &["TransactionOptimized", "Hot", "Cool", "Premium"];
/// Tiers of accounts.
pub const ACCOUNT_TIERS: &[&str] = &["Hot", "Cool", "Cold", "Premium"];
/// What happens to the superuser's requests.
pub const ROOT_SQUASH: &[&str] = &["NoRootSquash", "RootSquash", "AllSquash"];
/// Ways to the account.
pub const ENDPOINT_TYPES: &[&str] = &["privateEndpoint", "serviceEndpoint"];
/// How shares are made.
pub const DATA_PLANES: &[&str] = &["true", "false", "oauth"];
/// Whose files become those of the pod's group.
pub const FS_GROUP_POLICIES: &[&str] = &["None", "Always", "OnRootMismatch"];

const ANY_NUMBER: super::form::Form = Whole { min: 0, max: u64::MAX };

/// All parameters of shares.
pub const SHARE_PARAMETERS: &[Parameter] = &[
    parameter(
        keys::SKU_NAME,
        AnyCase(SKU_NAMES),
        "`Standard_LRS` for a new account; `Premium_LRS` for NFS",
        "the kind of account; one that is searched for has this one",
    )
    .aliases(&[keys::STORAGE_ACCOUNT_TYPE]),
    parameter(own::PROTOCOL, OneOf(PROTOCOLS), "`smb`", "the protocol; `nfs` takes premium accounts"),
    parameter(
        keys::FS_TYPE,
        AnyCase(FILE_SYSTEMS),
        "none",
        "`nfs` is protocol `nfs`; with a file system of disks the volume is a disk in a file on the share",
    ),
    parameter(own::STORAGE_ACCOUNT, Text, "one is searched for, or made", "the account, which has to exist"),
    parameter(
        own::CREATE_ACCOUNT,
        Boolean,
        "`false`",
        "an account is made for the class, whatever others there are",
    ),
    parameter(keys::RESOURCE_GROUP, Text, "the cluster's", "the resource group of the account"),
    parameter(
        keys::SUBSCRIPTION_ID,
        Text,
        "the cluster's",
        "the subscription; with another one than the cluster's, `resourceGroup` is needed",
    ),
    parameter(keys::LOCATION, Text, "the cluster's", "the region of the account"),
    parameter(
        own::SHARE_NAME,
        Text,
        "derived from the PersistentVolume's name",
        "a share for all volumes of the class; may contain `${pvc.metadata.name}`, `${pvc.metadata.namespace}` and \
         `${pv.metadata.name}`",
    ),
    parameter(own::SHARE_NAME_PREFIX, Text, "none", "at most 20 characters before the name of each share"),
    parameter(
        own::FOLDER_NAME,
        Text,
        "the share's root",
        "a folder of the share, with the variables of `shareName`",
    ),
    parameter(own::CREATE_FOLDER, Boolean, "`false`", "the folder is made at the first mount"),
    parameter(own::SERVER, Text, "`ACCOUNT.file.SUFFIX`", "the host that nodes mount from"),
    parameter(own::ENDPOINT_SUFFIX, Text, "the cloud's", "the domain of storage"),
    parameter(own::SHARE_TIER, OneOf(SHARE_TIERS), "Azure's", "the tier of the share")
        .aliases(&[own::ACCESS_TIER]),
    parameter(own::ACCOUNT_TIER, OneOf(ACCOUNT_TIERS), "Azure's", "the tier of the account"),
    parameter(own::ROOT_SQUASH, OneOf(ROOT_SQUASH), "Azure's", "NFS: what the superuser may do"),
    parameter(own::LARGE_SHARES, Boolean, "Azure's", "shares of more than 5 TiB in standard accounts"),
    parameter(
        own::ENDPOINT_TYPE,
        OneOf(ENDPOINT_TYPES),
        "the public endpoint",
        "a private endpoint of the account, or subnets that it admits",
    ),
    parameter(own::ZONE_GROUP, Text, "the network's", "the group of the zone of private endpoints"),
    parameter(own::NETWORK_GROUP, Text, "that of `azure.json`", "the group of the network"),
    parameter(own::NETWORK, Text, "that of `azure.json`", "the network"),
    parameter(
        own::SUBNETS,
        Text,
        "all of the network; that of `azure.json` for a private endpoint",
        "subnets, separated by commas; one for a private endpoint",
    ),
    parameter(own::NETWORK_LINK, Text, "`NETWORK-vnetlink`", "the link of the zone to the network"),
    parameter(
        keys::PUBLIC_ACCESS,
        AnyCase(PUBLIC_ACCESS_OF_ACCOUNTS),
        "Azure's",
        "the public endpoint of a new account",
    ),
    parameter(own::BLOB_PUBLIC_ACCESS, Boolean, "`false`", "public access to blobs of the account"),
    parameter(own::SHARED_KEY_ACCESS, Boolean, "`true`", "access with the account's keys"),
    parameter(own::CROSS_TENANT, Boolean, "Azure's", "replication of objects to other tenants"),
    parameter(own::INFRASTRUCTURE_ENCRYPTION, Boolean, "`false`", "data are encrypted twice"),
    parameter(own::NO_RETENTION, Boolean, "Azure's", "deleted shares are gone at once"),
    parameter(own::MULTICHANNEL, Boolean, "Azure's", "SMB over several connections, in premium accounts"),
    parameter(own::MATCH_TAGS, Boolean, "`false`", "only accounts with the tags are taken"),
    parameter(keys::TAGS, Text, "none", "tags of a new account, as `key1=value1,key2=value2`"),
    parameter(keys::TAG_DELIMITER, Text, "`,`", "what separates the tags, so that values may contain commas"),
    parameter(own::RANDOM_ACCOUNT, Boolean, "`false`", "shares are spread over all suitable accounts"),
    parameter(
        own::ACCOUNT_QUOTA,
        Whole { min: 100, max: u64::MAX },
        "no limit",
        "how many GiB the shares of an account may have together",
    ),
    parameter(own::IOPS, ANY_NUMBER, "by the size, in accounts of version 2", "operations a second")
        .mutable(),
    parameter(own::BANDWIDTH, ANY_NUMBER, "by the size, in accounts of version 2", "MiB a second").mutable(),
    parameter(
        own::STORE_KEY,
        Boolean,
        "`true`; `false` for NFS, and where nodes mount with an identity",
        "the account's key is written into a Secret for nodes",
    ),
    parameter(own::SECRET_NAME, Text, "`azure-storage-account-ACCOUNT-secret`", "the Secret with the key"),
    parameter(own::SECRET_NAMESPACE, Text, "the claim's, or `default`", "its namespace"),
    parameter(own::SECRET_CACHE, Boolean, "`false`", "nothing: a Secret is written only if it differs"),
    parameter(own::LATEST_KEY, Boolean, "`false`", "the newest key is taken instead of the first one"),
    parameter(
        own::DATA_PLANE,
        OneOf(DATA_PLANES),
        "`false`",
        "shares are made by the account's own endpoint, with its key or a token",
    ),
    parameter(own::CLIENT_ID, Text, "the cluster's identity", "the identity with which nodes mount"),
    parameter(own::TENANT_ID, Text, "the cluster's", "its tenant"),
    parameter(own::MANAGED_IDENTITY, Boolean, "`false`", "nodes mount with a managed identity"),
    parameter(own::WORKLOAD_IDENTITY, Boolean, "`false`", "nodes mount with the pod's identity"),
    parameter(own::OAUTH_TOKEN, Boolean, "`false`", "nodes mount with the token of a Secret"),
    parameter(
        own::MOUNT_PERMISSIONS,
        Text,
        "the program's flag",
        "the mode of an NFS share's root, in octal; 0 leaves it",
    ),
    parameter(
        own::FS_GROUP_POLICY,
        OneOf(FS_GROUP_POLICIES),
        "the program's flag, or `OnRootMismatch`",
        "whose files become those of the pod's group",
    ),
    parameter(own::ENCRYPT_IN_TRANSIT, Boolean, "`false`", "NFS over TLS"),
    parameter(
        own::CONFIDENTIAL_LABEL,
        Text,
        "`kubernetes.azure.com/kata-cc-isolation`",
        "the label of nodes with confidential containers",
    ),
    parameter(own::RUNTIME_HANDLER, Text, "`kata-cc`", "the handler of confidential containers"),
    parameter(keys::PVC_NAME, Text, "", "set by the provisioner"),
    parameter(keys::PVC_NAMESPACE, Text, "", "set by the provisioner"),
    parameter(keys::PV_NAME, Text, "", "set by the provisioner"),
];

/// Values of `publicNetworkAccess` of accounts.
const PUBLIC_ACCESS_OF_ACCOUNTS: &[&str] = &[PUBLIC_ACCESS[0], PUBLIC_ACCESS[1], "SecuredByPerimeter"];

/// All parameters of snapshots of shares.
pub const SHARE_SNAPSHOT_PARAMETERS: &[Parameter] = &[
    parameter(
        own::DATA_PLANE,
        OneOf(DATA_PLANES),
        "`false`",
        "the snapshot is made by the account's own endpoint",
    ),
    parameter(
        own::METADATA,
        Text,
        "none",
        "metadata of the snapshot, as `key1=value1,key2=value2`; `initiator` is the driver's",
    ),
    parameter(keys::SNAPSHOT_NAME, Text, "", "set by the snapshotter; no effect"),
    parameter(keys::SNAPSHOT_NAMESPACE, Text, "", "set by the snapshotter; no effect"),
    parameter(keys::CONTENT_NAME, Text, "", "set by the snapshotter; no effect"),
];
