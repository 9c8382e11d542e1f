//! Data disks by the kernel's tree of SCSI devices.

use std::path::PathBuf;

use super::device::Device;
use super::excluded::Excluded;
use super::lun::Lun;
use super::tree::Tree;

const DEVICES: &str = "/sys/bus/scsi/devices";
const HOSTS: &str = "/sys/class/scsi_host";

/// What disks of Azure say of themselves, in lower case.
const VENDOR: &str = "msft";
const MODEL: &str = "virtual disk";

/// The last host that may have the disks of the operating system.
const LAST_SYSTEM_HOST: u64 = 3;

/// An address `host:channel:target:lun`.
fn address(name: &str) -> Option<[u64; 4]> {
    let numbers = name.split(':').map(|number| number.parse().ok()).collect::<Option<Vec<_>>>()?;
    numbers.try_into().ok()
}

/// The LUN of a block device, if it is a SCSI device.
pub(super) async fn lun_of(tree: &Tree, name: &str) -> Option<u64> {
    let device = tree.target_name(&tree.block(name).join("device")).await?;
    address(&device).map(|[.., lun]| lun)
}

/// The device with the LUN.
///
/// # Errors
/// No device has it, or two have: the wrong one must not be formatted. The words say why.
pub(super) async fn find(tree: &Tree, lun: Lun, excluded: &Excluded) -> Result<Device, String> {
    let mut candidates = Vec::new();
    let mut reasons = Vec::new();
    for entry in tree.entries(&tree.path(DEVICES)).await {
        let Some([host, _, _, own]) = address(&entry) else { continue };
        if own != u64::from(lun.number()) || (excluded.is_empty() && host <= LAST_SYSTEM_HOST) {
            continue;
        }
        let folder = tree.path(DEVICES).join(&entry);
        let says = async |file: &str| tree.text(folder.join(file)).await.unwrap_or_default();
        let (vendor, model) = (says("vendor").await, says("model").await);
        if !vendor.eq_ignore_ascii_case(VENDOR) || !model.eq_ignore_ascii_case(MODEL) {
            reasons.push(format!("SCSI device {entry} is a {vendor} {model}"));
            continue;
        }
        let Some(name) = tree.entries(&folder.join("block")).await.into_iter().next() else {
            reasons.push(format!("SCSI device {entry} has no block device yet"));
            continue;
        };
        if excluded.contains(&name) {
            reasons.push(format!("SCSI device {entry} is {name}, which is no data disk"));
        } else if let Some(node) = tree.block_device(&tree.path("/dev").join(&name)).await {
            candidates.push(node);
        } else {
            reasons.push(format!("/dev/{name} of SCSI device {entry} is no usable device yet"));
        }
    }
    match candidates.as_slice() {
        [node] => Ok(Device { node: node.clone(), link: link_to(tree, node).await }),
        [] if reasons.is_empty() => Err(format!("no SCSI disk of Azure has LUN {lun}")),
        [] => Err(reasons.join(", ")),
        several => {
            let names: Vec<_> = several.iter().map(|node| node.display().to_string()).collect();
            Err(format!(
                "SCSI disks {} both have LUN {lun}; which of them is the data disk is shown by links below \
                 /dev/disk/azure, which udev's rules for Azure make: install them on the machine",
                names.join(" and ")
            ))
        }
    }
}

/// A link to a device, beside which its partitions have links.
async fn link_to(tree: &Tree, node: &PathBuf) -> Option<PathBuf> {
    for folder in ["/dev/disk/azure/scsi1", "/dev/disk/by-id"].map(|folder| tree.path(folder)) {
        for entry in tree.entries(&folder).await {
            let link = folder.join(entry);
            if tree.system.canonical(&link).await.is_ok_and(|target| target == *node) {
                return Some(link);
            }
        }
    }
    None
}

/// Asks all hosts to look for new devices. A host that refuses is left out: others may have the disk.
pub(super) async fn scan(tree: &Tree) {
    let hosts = tree.path(HOSTS);
    for host in tree.entries(&hosts).await {
        let file = hosts.join(&host).join("scan");
        if let Err(error) = tree.system.write(&file, "- - -").await {
            tracing::debug!(path = %file.display(), %error, "a SCSI host cannot be scanned");
        }
    }
}

/// Reads the size of a disk again. Whether it is a SCSI disk.
pub(super) async fn rescan(tree: &Tree, name: &str) -> std::io::Result<bool> {
    let folder = tree.block(name).join("device");
    if !matches!(tree.target_name(&folder).await.as_deref().map(address), Some(Some(_))) {
        return Ok(false);
    }
    tree.system.write(&folder.join("rescan"), "1").await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_four_numbers() {
        assert_eq!(address("3:0:0:12"), Some([3, 0, 0, 12]));
        for other in ["host3", "target3:0:0", "3:0:0", "3:0:0:x", "3:0:0:1:2"] {
            assert_eq!(address(other), None, "{other}");
        }
    }
}
