//! Settings that let a disk reach what it has.

use super::profile::DiskFacts;
use super::tiers::{Reach, tier_of};

/// The largest request, in KiB.
const MAX_REQUEST_KIB: f64 = 512.0;
/// The part of the operations that is left for requests that are not sequential.
const HEADROOM: f64 = 0.25;
/// What is read ahead, in KiB.
const READ_AHEAD_KIB: &str = "8";
const SCHEDULER: &str = "mq-deadline";

/// How long a request takes, in seconds: for disks up to a size in GiB, a small one at a random place and a large one in
/// sequence.
const LATENCIES: [(u64, f64, f64); 4] = [
    (4_096, 0.002_2, 0.003_3),
    (8_192, 0.002_8, 0.004_1),
    (16_384, 0.003_4, 0.004_6),
    (u64::MAX, 0.004, 0.005_2),
];

/// The settings in the order in which they are written: how many requests may wait depends on the scheduler. Nothing if the
/// disk's reach is unknown.
pub(super) fn settings(disk: &DiskFacts, size_gib: u64) -> Option<Vec<(String, String)>> {
    let asked = Reach { iops: disk.iops.unwrap_or(0), mbps: disk.mbps.unwrap_or(0) };
    let (reach, tier_gib) = match tier_of(&disk.sku, size_gib, asked) {
        Some(tier) => (tier.burst, tier.maximum_gib),
        // Provisioned performance: what is provisioned.
        None => (Reach { iops: disk.iops?, mbps: disk.mbps? }, size_gib),
    };
    if reach.iops == 0 || reach.mbps == 0 {
        return None;
    }
    let (_, random, sequential) = LATENCIES.into_iter().find(|(maximum, ..)| tier_gib <= *maximum)?;
    // No disk reaches so much that a number of this kind loses a digit.
    #[allow(clippy::cast_precision_loss, reason = "numbers far below 2^52")]
    let (iops, kilobytes) = (reach.iops as f64, reach.mbps as f64 * 1_000.0);
    let request = (kilobytes / (iops * (1.0 - HEADROOM))).min(MAX_REQUEST_KIB).ceil();
    let in_sequence = (kilobytes * sequential / request).ceil();
    let at_random = (iops * random).ceil();
    let depth = (at_random * HEADROOM + in_sequence).max(at_random).ceil().to_string();
    let setting = |path: &str, value: &str| (path.to_owned(), value.to_owned());
    Some(vec![
        setting("queue/scheduler", SCHEDULER),
        setting("device/queue_depth", &depth),
        setting("queue/nr_requests", &depth),
        setting("queue/max_sectors_kb", &request.to_string()),
        setting("queue/read_ahead_kb", READ_AHEAD_KIB),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sku: &str, size_gib: u64, iops: Option<u64>, mbps: Option<u64>) -> Option<[String; 2]> {
        let facts = DiskFacts { sku: sku.to_owned(), iops, mbps };
        let all = settings(&facts, size_gib)?;
        Some([all[3].1.clone(), all[1].1.clone()])
    }

    /// Section 3.15: the request and the depth of the queue, by the formulas there.
    #[test]
    fn settings_follow_from_what_the_disk_reaches() {
        for (sku, size, iops, mbps, request, depth) in [
            // 170,000 / (3,500 × 0.75) = 64.8; 170,000 × 0.0033 / 65 = 8.6; 3,500 × 0.0022 = 7.7; 8 / 4 + 9
            ("Premium_LRS", 10, None, None, "65", "11"),
            // 200,000 / (5,000 × 0.75) = 53.3; 200,000 × 0.0033 / 54 = 12.2; 5,000 × 0.0022 = 11; 11 / 4 + 13
            ("Premium_ZRS", 1_024, None, None, "54", "16"),
            // 500,000 / (16,000 × 0.75) = 41.7; 500,000 × 0.0041 / 42 = 48.8; 16,000 × 0.0028 = 44.8; 45 / 4 + 49
            ("premium_lrs", 5_000, None, None, "42", "61"),
            // 150,000 / (600 × 0.75) = 333.3; 150,000 × 0.0033 / 334 = 1.5; 600 × 0.0022 = 1.3; 2 / 4 + 2
            ("StandardSSD_LRS", 10, None, None, "334", "3"),
            // 200,000 / (4,000 × 0.75) = 66.7; 200,000 × 0.0033 / 67 = 9.9; 4,000 × 0.0022 = 8.8; 9 / 4 + 10
            ("PremiumV2_LRS", 10, Some(4_000), Some(200), "67", "13"),
        ] {
            let expected = [request.to_owned(), depth.to_owned()];
            assert_eq!(of(sku, size, iops, mbps), Some(expected), "{sku} {size}");
        }
    }

    /// Section 3.15, FIX: what is unknown is no error.
    #[test]
    fn a_disk_whose_reach_is_unknown_has_no_settings() {
        assert_eq!(of("PremiumV2_LRS", 10, None, None), None);
        assert_eq!(of("PremiumV2_LRS", 10, Some(0), Some(100)), None);
    }
}
