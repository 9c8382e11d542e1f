//! How many disks and snapshots of each kind a region has and may have ("Managed virtual machine disks limits").

use crate::compute::disk::sku::kind_of;
use crate::compute::tables::limits;
use crate::compute::tables::limits::{DISKS, FAST_DISKS, SNAPSHOTS};
use crate::compute::tables::type_names::{DISK_TYPE, SNAPSHOT_TYPE};
use azure_engine::document::text;
use azure_engine::error::Refusal;
use azure_engine::limits::Excess;
use azure_engine::provider::{AzureState, Proposal, Record};

/// One kind, as the usages name it.
struct Quota {
    name: &'static str,
    shown: &'static str,
    resource_type: &'static str,
    sku: &'static str,
    limit: &'static str,
}

const fn of_disks(name: &'static str, shown: &'static str, sku: &'static str, limit: &'static str) -> Quota {
    Quota { name, shown, resource_type: DISK_TYPE, sku, limit }
}

const fn of_snapshots(name: &'static str, shown: &'static str, sku: &'static str) -> Quota {
    Quota { name, shown, resource_type: SNAPSHOT_TYPE, sku, limit: SNAPSHOTS }
}

const QUOTAS: [Quota; 10] = [
    of_disks("StandardDiskCount", "Standard Storage Managed Disks", "Standard_LRS", DISKS),
    of_disks("PremiumDiskCount", "Premium Storage Managed Disks", "Premium_LRS", DISKS),
    of_disks("StandardSSDDiskCount", "StandardSSDStorageDisks", "StandardSSD_LRS", DISKS),
    of_disks("UltraSSDDiskCount", "UltraSSDStorageDisks", "UltraSSD_LRS", FAST_DISKS),
    of_disks("PremiumV2DiskCount", "PremiumV2StorageDisks", "PremiumV2_LRS", FAST_DISKS),
    of_disks("PremiumZRSDiskCount", "PremiumZRSStorageDisks", "Premium_ZRS", DISKS),
    of_disks("StandardSSDZRSDiskCount", "StandardSSDZRSStorageDisks", "StandardSSD_ZRS", DISKS),
    of_snapshots("StandardSnapshotCount", "StandardStorageSnapshots", "Standard_LRS"),
    of_snapshots("PremiumSnapshotCount", "PremiumStorageSnapshots", "Premium_LRS"),
    of_snapshots("ZRSSnapshotCount", "ZrsStorageSnapshots", "Standard_ZRS"),
];

impl Quota {
    /// How many there are.
    fn used(&self, azure: &AzureState, subscription: &str, location: &str) -> u64 {
        let here = |record: &&Record| {
            text(&record.body, "location") == Some(location)
                && kind_of(record) == self.sku
                && record.id.subscription_id().eq_ignore_ascii_case(subscription)
        };
        azure.store.of_type(self.resource_type).filter(here).count() as u64
    }
}

/// Refuses a further disk or snapshot of a kind, be it new or of another kind before, where a region has as many
/// as it may have.
pub(crate) fn check(
    azure: &AzureState,
    proposal: &Proposal<'_>,
    resource_type: &str,
    sku: &str,
    region: &str,
) -> Result<(), Refusal> {
    let before = proposal.old.map(kind_of);
    let quota = QUOTAS.iter().find(|quota| quota.resource_type == resource_type && quota.sku == sku);
    let Some(quota) = quota.filter(|_| before != Some(sku)) else { return Ok(()) };
    let most = azure.limit(quota.limit);
    // Where there are not as many anywhere, nobody has to count.
    if (azure.store.count(quota.resource_type) as u64) < most {
        return Ok(());
    }
    let id = proposal.id;
    let wanted = quota.used(azure, id.subscription_id(), region).saturating_add(1);
    if wanted <= most {
        return Ok(());
    }
    Err(limits::quota(&Excess { id, called: quota.name, region, most, wanted }))
}

/// The usages of all kinds: name, localized name, how many there are and may be.
pub(crate) fn usages<'a>(
    azure: &'a AzureState,
    subscription: &'a str,
    location: &'a str,
) -> impl Iterator<Item = (&'static str, &'static str, u64, u64)> + 'a {
    QUOTAS.iter().map(move |quota| {
        (quota.name, quota.shown, quota.used(azure, subscription, location), azure.limit(quota.limit))
    })
}
