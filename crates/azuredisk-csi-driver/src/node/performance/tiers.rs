//! What disks reach whose performance comes with their size (Azure documentation, "Azure managed disk types").

/// What disks up to a size reach, at most and for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tier {
    pub maximum_gib: u64,
    /// Without bursts.
    pub base: Reach,
    /// With them.
    pub burst: Reach,
}

/// Operations and MB a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reach {
    pub iops: u64,
    pub mbps: u64,
}

const fn tier(maximum_gib: u64, base: (u64, u64), burst: (u64, u64)) -> Tier {
    let (base, burst) = (Reach { iops: base.0, mbps: base.1 }, Reach { iops: burst.0, mbps: burst.1 });
    Tier { maximum_gib, base, burst }
}

const PREMIUM: [Tier; 12] = [
    tier(32, (120, 25), (3_500, 170)),
    tier(64, (240, 50), (3_500, 170)),
    tier(128, (500, 100), (3_500, 170)),
    tier(256, (1_100, 125), (3_500, 170)),
    tier(512, (2_300, 150), (3_500, 170)),
    tier(1_024, (5_000, 200), (5_000, 200)),
    tier(2_048, (7_500, 250), (7_500, 250)),
    tier(4_096, (7_500, 250), (7_500, 250)),
    tier(8_192, (16_000, 500), (16_000, 500)),
    tier(16_384, (18_000, 750), (18_000, 750)),
    tier(32_767, (20_000, 900), (20_000, 900)),
    tier(u64::MAX, (20_000, 900), (20_000, 900)),
];

const STANDARD_SSD: [Tier; 7] = [
    tier(512, (500, 100), (600, 150)),
    tier(1_024, (500, 100), (1_000, 250)),
    tier(4_096, (500, 100), (500, 100)),
    tier(8_192, (2_000, 400), (2_000, 400)),
    tier(16_384, (4_000, 600), (4_000, 600)),
    tier(32_767, (6_000, 750), (6_000, 750)),
    tier(u64::MAX, (6_000, 750), (6_000, 750)),
];

/// The smallest tier that has the size and reaches what is asked.
pub(super) fn tier_of(sku: &str, size_gib: u64, asked: Reach) -> Option<Tier> {
    let sku = sku.to_ascii_lowercase();
    let tiers: &[Tier] = match sku.as_str() {
        "premium_lrs" | "premium_zrs" => &PREMIUM,
        "standardssd_lrs" | "standardssd_zrs" => &STANDARD_SSD,
        _ => return None,
    };
    let fits = |tier: &&Tier| {
        tier.maximum_gib >= size_gib && tier.base.iops >= asked.iops && tier.base.mbps >= asked.mbps
    };
    tiers.iter().find(fits).copied()
}
