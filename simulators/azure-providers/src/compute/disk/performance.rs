//! What disks of each kind and size can do, as published ("Azure managed disk types").

/// A size of a kind of disk.
struct DiskSize {
    /// Up to this many GiB.
    gib: u64,
    iops: u64,
    mbps: u64,
    /// The performance tier, where the kind has them.
    tier: &'static str,
}

const fn size(gib: u64, iops: u64, mbps: u64, tier: &'static str) -> DiskSize {
    DiskSize { gib, iops, mbps, tier }
}

const PREMIUM: [DiskSize; 14] = [
    size(4, 120, 25, "P1"),
    size(8, 120, 25, "P2"),
    size(16, 120, 25, "P3"),
    size(32, 120, 25, "P4"),
    size(64, 240, 50, "P6"),
    size(128, 500, 100, "P10"),
    size(256, 1_100, 125, "P15"),
    size(512, 2_300, 150, "P20"),
    size(1_024, 5_000, 200, "P30"),
    size(2_048, 7_500, 250, "P40"),
    size(4_096, 7_500, 250, "P50"),
    size(8_192, 16_000, 500, "P60"),
    size(16_384, 18_000, 750, "P70"),
    size(32_767, 20_000, 900, "P80"),
];

const STANDARD_SSD: [DiskSize; 4] = [
    size(4_096, 500, 100, ""),
    size(8_192, 2_000, 400, ""),
    size(16_384, 4_000, 600, ""),
    size(32_767, 6_000, 750, ""),
];

const STANDARD: [DiskSize; 3] =
    [size(4_096, 500, 60, ""), size(8_192, 1_300, 300, ""), size(32_767, 2_000, 500, "")];

/// The performance of a disk without figures of its own.
#[derive(Default)]
pub(crate) struct Performance {
    pub(crate) iops: u64,
    pub(crate) mbps: u64,
    pub(crate) tier: Option<&'static str>,
}

/// The figures of a kind of disk at a size in GiB.
pub(crate) fn of(sku: &str, gib: u64) -> Performance {
    let sizes: &[DiskSize] = match sku {
        "Premium_LRS" | "Premium_ZRS" => &PREMIUM,
        "StandardSSD_LRS" | "StandardSSD_ZRS" => &STANDARD_SSD,
        // These two kinds have the figures that the client chose; these are the defaults.
        "PremiumV2_LRS" => return Performance { iops: 3_000, mbps: 125, tier: None },
        "UltraSSD_LRS" => return Performance { iops: 500, mbps: 100, tier: None },
        _ => &STANDARD,
    };
    let size = sizes.iter().find(|size| gib <= size.gib).or(sizes.last());
    size.map_or(Performance::default(), |size| Performance {
        iops: size.iops,
        mbps: size.mbps,
        tier: Some(size.tier).filter(|tier| !tier.is_empty()),
    })
}

/// How many machines can share a disk of a kind and a size in GiB.
pub(crate) fn most_shares(sku: &str, gib: u64) -> u64 {
    match (sku, gib) {
        ("Standard_LRS", _) => 1,
        ("PremiumV2_LRS" | "UltraSSD_LRS", _) => 15,
        (_, ..=512) => 3,
        (_, ..=4_096) => 5,
        _ => 10,
    }
}

#[cfg(test)]
mod tests {
    use super::{most_shares, of};

    #[test]
    fn shares_follow_kind_and_size() {
        for (sku, gib, most) in [
            ("Standard_LRS", 4_096, 1),
            ("StandardSSD_LRS", 4, 3),
            ("Premium_ZRS", 512, 3),
            ("Premium_LRS", 513, 5),
            ("Premium_LRS", 4_097, 10),
            ("UltraSSD_LRS", 4, 15),
        ] {
            assert_eq!(most_shares(sku, gib), most, "{sku} {gib}");
        }
    }

    #[test]
    fn figures_follow_kind_and_size() {
        for (sku, gib, iops, mbps, tier) in [
            ("Premium_LRS", 4, 120, 25, Some("P1")),
            ("Premium_ZRS", 200, 1_100, 125, Some("P15")),
            ("Premium_LRS", 32_767, 20_000, 900, Some("P80")),
            ("Standard_LRS", 200, 500, 60, None),
            ("StandardSSD_LRS", 8_000, 2_000, 400, None),
            ("PremiumV2_LRS", 8_000, 3_000, 125, None),
        ] {
            let found = of(sku, gib);
            assert_eq!((found.iops, found.mbps, found.tier), (iops, mbps, tier), "{sku} {gib}");
        }
    }
}
