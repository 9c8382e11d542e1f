//! A typed request for a share, from the parameters of its class.

use super::given::{Entries, Given, merge};
use super::share_table::SHARE_PARAMETERS;
use super::table::row_of;
use super::tags::{self, Tags};
use super::templates::Templates;
use super::{keys, share_keys as own};
use crate::model::account_sku::AccountSku;
use crate::model::cluster_place::ClusterPlace;
use crate::model::error::{ClassKind, Refusal, Result};
use crate::model::topology::normalize_region;

/// The most characters of a prefix of shares' names.
const MAX_PREFIX: usize = 20;
/// File systems of disks in a file on a share.
const OF_DISKS: [&str; 4] = ["ext2", "ext3", "ext4", "xfs"];

/// How nodes mount a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// SMB.
    Smb,
    /// NFS 4.1.
    Nfs,
}

/// Whose right a mount needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountIdentity {
    /// The account's key; none over NFS.
    Key,
    /// A managed identity.
    Managed,
    /// The pod's identity.
    Workload,
    /// The token of a Secret.
    Token,
}

/// The way to an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// The public endpoint.
    Public,
    /// The public endpoint, from these subnets alone; of the configured network if the group or the network is absent. Empty: all
    /// subnets of the network.
    Subnets(NetworkNames),
    /// A private endpoint in a subnet.
    Private {
        /// The network, with at most one subnet.
        network: NetworkNames,
        /// The group of the private zone, if it is not the network's.
        zone_group: Option<String>,
        /// The name of the zone's link to the network.
        link: Option<String>,
    },
}

/// Names of a network and its subnets; absent ones are those of the cloud configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkNames {
    /// The resource group.
    pub group: Option<String>,
    /// The network.
    pub network: Option<String>,
    /// The subnets.
    pub subnets: Vec<String>,
}

/// What a class asks of an account. `None` leaves it to Azure, and suits any account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountParameters {
    /// The account, if the class names one.
    pub name: Option<String>,
    /// Whether an account is made for the class, whatever others there are.
    pub is_created: bool,
    /// The subscription.
    pub subscription: String,
    /// The resource group.
    pub group: String,
    /// The region, if the class names one.
    pub region: Option<String>,
    /// The kind, if the class names one.
    pub sku: Option<AccountSku>,
    /// The tier.
    pub tier: Option<String>,
    /// Shares of more than 5 TiB.
    pub has_large_shares: Option<bool>,
    /// The way to it.
    pub reach: Reach,
    /// The public endpoint of a new account.
    pub public_access: Option<String>,
    /// Public access to blobs.
    pub has_public_blobs: bool,
    /// Access with keys.
    pub has_keys: Option<bool>,
    /// Replication to other tenants.
    pub replicates_to_tenants: Option<bool>,
    /// A second encryption.
    pub is_encrypted_twice: bool,
    /// Whether deleted shares are gone at once.
    pub has_no_retention: Option<bool>,
    /// SMB over several connections.
    pub has_multichannel: Option<bool>,
    /// SMB with tokens instead of keys.
    pub has_oauth_over_smb: bool,
    /// Whether only accounts with the tags are taken.
    pub matches_tags: bool,
    /// The class's tags.
    pub tags: Tags,
    /// Whether shares are spread over all suitable accounts.
    pub is_random: bool,
    /// How many GiB the shares of an account may have together.
    pub quota_gib: Option<u64>,
}

/// What a class asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareParameters {
    /// The account.
    pub account: AccountParameters,
    /// How nodes mount it.
    pub protocol: Protocol,
    /// The file system of a disk in a file on the share.
    pub disk_file_system: Option<String>,
    /// The share's name with its variables replaced, if the class names it.
    pub share_name: Option<String>,
    /// What the share's name begins with.
    pub prefix: Option<String>,
    /// The folder with its variables replaced.
    pub folder: Option<String>,
    /// The tier of the share.
    pub tier: Option<String>,
    /// What happens to the superuser's requests.
    pub root_squash: Option<String>,
    /// Operations a second.
    pub iops: Option<u64>,
    /// MiB a second.
    pub bandwidth: Option<u64>,
    /// How a mount shows its right.
    pub identity: MountIdentity,
    /// Whether the account's key is written into a Secret.
    pub stores_key: bool,
    /// The Secret, if the class names it.
    pub secret_name: Option<String>,
    /// Its namespace: the class's, the claim's, or `default`.
    pub secret_namespace: String,
    /// Whether the newest key is taken.
    pub takes_latest_key: bool,
    /// The host that nodes mount from, if the class names it.
    pub server: Option<String>,
    /// The domain of storage, if the class names it.
    pub endpoint_suffix: Option<String>,
}

impl ShareParameters {
    /// Reads the parameters of a class, and those of a VolumeAttributesClass over them.
    ///
    /// # Errors
    /// A key is unknown, a value invalid, or two of them conflict.
    pub fn parse(class: &Entries, mutable: &Entries, place: &ClusterPlace) -> Result<Self> {
        check_mutable(mutable)?;
        let given =
            Given::read(SHARE_PARAMETERS, ClassKind::Storage, &merge(SHARE_PARAMETERS, class, mutable))?;
        let templates = Templates::of(&given);
        let file_system = given.text(keys::FS_TYPE).map(str::to_ascii_lowercase);
        let is_nfs = given.is(own::PROTOCOL, "nfs") || file_system.as_deref() == Some("nfs");
        let protocol = if is_nfs { Protocol::Nfs } else { Protocol::Smb };
        let identity = identity(&given, protocol)?;
        let account = account(&given, place, protocol, identity)?;
        let for_nfs = [(own::ROOT_SQUASH, "protocol smb")];
        if let (Protocol::Smb, Some((key, value, other))) = (protocol, first(&given, &for_nfs)) {
            return Err(conflict(key, value, other, "add protocol nfs, or remove it"));
        }
        if account.has_keys == Some(false) && given.boolean(own::STORE_KEY) == Some(true) {
            return Err(conflict(own::STORE_KEY, "true", "allowSharedKeyAccess=false", "remove one of them"));
        }
        let has_key =
            protocol == Protocol::Smb && identity == MountIdentity::Key && account.has_keys != Some(false);
        let namespace = given.text(own::SECRET_NAMESPACE).or(given.text(keys::PVC_NAMESPACE));
        mode(&given)?;
        Ok(Self {
            protocol,
            disk_file_system: file_system.filter(|name| OF_DISKS.contains(&name.as_str())),
            share_name: given.text(own::SHARE_NAME).map(|name| templates.fill(name)),
            prefix: prefix(&given)?,
            folder: folder(&given, &templates)?,
            tier: given.owned(own::SHARE_TIER),
            root_squash: given.owned(own::ROOT_SQUASH),
            iops: given.number(own::IOPS),
            bandwidth: given.number(own::BANDWIDTH),
            identity,
            stores_key: has_key && given.boolean(own::STORE_KEY).unwrap_or(true),
            secret_name: given.owned(own::SECRET_NAME),
            secret_namespace: namespace.unwrap_or("default").to_owned(),
            takes_latest_key: given.boolean(own::LATEST_KEY).unwrap_or(false),
            server: given.owned(own::SERVER),
            endpoint_suffix: given.owned(own::ENDPOINT_SUFFIX),
            account,
        })
    }
}

/// What a VolumeAttributesClass changes: operations and bandwidth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShareModification {
    /// Operations a second.
    pub iops: Option<u64>,
    /// MiB a second.
    pub bandwidth: Option<u64>,
}

impl ShareModification {
    /// Reads the parameters of a VolumeAttributesClass.
    ///
    /// # Errors
    /// A key is unknown or fixed, or a value has not its form.
    pub fn parse(mutable: &Entries) -> Result<Self> {
        check_mutable(mutable)?;
        let given = Given::read(SHARE_PARAMETERS, ClassKind::VolumeAttributes, mutable)?;
        Ok(Self { iops: given.number(own::IOPS), bandwidth: given.number(own::BANDWIDTH) })
    }
}

fn check_mutable(mutable: &Entries) -> Result<()> {
    for key in mutable.keys() {
        if !row_of(SHARE_PARAMETERS, key).is_some_and(|row| row.is_mutable) {
            return Err(Refusal::UnknownParameter { key: key.clone(), class: ClassKind::VolumeAttributes });
        }
    }
    Ok(())
}

fn conflict(key: &'static str, value: &str, other: &str, remedy: &'static str) -> Refusal {
    Refusal::ConflictingParameters { key, value: value.to_owned(), other: other.to_owned(), remedy }
}

/// The first of these keys that is given, with its value and what it conflicts with.
fn first<'a>(given: &'a Given, of: &[(&'static str, &'a str)]) -> Option<(&'static str, &'a str, &'a str)> {
    of.iter().find_map(|(key, other)| Some((*key, given.text(key)?, *other)))
}

fn identity(given: &Given, protocol: Protocol) -> Result<MountIdentity> {
    let ways = [
        (own::MANAGED_IDENTITY, MountIdentity::Managed),
        (own::WORKLOAD_IDENTITY, MountIdentity::Workload),
        (own::OAUTH_TOKEN, MountIdentity::Token),
    ];
    let mut chosen = ways.into_iter().filter(|(key, _)| given.boolean(key) == Some(true));
    let Some((key, identity)) = chosen.next() else { return Ok(MountIdentity::Key) };
    if let Some((other, _)) = chosen.next() {
        return Err(conflict(key, "true", &format!("{other}=true"), "choose one of them"));
    }
    if identity == MountIdentity::Token && given.text(own::SECRET_NAME).is_none() {
        return Err(conflict(key, "true", "the absence of secretName", "add the Secret that has the token"));
    }
    if identity == MountIdentity::Token && protocol == Protocol::Nfs {
        return Err(conflict(key, "true", "protocol nfs", "remove one of them"));
    }
    Ok(identity)
}

fn account(
    given: &Given,
    place: &ClusterPlace,
    protocol: Protocol,
    identity: MountIdentity,
) -> Result<AccountParameters> {
    let subscription = given.text(keys::SUBSCRIPTION_ID).unwrap_or(&place.subscription).to_owned();
    let group = given.text(keys::RESOURCE_GROUP);
    if group.is_none() && !subscription.eq_ignore_ascii_case(&place.subscription) {
        let remedy = "add resourceGroup, which must be provided in cross subscription";
        return Err(conflict(keys::SUBSCRIPTION_ID, &subscription, "the absence of resourceGroup", remedy));
    }
    let name = given.owned(own::STORAGE_ACCOUNT);
    let matches_tags = given.boolean(own::MATCH_TAGS) == Some(true);
    if let (Some(name), true) = (&name, matches_tags) {
        return Err(conflict(
            own::MATCH_TAGS,
            "true",
            &format!("storageAccount={name}"),
            "remove one of them",
        ));
    }
    let sku = given.text(keys::SKU_NAME).and_then(AccountSku::parse);
    if let (Protocol::Nfs, Some(sku)) = (protocol, sku.filter(|sku| !sku.is_premium())) {
        return Err(conflict(keys::SKU_NAME, sku.name(), "protocol nfs", "choose a premium account"));
    }
    let has_multichannel = given.boolean(own::MULTICHANNEL);
    let is_premium_smb = protocol == Protocol::Smb && sku.is_some_and(AccountSku::is_premium);
    if has_multichannel == Some(true) && !is_premium_smb {
        let other = "an account that is not premium, or NFS";
        return Err(conflict(own::MULTICHANNEL, "true", other, "choose a premium skuName and SMB"));
    }
    let tags = tags::parse(given.text(keys::TAGS).unwrap_or_default(), given.text(keys::TAG_DELIMITER))?;
    let nfs_default = (protocol == Protocol::Nfs && name.is_none()).then_some(AccountSku::PREMIUM_LRS);
    Ok(AccountParameters {
        is_created: given.boolean(own::CREATE_ACCOUNT) == Some(true),
        subscription,
        group: group.unwrap_or(&place.group).to_owned(),
        region: given.text(keys::LOCATION).map(normalize_region),
        sku: sku.or(nfs_default),
        tier: given.owned(own::ACCOUNT_TIER),
        has_large_shares: given.boolean(own::LARGE_SHARES),
        reach: reach(given, protocol)?,
        public_access: given.owned(keys::PUBLIC_ACCESS),
        has_public_blobs: given.boolean(own::BLOB_PUBLIC_ACCESS).unwrap_or(false),
        has_keys: given.boolean(own::SHARED_KEY_ACCESS),
        replicates_to_tenants: given.boolean(own::CROSS_TENANT),
        is_encrypted_twice: given.boolean(own::INFRASTRUCTURE_ENCRYPTION).unwrap_or(false),
        has_no_retention: given.boolean(own::NO_RETENTION),
        has_multichannel,
        has_oauth_over_smb: protocol == Protocol::Smb && identity != MountIdentity::Key,
        matches_tags,
        tags,
        is_random: given.boolean(own::RANDOM_ACCOUNT).unwrap_or(false),
        quota_gib: given.number(own::ACCOUNT_QUOTA),
        name,
    })
}

fn reach(given: &Given, protocol: Protocol) -> Result<Reach> {
    let split = |text: &str| {
        text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let network = NetworkNames {
        group: given.owned(own::NETWORK_GROUP),
        network: given.owned(own::NETWORK),
        subnets: given.text(own::SUBNETS).map(split).unwrap_or_default(),
    };
    let (zone_group, link) = (given.owned(own::ZONE_GROUP), given.owned(own::NETWORK_LINK));
    if given.is(own::ENDPOINT_TYPE, "privateEndpoint") {
        if network.subnets.len() > 1 {
            let other = "networkEndpointType=privateEndpoint";
            return Err(conflict(own::SUBNETS, &network.subnets.join(","), other, "name one subnet"));
        }
        return Ok(Reach::Private { network, zone_group, link });
    }
    if let Some(group) = &zone_group {
        let other = "the absence of networkEndpointType=privateEndpoint";
        return Err(conflict(own::ZONE_GROUP, group, other, "add the endpoint, or remove the group"));
    }
    // Azure's service for NFS has no rights of its own: only the network protects it.
    let is_bound = protocol == Protocol::Nfs || given.is(own::ENDPOINT_TYPE, "serviceEndpoint");
    Ok(if is_bound { Reach::Subnets(network) } else { Reach::Public })
}

fn prefix(given: &Given) -> Result<Option<String>> {
    let Some(prefix) = given.owned(own::SHARE_NAME_PREFIX) else { return Ok(None) };
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if prefix.len() > MAX_PREFIX || prefix.starts_with('-') || !prefix.bytes().all(is_letter) {
        let expected = format!(
            "at most {MAX_PREFIX} lower-case letters, digits and hyphens, of which the first is no hyphen"
        );
        return Err(Refusal::InvalidValue { key: own::SHARE_NAME_PREFIX, value: prefix, expected });
    }
    Ok(Some(prefix))
}

/// A folder's name, which leads nowhere else.
fn folder(given: &Given, templates: &Templates) -> Result<Option<String>> {
    let Some(folder) = given.text(own::FOLDER_NAME).map(|name| templates.fill(name)) else { return Ok(None) };
    let is_bad = |segment: &str| {
        segment.is_empty()
            || segment == "."
            || segment == ".."
            || segment.ends_with(['.', ' '])
            || segment.contains(['\\', ':', '*', '?', '"', '<', '>', '|'])
            || segment.chars().any(char::is_control)
    };
    if folder.trim_matches('/').split('/').any(is_bad) {
        let expected = "a path below the share, without . and .., without \\ : * ? \" < > | and without a dot or blank at \
                        the end of a name"
            .to_owned();
        return Err(Refusal::InvalidValue { key: own::FOLDER_NAME, value: folder, expected });
    }
    Ok(Some(folder.trim_matches('/').to_owned()))
}

fn mode(given: &Given) -> Result<()> {
    match given.text(own::MOUNT_PERMISSIONS) {
        Some(text) if u32::from_str_radix(text, 8).map_or(true, |mode| mode > 0o7777) => {
            let expected = "an octal number such as 0755, or 0".to_owned();
            Err(Refusal::InvalidValue { key: own::MOUNT_PERMISSIONS, value: text.to_owned(), expected })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "share_tests.rs"]
mod tests;
