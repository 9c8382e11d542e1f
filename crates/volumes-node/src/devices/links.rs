//! Data disks by the links that udev's rules for Azure make.

use super::device::Device;
use super::excluded::Excluded;
use super::lun::Lun;
use super::scsi;
use super::tree::{Tree, name_of};

/// The device to which a link for the LUN leads.
///
/// # Errors
/// No device has it; the words say why.
pub(super) async fn find(tree: &Tree, lun: Lun, excluded: &Excluded) -> Result<Device, String> {
    let mut reasons = Vec::new();
    for link in [format!("/dev/disk/azure/scsi1/lun{lun}"), format!("/dev/disk/azure/data/by-lun/{lun}")] {
        let path = tree.path(&link);
        let Some(node) = tree.block_device(&path).await else {
            reasons.push(format!("{link} leads to no device"));
            continue;
        };
        let name = name_of(&node).unwrap_or_default();
        if excluded.contains(&name) {
            reasons.push(format!("{link} leads to {name}, which is no data disk"));
            continue;
        }
        // udev follows the kernel: a link may still lead to the device that had the LUN before.
        match scsi::lun_of(tree, &name).await {
            Some(other) if other != u64::from(lun.number()) => {
                reasons.push(format!("{link} leads to {name}, which has LUN {other} now"));
            }
            _ => return Ok(Device { node, link: Some(path) }),
        }
    }
    Err(reasons.join(", "))
}
