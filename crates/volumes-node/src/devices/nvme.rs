//! Data disks by the kernel's tree of NVMe namespaces (Azure documentation, "FAQ for remote NVMe disks").

use super::device::Device;
use super::excluded::Excluded;
use super::lun::Lun;
use super::tree::Tree;

const BLOCK: &str = "/sys/class/block";
const CONTROLLERS: &str = "/sys/class/nvme";

/// The model of the controller for remote disks. Those of local disks have others.
const MODEL: &str = "MSFT NVMe Accelerator v1.0";

/// Namespace 1 is the disk of the operating system, and namespaces begin at 1.
const FIRST_DATA_NAMESPACE: u64 = 2;

/// The namespace's number in a name such as `nvme0n2`. It counts devices in the order in which they came, so it is the ID only
/// as long as none went.
fn number_in(name: &str) -> Option<u64> {
    let (controller, number) = name.strip_prefix("nvme")?.split_once('n')?;
    controller.parse::<u64>().ok()?;
    number.parse().ok()
}

/// The device of the LUN.
///
/// # Errors
/// No device has it; the words say why.
pub(super) async fn find(tree: &Tree, lun: Lun, excluded: &Excluded) -> Result<Device, String> {
    let wanted = u64::from(lun.number()) + FIRST_DATA_NAMESPACE;
    let mut problem = None;
    for name in tree.entries(&tree.path(BLOCK)).await {
        let Some(number) = number_in(&name) else { continue };
        if tree.text(tree.block(&name).join("device/model")).await.as_deref() != Some(MODEL) {
            continue;
        }
        let id = tree.text(tree.block(&name).join("nsid")).await.and_then(|id| id.parse().ok());
        if id.unwrap_or(number) != wanted || excluded.contains(&name) {
            continue;
        }
        match tree.block_device(&tree.path("/dev").join(&name)).await {
            Some(node) => return Ok(Device::at(node)),
            None => problem = Some(format!("/dev/{name} of NVMe namespace {wanted} is no usable device yet")),
        }
    }
    Err(problem.unwrap_or_else(|| format!("no controller {MODEL} has NVMe namespace {wanted}")))
}

/// Asks the controllers of remote disks to look for namespaces.
pub(super) async fn scan(tree: &Tree) {
    let controllers = tree.path(CONTROLLERS);
    for controller in tree.entries(&controllers).await {
        let folder = controllers.join(&controller);
        if tree.text(folder.join("model")).await.as_deref() == Some(MODEL) {
            let file = folder.join("rescan_controller");
            if let Err(error) = tree.system.write(&file, "1").await {
                tracing::debug!(path = %file.display(), %error, "an NVMe controller cannot be scanned");
            }
        }
    }
}

/// Reads the size of a disk again, which an NVMe controller does for all of its namespaces. Whether it is an NVMe disk.
pub(super) async fn rescan(tree: &Tree, name: &str) -> std::io::Result<bool> {
    if number_in(name).is_none() {
        return Ok(false);
    }
    let device = tree.block(name).join("device");
    let own = device.join("rescan_controller");
    let error = match tree.system.write(&own, "1").await {
        Ok(()) => return Ok(true),
        Err(error) => error,
    };
    // A namespace that several controllers may share is below a subsystem, and that has the controllers.
    let controllers = tree.entries(&device).await.into_iter().filter(|entry| entry.starts_with("nvme"));
    for controller in controllers.filter(|entry| number_in(entry).is_none()) {
        if tree.system.write(&device.join(controller).join("rescan_controller"), "1").await.is_ok() {
            return Ok(true);
        }
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_namespaces_have_a_number() {
        assert_eq!(number_in("nvme0n2"), Some(2));
        assert_eq!(number_in("nvme12n31"), Some(31));
        for other in ["nvme0", "nvme0n2p1", "nvme0c0n2", "sdn2", "nvmen2"] {
            assert_eq!(number_in(other), None, "{other}");
        }
    }
}
