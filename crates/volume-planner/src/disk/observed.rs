//! A disk as Azure answered it.

use azure_types::ResourceId;
use serde_json::Value;

use crate::model::disk_sku::DiskSku;
use crate::model::document::{number, tag, text};
use crate::model::topology::{DiskPlace, normalize_region};

/// The answer of a GET or an element of a LIST.
#[derive(Debug, Clone, Copy)]
pub struct ObservedDisk<'a>(pub &'a Value);

impl<'a> ObservedDisk<'a> {
    /// The disk's ID.
    pub fn id(self) -> Option<ResourceId> {
        ResourceId::parse(text(self.0, "/id")?).ok()
    }

    /// Its name.
    pub fn name(self) -> &'a str {
        text(self.0, "/name").unwrap_or_default()
    }

    /// Its kind, as Azure names it.
    pub fn sku_name(self) -> Option<&'a str> {
        text(self.0, "/sku/name")
    }

    /// Its kind, if it is one that the driver knows.
    pub fn sku(self) -> Option<DiskSku> {
        self.sku_name().and_then(DiskSku::parse)
    }

    /// Its size in GiB.
    pub fn size_gib(self) -> Option<u64> {
        number(self.0, "/properties/diskSizeGB")
    }

    /// Its zones.
    pub fn zones(self) -> Vec<&'a str> {
        let zones = self.0.get("zones").and_then(Value::as_array);
        zones.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Its zone, if it has one alone.
    pub fn single_zone(self) -> Option<&'a str> {
        match self.zones().as_slice() {
            [zone] => Some(zone),
            _ => None,
        }
    }

    /// Its place.
    pub fn place(self) -> DiskPlace {
        DiskPlace {
            region: normalize_region(text(self.0, "/location").unwrap_or_default()),
            zone: self.single_zone().map(str::to_owned),
        }
    }

    /// The machine that has it.
    pub fn managed_by(self) -> Option<ResourceId> {
        ResourceId::parse(text(self.0, "/managedBy")?).ok()
    }

    /// All machines that have it: a shared disk has several.
    pub fn all_managers(self) -> Vec<ResourceId> {
        let further = self.0.get("managedByExtended").and_then(Value::as_array);
        let further = further.into_iter().flatten().filter_map(Value::as_str);
        let mut all: Vec<_> = further.filter_map(|id| ResourceId::parse(id).ok()).collect();
        all.extend(self.managed_by());
        all.sort();
        all.dedup();
        all
    }

    /// Its `diskState`.
    pub fn state(self) -> Option<&'a str> {
        text(self.0, "/properties/diskState")
    }

    /// Its `provisioningState`.
    pub fn provisioning_state(self) -> Option<&'a str> {
        text(self.0, "/properties/provisioningState")
    }

    /// How far a copy in the background is, in per cent.
    pub fn completion_percent(self) -> Option<u64> {
        number(self.0, "/properties/completionPercent")
    }

    /// What it was copied from.
    pub fn source(self) -> Option<&'a str> {
        text(self.0, "/properties/creationData/sourceResourceId")
    }

    /// How many machines may share it.
    pub fn max_shares(self) -> u32 {
        let shares = number(self.0, "/properties/maxShares").and_then(|shares| u32::try_from(shares).ok());
        shares.unwrap_or(1).max(1)
    }

    /// Operations a second.
    pub fn iops(self) -> Option<u64> {
        number(self.0, "/properties/diskIOPSReadWrite")
    }

    /// MB a second.
    pub fn mbps(self) -> Option<u64> {
        number(self.0, "/properties/diskMBpsReadWrite")
    }

    /// Bytes of a sector.
    pub fn sector_size(self) -> Option<u64> {
        number(self.0, "/properties/creationData/logicalSectorSize")
    }

    /// Its encryption set.
    pub fn encryption_set(self) -> Option<&'a str> {
        text(self.0, "/properties/encryption/diskEncryptionSetId")
    }

    /// Access over the network.
    pub fn network_policy(self) -> Option<&'a str> {
        text(self.0, "/properties/networkAccessPolicy")
    }

    /// Whether it is the OS disk of a machine.
    pub fn is_os_disk(self) -> bool {
        text(self.0, "/properties/hyperVGeneration").is_some()
    }

    /// A tag.
    pub fn tag(self, key: &str) -> Option<&'a str> {
        tag(self.0, key)
    }
}
