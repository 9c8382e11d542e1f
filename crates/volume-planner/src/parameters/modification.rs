//! What a VolumeAttributesClass changes.

use super::disk_table::DISK_PARAMETERS;
use super::given::{Entries, Given};
use super::keys;
use super::performance::Performance;
use super::table::row_of;
use crate::model::disk_sku::DiskSku;
use crate::model::error::{ClassKind, Refusal, Result};

/// The attributes of a disk that can change; absent ones stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modification {
    /// The kind of disk.
    pub sku: Option<DiskSku>,
    /// Operations and throughput.
    pub performance: Performance,
}

/// Refuses parameters that cannot change.
///
/// # Errors
/// One of them is unknown, or is fixed at creation.
pub(super) fn check_mutable(mutable: &Entries) -> Result<()> {
    for key in mutable.keys() {
        match row_of(DISK_PARAMETERS, key) {
            None => {
                let class = ClassKind::VolumeAttributes;
                return Err(Refusal::UnknownParameter { key: key.clone(), class });
            }
            Some(row) if !row.is_mutable => return Err(Refusal::FixedParameter { key: row.key }),
            Some(_) => {}
        }
    }
    Ok(())
}

impl Modification {
    /// Reads the parameters of a VolumeAttributesClass.
    ///
    /// # Errors
    /// A key is unknown or fixed, or a value has not its form.
    pub fn parse(mutable: &Entries, is_stack: bool) -> Result<Self> {
        check_mutable(mutable)?;
        let given = Given::read(DISK_PARAMETERS, ClassKind::VolumeAttributes, mutable)?;
        let sku =
            given.text(keys::SKU_NAME).map(|name| DiskSku::from_parameter(name, is_stack)).transpose()?;
        let performance = Performance { iops: given.number(keys::IOPS), mbps: given.number(keys::MBPS) };
        Ok(Self { sku, performance })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CSI-008. Section 3.5, FIX: keys that cannot change are refused, not ignored.
    #[test]
    fn only_what_can_change_is_taken() {
        let parse = |key: &str, value: &str| Modification::parse(&[(key.into(), value.into())].into(), false);
        assert_eq!(parse("skuname", "Premium_LRS").unwrap().sku, Some(DiskSku::PremiumLrs));
        assert_eq!(parse("storageAccountType", "Premium_LRS").unwrap().sku, Some(DiskSku::PremiumLrs));
        assert_eq!(parse("diskiopsreadwrite", "4000").unwrap().performance.iops, Some(4_000));
        assert_eq!(parse("DiskMBpsReadWrite", "200").unwrap().performance.mbps, Some(200));
        for (key, value, text) in [
            ("cachingMode", "None", "cannot be changed"),
            ("device-setting/queue/x", "1", "cannot be changed"),
            ("unknown", "1", "invalid parameter unknown in volume attributes class"),
            ("skuName", "premium_lrs", "expected one of"),
            ("DiskIOPSReadWrite", "many", "whole number"),
        ] {
            let refusal = parse(key, value).unwrap_err();
            assert_eq!(refusal.code(), crate::Code::InvalidArgument);
            assert!(refusal.to_string().contains(text), "{refusal}");
        }
    }
}
