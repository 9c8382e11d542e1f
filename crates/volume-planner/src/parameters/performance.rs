//! Operations and throughput of disks whose performance is provisioned.

use crate::model::disk_sku::DiskSku;

/// Bounds of ultra disks (Azure documentation, "Azure managed disk types").
const ULTRA_MIN_IOPS: u64 = 500;
const ULTRA_MAX_IOPS: u64 = 160_000;
const ULTRA_MBPS: u64 = 100;
const ULTRA_MAX_MBPS: u64 = 4_000;
/// An operation transfers at most 256 KiB, and at least 4 KiB.
const MAX_OPERATIONS_PER_MB: u64 = 4;
const MIN_OPERATIONS_PER_MB: u64 = 256;

/// What a disk is to have; absent members are left to Azure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Performance {
    /// Operations a second.
    pub iops: Option<u64>,
    /// MB a second.
    pub mbps: Option<u64>,
}

impl Performance {
    /// What a new disk of this size gets. Ultra disks need both values.
    #[must_use]
    pub fn of_new_disk(self, sku: DiskSku, size_gib: u64) -> Self {
        if sku != DiskSku::UltraSsdLrs {
            return self;
        }
        match self {
            Self { iops: None, mbps: None } => {
                let iops = size_gib.clamp(ULTRA_MIN_IOPS, ULTRA_MAX_IOPS);
                let mbps = ULTRA_MBPS.max(iops.div_ceil(MIN_OPERATIONS_PER_MB));
                let mbps = mbps.min(iops.div_ceil(MAX_OPERATIONS_PER_MB)).min(ULTRA_MAX_MBPS);
                Self { iops: Some(iops), mbps: Some(mbps) }
            }
            Self { iops, mbps } => {
                Self { iops: iops.or(Some(ULTRA_MIN_IOPS)), mbps: mbps.or(Some(ULTRA_MBPS)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CSI-004. Section 3.4: the defaults of ultra disks, and their absence elsewhere.
    #[test]
    fn ultra_disks_have_defaults_by_their_size() {
        let of = |iops, mbps| Performance { iops, mbps };
        for (sku, size, given, expected) in [
            (DiskSku::UltraSsdLrs, 10, of(None, None), of(Some(500), Some(100))),
            (DiskSku::UltraSsdLrs, 1_000, of(None, None), of(Some(1_000), Some(100))),
            (DiskSku::UltraSsdLrs, 60_000, of(None, None), of(Some(60_000), Some(235))),
            (DiskSku::UltraSsdLrs, 200_000, of(None, None), of(Some(160_000), Some(625))),
            (DiskSku::UltraSsdLrs, 1_000, of(Some(2_000), None), of(Some(2_000), Some(100))),
            (DiskSku::UltraSsdLrs, 1_000, of(None, Some(300)), of(Some(500), Some(300))),
            (DiskSku::PremiumV2Lrs, 1_000, of(None, None), of(None, None)),
            (DiskSku::PremiumV2Lrs, 1_000, of(Some(4_000), None), of(Some(4_000), None)),
        ] {
            assert_eq!(given.of_new_disk(sku, size), expected, "{sku:?} {size}");
        }
    }
}
