//! A typed request for a disk, from the parameters of its class.

use std::collections::BTreeMap;

use azure_types::ResourceId;

use super::disk_table::{DISK_PARAMETERS, ENCRYPTION_TYPES};
use super::given::{Entries, Given, merge};
use super::keys;
use super::modification::check_mutable;
use super::network_access::NetworkAccess;
use super::performance::Performance;
use super::tags::{self, Tags};
use super::templates::Templates;
use crate::model::cluster_place::ClusterPlace;
use crate::model::disk_sku::{Caching, DiskSku};
use crate::model::error::{ClassKind, Refusal, Result};
use crate::model::topology::normalize_region;

/// The customer's key of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encryption {
    /// The disk encryption set.
    pub set: ResourceId,
    /// `encryption.type`.
    pub kind: String,
}

/// Device settings that a node applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Profile {
    /// Those of the system.
    None,
    /// Computed from the kinds of disk and machine.
    Basic,
    /// Files below the block device's folder, with their values.
    Advanced(BTreeMap<String, String>),
}

/// What a class asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskParameters {
    /// The kind of disk.
    pub sku: DiskSku,
    /// The machine's cache.
    pub caching: Caching,
    /// The file system, in lower case.
    pub file_system: Option<String>,
    /// The region, if the class names one.
    pub region: Option<String>,
    /// The resource group.
    pub group: String,
    /// The subscription.
    pub subscription: String,
    /// Operations and throughput.
    pub performance: Performance,
    /// Bytes of a sector.
    pub sector_size: Option<u64>,
    /// All tags.
    pub tags: Tags,
    /// The customer's key.
    pub encryption: Option<Encryption>,
    /// Device settings.
    pub profile: Profile,
    /// Access over the network.
    pub network: NetworkAccess,
    /// Whether the disk bursts on demand.
    pub has_bursting: bool,
    /// Whether it has performance plus, if the class says so.
    pub performance_plus: Option<bool>,
    /// How many machines may share it.
    pub max_shares: u32,
    /// How long its attaches wait for others, in milliseconds.
    pub attach_delay_ms: Option<u64>,
    /// The user agent of requests to Azure.
    pub user_agent: Option<String>,
    /// The disk's name with its variables replaced, if the class says it.
    pub disk_name: Option<String>,
}

impl DiskParameters {
    /// Reads the parameters of a class, and those of a VolumeAttributesClass over them.
    ///
    /// # Errors
    /// A key is unknown, a value invalid, a parameter does not suit the SKU, or two of them conflict.
    pub fn parse(class: &Entries, mutable: &Entries, place: &ClusterPlace) -> Result<Self> {
        check_mutable(mutable)?;
        let entries = merge(DISK_PARAMETERS, class, mutable);
        let given = Given::read(DISK_PARAMETERS, ClassKind::Storage, &entries)?;
        let name = given.text(keys::SKU_NAME);
        let sku = name.map(|name| DiskSku::from_parameter(name, place.is_stack)).transpose()?;
        let sku = sku.unwrap_or(DiskSku::default_for(place.is_stack));
        given.check_sku(DISK_PARAMETERS, sku)?;
        let max_shares = max_shares(&given, place)?;
        let (subscription, group) = owner(&given, place)?;
        let templates = Templates::of(&given);
        let mut tags = tags::of(&given, &templates)?;
        if given.boolean(keys::WRITE_ACCELERATOR) == Some(true) {
            tags::set(&mut tags, tags::WRITE_ACCELERATOR, "true");
        }
        Ok(Self {
            sku,
            caching: caching(&given, sku, max_shares)?,
            file_system: given.text(keys::FS_TYPE).map(str::to_ascii_lowercase),
            region: given.text(keys::LOCATION).map(normalize_region),
            group,
            subscription,
            performance: Performance { iops: given.number(keys::IOPS), mbps: given.number(keys::MBPS) },
            sector_size: given.number(keys::SECTOR_SIZE),
            tags,
            encryption: encryption(&given)?,
            profile: profile(&given)?,
            network: NetworkAccess::of_disk(&given, place.is_stack)?,
            has_bursting: given.is(keys::BURSTING, "true"),
            performance_plus: given.boolean(keys::PERFORMANCE_PLUS),
            max_shares,
            attach_delay_ms: given.number(keys::ATTACH_DELAY),
            user_agent: given.owned(keys::USER_AGENT),
            disk_name: given.text(keys::DISK_NAME).map(|name| templates.fill(name)),
        })
    }
}

fn max_shares(given: &Given, place: &ClusterPlace) -> Result<u32> {
    let shares = given.number(keys::MAX_SHARES).map_or(1, |shares| u32::try_from(shares).unwrap_or(u32::MAX));
    if shares > 1 && place.is_stack {
        let (value, remedy) = (shares.to_string(), "remove it: its disks are not shared");
        return Err(Refusal::UnsupportedOnStack { key: keys::MAX_SHARES, value, remedy });
    }
    Ok(shares)
}

/// Subscription and group. A group of the cluster's name in another subscription would be a guess.
fn owner(given: &Given, place: &ClusterPlace) -> Result<(String, String)> {
    let subscription = given.text(keys::SUBSCRIPTION_ID).unwrap_or(&place.subscription);
    let group = given.text(keys::RESOURCE_GROUP);
    if group.is_none() && !subscription.eq_ignore_ascii_case(&place.subscription) {
        return Err(Refusal::ConflictingParameters {
            key: keys::SUBSCRIPTION_ID,
            value: subscription.to_owned(),
            other: "the absence of resourceGroup".to_owned(),
            remedy: "add resourceGroup, which must be provided in cross subscription",
        });
    }
    Ok((subscription.to_owned(), group.unwrap_or(&place.group).to_owned()))
}

/// Azure attaches disks with provisioned performance, and shared premium ones, only without a cache.
fn caching(given: &Given, sku: DiskSku, max_shares: u32) -> Result<Caching> {
    let caching = given.text(keys::CACHING_MODE).and_then(Caching::parse);
    if !sku.is_uncached(max_shares) {
        return Ok(caching.unwrap_or(Caching::ReadOnly));
    }
    match caching {
        None | Some(Caching::None) => Ok(Caching::None),
        Some(other) => Err(Refusal::UnsuitableForSku {
            key: keys::CACHING_MODE,
            value: other.name().to_owned(),
            sku: sku.name(),
            expected: if sku.is_provisioned() {
                "this SKU only supports None caching mode"
            } else {
                "a shared premium disk only supports None caching mode"
            },
        }),
    }
}

fn encryption(given: &Given) -> Result<Option<Encryption>> {
    let kind = given.text(keys::ENCRYPTION_TYPE);
    let set = given.text(keys::ENCRYPTION_SET).and_then(|id| ResourceId::parse(id).ok());
    match (set, kind) {
        (None, None) => Ok(None),
        (None, Some(kind)) => Err(Refusal::ConflictingParameters {
            key: keys::ENCRYPTION_TYPE,
            value: kind.to_owned(),
            other: "the absence of diskEncryptionSetID".to_owned(),
            remedy: "add diskEncryptionSetID, or remove diskEncryptionType",
        }),
        (Some(set), kind) => {
            Ok(Some(Encryption { set, kind: kind.unwrap_or(ENCRYPTION_TYPES[0]).to_owned() }))
        }
    }
}

fn profile(given: &Given) -> Result<Profile> {
    if given.is(keys::PERF_PROFILE, "basic") {
        return Ok(Profile::Basic);
    }
    if !given.is(keys::PERF_PROFILE, "advanced") {
        return Ok(Profile::None);
    }
    let settings = given.suffixed();
    if settings.is_empty() {
        return Err(Refusal::ConflictingParameters {
            key: keys::PERF_PROFILE,
            value: "advanced".to_owned(),
            other: "the absence of device-setting/ keys".to_owned(),
            remedy: "add at least one, or choose another profile",
        });
    }
    // A path is below the block device's folder: no step leads out of it.
    let leaves = |path: &str| path.split('/').any(|step| step.is_empty() || step == "." || step == "..");
    if let Some(path) = settings.keys().find(|path| leaves(path)) {
        return Err(Refusal::InvalidValue {
            key: keys::DEVICE_SETTING,
            value: path.clone(),
            expected: "a path below the block device's folder, such as queue/scheduler".to_owned(),
        });
    }
    Ok(Profile::Advanced(settings.clone()))
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
