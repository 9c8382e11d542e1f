//! A disk whose kind or performance changes.

use serde_json::{Value, json};

use super::migration;
use super::observed::ObservedDisk;
use crate::model::document::object;
use crate::model::error::{Refusal, Result};
use crate::model::id::DiskId;
use crate::parameters::keys;
use crate::parameters::modification::Modification;

/// What serves a change.
#[derive(Debug, Clone, PartialEq)]
pub struct ModifyPlan {
    /// The document to PATCH; absent if the disk is as it should be.
    pub document: Option<Value>,
    /// Whether Azure changes the kind in the background, which is watched.
    pub is_migrated: bool,
}

/// Plans a change of a disk: members that differ, and no others.
///
/// # Errors
/// Operations or throughput are asked of a kind without them, or Azure is still changing the kind.
pub fn plan(id: &DiskId, disk: ObservedDisk<'_>, change: Modification) -> Result<ModifyPlan> {
    let sku = change.sku.or(disk.sku());
    let performance = change.performance;
    if let Some(sku) = sku.filter(|sku| !sku.is_provisioned()) {
        for (key, value) in [(keys::IOPS, performance.iops), (keys::MBPS, performance.mbps)] {
            if let Some(value) = value {
                let (value, expected) = (value.to_string(), "it needs PremiumV2_LRS or UltraSSD_LRS");
                return Err(Refusal::UnsuitableForSku { key, value, sku: sku.name(), expected });
            }
        }
    }
    let new_sku = change.sku.filter(|sku| disk.sku_name() != Some(sku.name()));
    if let (Some(_), Some(percent)) = (new_sku, disk.completion_percent().filter(|percent| *percent < 100)) {
        return Err(Refusal::MigrationInProgress { disk: id.resource().clone(), percent });
    }
    let iops = performance.iops.filter(|iops| disk.iops() != Some(*iops));
    let mbps = performance.mbps.filter(|mbps| disk.mbps() != Some(*mbps));
    let properties = (iops.is_some() || mbps.is_some()).then(|| {
        object([("diskIOPSReadWrite", iops.map(Value::from)), ("diskMBpsReadWrite", mbps.map(Value::from))])
    });
    let has_change = new_sku.is_some() || properties.is_some();
    let document = has_change.then(|| {
        object([("sku", new_sku.map(|sku| json!({ "name": sku.name() }))), ("properties", properties)])
    });
    let is_migrated =
        new_sku.is_some_and(|new| disk.sku().is_some_and(|old| migration::is_watched(old, new)));
    Ok(ModifyPlan { document, is_migrated })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::disk_sku::DiskSku;
    use crate::model::error::Code;
    use crate::parameters::performance::Performance;

    /// CSI-034. Section 3.13, with its FIX: performance of a kind without it is an invalid argument.
    #[test]
    fn only_differences_are_sent() {
        let id = DiskId::new("s", "g", "d");
        let v2 = json!({ "sku": { "name": "PremiumV2_LRS" }, "properties": { "diskIOPSReadWrite": 3000, "diskMBpsReadWrite": 125 } });
        let premium = json!({ "sku": { "name": "Premium_LRS" }, "properties": {} });
        let busy = json!({ "sku": { "name": "PremiumV2_LRS" }, "properties": { "completionPercent": 40.5 } });
        let of = |sku, iops, mbps| Modification { sku, performance: Performance { iops, mbps } };
        for (disk, change, expected) in [
            (&v2, of(None, None, None), Ok(None)),
            (&v2, of(Some(DiskSku::PremiumV2Lrs), Some(3_000), Some(125)), Ok(None)),
            (
                &v2,
                of(None, Some(4_000), Some(125)),
                Ok(Some(json!({ "properties": { "diskIOPSReadWrite": 4_000 } }))),
            ),
            (
                &premium,
                of(Some(DiskSku::StandardLrs), None, None),
                Ok(Some(json!({ "sku": { "name": "Standard_LRS" } }))),
            ),
            (
                &premium,
                of(Some(DiskSku::PremiumV2Lrs), None, Some(200)),
                Ok(Some(
                    json!({ "sku": { "name": "PremiumV2_LRS" }, "properties": { "diskMBpsReadWrite": 200 } }),
                )),
            ),
            (&premium, of(None, Some(4_000), None), Err(Code::InvalidArgument)),
            (&v2, of(Some(DiskSku::PremiumLrs), None, Some(1)), Err(Code::InvalidArgument)),
            (&busy, of(Some(DiskSku::PremiumLrs), None, None), Err(Code::Aborted)),
            (&busy, of(Some(DiskSku::PremiumV2Lrs), None, None), Ok(None)),
        ] {
            let found = plan(&id, ObservedDisk(disk), change);
            let found = found.map(|plan| plan.document).map_err(|refusal| refusal.code());
            assert_eq!(found, expected, "{disk} {change:?}");
        }
        let done = json!({ "sku": { "name": "PremiumV2_LRS" }, "properties": { "completionPercent": 100 } });
        let changed = plan(&id, ObservedDisk(&done), of(Some(DiskSku::PremiumLrs), None, None)).unwrap();
        assert!(changed.document.is_some() && !changed.is_migrated);
        assert!(!plan(&id, ObservedDisk(&v2), of(None, Some(9_000), None)).unwrap().is_migrated);
        let migrated = plan(&id, ObservedDisk(&premium), of(Some(DiskSku::PremiumV2Lrs), None, None));
        assert!(migrated.unwrap().is_migrated);
    }
}
