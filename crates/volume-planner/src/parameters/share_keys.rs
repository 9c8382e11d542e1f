//! The keys of parameters of shares, as users write them. They are read in any case.

/// SMB or NFS.
pub const PROTOCOL: &str = "protocol";
/// The account.
pub const STORAGE_ACCOUNT: &str = "storageAccount";
/// Whether an account is made without a search.
pub const CREATE_ACCOUNT: &str = "createAccount";
/// The share's name.
pub const SHARE_NAME: &str = "shareName";
/// What names of shares begin with.
pub const SHARE_NAME_PREFIX: &str = "shareNamePrefix";
/// A folder of the share.
pub const FOLDER_NAME: &str = "folderName";
/// Whether the folder is made.
pub const CREATE_FOLDER: &str = "createFolderIfNotExist";
/// The host that nodes mount from.
pub const SERVER: &str = "server";
/// The domain of the cloud's storage.
pub const ENDPOINT_SUFFIX: &str = "storageEndpointSuffix";
/// The tier of the share.
pub const SHARE_TIER: &str = "shareAccessTier";
/// Another key for the tier of the share.
pub const ACCESS_TIER: &str = "accessTier";
/// The tier of the account.
pub const ACCOUNT_TIER: &str = "accountAccessTier";
/// What happens to the superuser's requests over NFS.
pub const ROOT_SQUASH: &str = "rootSquashType";
/// Shares of more than 5 TiB.
pub const LARGE_SHARES: &str = "enableLargeFileShares";
/// How nodes reach the account.
pub const ENDPOINT_TYPE: &str = "networkEndpointType";
/// The resource group of the private zone.
pub const ZONE_GROUP: &str = "privateDNSZoneResourceGroup";
/// The resource group of the network.
pub const NETWORK_GROUP: &str = "vnetResourceGroup";
/// The network.
pub const NETWORK: &str = "vnetName";
/// The subnets.
pub const SUBNETS: &str = "subnetName";
/// The link of the zone to the network.
pub const NETWORK_LINK: &str = "vnetLinkName";
/// Public access to blobs.
pub const BLOB_PUBLIC_ACCESS: &str = "allowBlobPublicAccess";
/// Access with account keys.
pub const SHARED_KEY_ACCESS: &str = "allowSharedKeyAccess";
/// Replication to other tenants.
pub const CROSS_TENANT: &str = "allowCrossTenantReplication";
/// A second encryption.
pub const INFRASTRUCTURE_ENCRYPTION: &str = "requireInfraEncryption";
/// Whether deleted shares are gone at once.
pub const NO_RETENTION: &str = "disableDeleteRetentionPolicy";
/// SMB over several connections.
pub const MULTICHANNEL: &str = "enableMultichannel";
/// Whether accounts are chosen by tags, too.
pub const MATCH_TAGS: &str = "matchTags";
/// Whether a random one of the suitable accounts is taken.
pub const RANDOM_ACCOUNT: &str = "selectRandomMatchingAccount";
/// How many GiB the shares of an account may have together.
pub const ACCOUNT_QUOTA: &str = "accountQuota";
/// Operations a second.
pub const IOPS: &str = "provisionedIOPS";
/// MiB a second.
pub const BANDWIDTH: &str = "provisionedBandwidth";
/// Whether the account's key is written into a Secret.
pub const STORE_KEY: &str = "storeAccountKey";
/// The Secret.
pub const SECRET_NAME: &str = "secretName";
/// Its namespace.
pub const SECRET_NAMESPACE: &str = "secretNamespace";
/// Whether the Secret is not read for each volume.
pub const SECRET_CACHE: &str = "useSecretCache";
/// Whether the newest key is taken.
pub const LATEST_KEY: &str = "getLatestAccountKey";
/// How shares are made.
pub const DATA_PLANE: &str = "useDataPlaneAPI";
/// The identity of mounts.
pub const CLIENT_ID: &str = "clientID";
/// Its tenant.
pub const TENANT_ID: &str = "tenantID";
/// Mounts with a managed identity.
pub const MANAGED_IDENTITY: &str = "mountWithManagedIdentity";
/// Mounts with a pod's identity.
pub const WORKLOAD_IDENTITY: &str = "mountWithWorkloadIdentityToken";
/// Mounts with a token of a Secret.
pub const OAUTH_TOKEN: &str = "mountWithOAuthToken";
/// The mode of the root of an NFS share.
pub const MOUNT_PERMISSIONS: &str = "mountPermissions";
/// Whose files become those of the pod's group.
pub const FS_GROUP_POLICY: &str = "fsGroupChangePolicy";
/// NFS over TLS.
pub const ENCRYPT_IN_TRANSIT: &str = "encryptInTransit";
/// Confidential containers: a node's label.
pub const CONFIDENTIAL_LABEL: &str = "confidentialContainerLabel";
/// Confidential containers: the runtime's handler.
pub const RUNTIME_HANDLER: &str = "runtimeClassHandler";
/// Metadata of a snapshot.
pub const METADATA: &str = "metadata";
