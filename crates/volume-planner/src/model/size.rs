//! Sizes of disks: whole GiB, rounded up, within the limits of request and SKU.

use super::disk_sku::DiskSku;
use super::error::{Refusal, Result};

/// Bytes of a GiB.
pub const GIB: u64 = 1 << 30;
/// The size from which on Azure grants a disk more performance, in GiB (Azure documentation, "performance plus").
pub const PERFORMANCE_PLUS_GIB: u64 = 513;

/// What a request asks for, in bytes; zero means that it does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CapacityRange {
    /// The least that serves.
    pub required_bytes: i64,
    /// The most that is allowed.
    pub limit_bytes: i64,
}

impl CapacityRange {
    /// The least size in whole GiB that serves the request; 0 if it asks for none.
    ///
    /// # Errors
    /// A number is negative.
    pub fn required_gib(self) -> Result<u64> {
        self.limit()?;
        let required =
            u64::try_from(self.required_bytes).map_err(|_| Refusal::InvalidCapacity(self.required_bytes))?;
        Ok(required.div_ceil(GIB))
    }

    fn limit(self) -> Result<Option<u64>> {
        let limit =
            u64::try_from(self.limit_bytes).map_err(|_| Refusal::InvalidCapacity(self.limit_bytes))?;
        Ok((limit > 0).then_some(limit))
    }

    /// Checks a size against the limit and against the kind of disk.
    ///
    /// # Errors
    /// It exceeds one of them: out of range.
    pub fn check(self, size_gib: u64, sku: Option<DiskSku>) -> Result<()> {
        if self.limit()?.is_some_and(|limit| to_bytes(size_gib) > limit) {
            return Err(Refusal::OverLimit { size_gib, limit_bytes: self.limit_bytes });
        }
        match sku {
            Some(sku) if size_gib > sku.maximum_gib() => {
                Err(Refusal::OverSku { size_gib, maximum_gib: sku.maximum_gib(), sku: sku.name() })
            }
            _ => Ok(()),
        }
    }

    /// Whether a volume of this size serves the request as it is.
    pub fn admits(self, size_gib: u64) -> bool {
        self.required_gib().is_ok_and(|required| size_gib >= required) && self.check(size_gib, None).is_ok()
    }
}

/// The bytes of whole GiB, at most what a number has.
pub fn to_bytes(gib: u64) -> u64 {
    gib.saturating_mul(GIB)
}

/// The size of a new disk in GiB: what is required, at least 1, at least the minimum of performance plus, at least that of the
/// source.
///
/// # Errors
/// A number is negative, or the size exceeds the limit of the request or of the SKU.
pub fn new_disk(
    range: CapacityRange,
    sku: DiskSku,
    has_performance_plus: bool,
    source_gib: Option<u64>,
) -> Result<u64> {
    let minimum = if has_performance_plus { PERFORMANCE_PLUS_GIB } else { 1 };
    let size = range.required_gib()?.max(minimum).max(source_gib.unwrap_or(0));
    range.check(size, Some(sku))?;
    Ok(size)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::error::Code;

    const G: i64 = 1 << 30;

    /// CSI-024. Section 3.7, step 3, and its FIX: over the limit is out of range.
    #[test]
    fn sizes_are_rounded_up_within_the_limits() {
        let sku = DiskSku::PremiumLrs;
        for (required, limit, plus, source, expected) in [
            (0, 0, false, None, Ok(1)),
            (1, 0, false, None, Ok(1)),
            (10 * G, 10 * G, false, None, Ok(10)),
            (10 * G + 1, 0, false, None, Ok(11)),
            (10 * G + 1, 11 * G, false, None, Ok(11)),
            (10 * G + 1, 10 * G + 2, false, None, Err(Code::OutOfRange)),
            (10 * G, 9 * G, false, None, Err(Code::OutOfRange)),
            (10 * G, 0, true, None, Ok(513)),
            (10 * G, 100 * G, true, None, Err(Code::OutOfRange)),
            (600 * G, 0, true, None, Ok(600)),
            (10 * G, 0, false, Some(20), Ok(20)),
            (10 * G, 15 * G, false, Some(20), Err(Code::OutOfRange)),
            (10 * G, 0, false, Some(5), Ok(10)),
            (32_767 * G, 0, false, None, Ok(32_767)),
            (32_768 * G, 0, false, None, Err(Code::OutOfRange)),
            (-1, 0, false, None, Err(Code::InvalidArgument)),
            (1, -1, false, None, Err(Code::InvalidArgument)),
        ] {
            let range = CapacityRange { required_bytes: required, limit_bytes: limit };
            let size = new_disk(range, sku, plus, source).map_err(|refusal| refusal.code());
            assert_eq!(size, expected, "{required} {limit} {plus} {source:?}");
        }
    }

    proptest! {
        #[test]
        fn a_size_serves_its_request(required in 0..40_000 * G, limit in 0..40_000 * G, source in 0..40_000_u64) {
            let range = CapacityRange { required_bytes: required, limit_bytes: limit };
            if let Ok(size) = new_disk(range, DiskSku::UltraSsdLrs, false, Some(source)) {
                prop_assert!(range.admits(size) && size >= source);
                prop_assert!(to_bytes(size) >= required as u64);
                prop_assert!(limit == 0 || to_bytes(size) <= limit as u64);
            }
        }
    }
}
