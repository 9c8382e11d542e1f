//! A change to premium v2, which Azure makes in the background: how long it may take, and when its owner hears of it.

use super::observed::ObservedDisk;
use crate::model::disk_sku::DiskSku;

/// The longest that any change is watched, in hours.
pub const MAX_HOURS: u64 = 24;
/// Sizes below which a change ends within so many hours.
const HOURS: [(u64, u64); 4] = [(2 * 1_024, 10), (4 * 1_024, 12), (16 * 1_024, 16), (64 * 1_024, 19)];
/// Per cent between reports of progress.
const REPORT_STEP: u64 = 20;

/// Whether a change between kinds is one that Azure makes in the background.
pub fn is_watched(source: DiskSku, target: DiskSku) -> bool {
    target == DiskSku::PremiumV2Lrs && source != DiskSku::PremiumV2Lrs
}

/// Whether a disk is being changed now: found again after a restart.
pub fn is_running(disk: ObservedDisk<'_>) -> bool {
    disk.sku() == Some(DiskSku::PremiumV2Lrs)
        && disk.completion_percent().is_some_and(|percent| percent < 100)
}

/// How many hours a change of a disk of this size may take.
pub fn timeout_hours(size_gib: u64) -> u64 {
    HOURS.iter().find(|(below, _)| size_gib < *below).map_or(MAX_HOURS, |(_, hours)| *hours)
}

/// The progress to report: the last full step, if it is past the one that was reported.
pub fn progress(reported: u64, percent: u64) -> Option<u64> {
    let step = percent.min(100) / REPORT_STEP * REPORT_STEP;
    (step > reported).then_some(step)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// CSI-035. Section 3.13: what is watched, for how long, and every 20 per cent.
    #[test]
    fn changes_to_premium_v2_are_watched() {
        assert!(is_watched(DiskSku::PremiumLrs, DiskSku::PremiumV2Lrs));
        assert!(!is_watched(DiskSku::PremiumV2Lrs, DiskSku::PremiumV2Lrs));
        assert!(!is_watched(DiskSku::PremiumLrs, DiskSku::StandardLrs));
        for (size, hours) in [(1, 10), (2_048, 12), (4_096, 16), (16_384, 19), (65_536, 24)] {
            assert_eq!(timeout_hours(size), hours, "{size}");
        }
        for (reported, percent, expected) in
            [(0, 19, None), (0, 20, Some(20)), (20, 59, Some(40)), (40, 50, None), (80, 100, Some(100))]
        {
            assert_eq!(progress(reported, percent), expected, "{reported} {percent}");
        }
        let disk = |percent| json!({ "sku": { "name": "PremiumV2_LRS" }, "properties": { "completionPercent": percent } });
        assert!(is_running(ObservedDisk(&disk(99.5))) && !is_running(ObservedDisk(&disk(100.0))));
    }
}
