//! Annotations that the driver reads and writes. Their prefix is the driver's name.

/// On a Node: how many data disks its machine takes (`MaxDataDiskCount` in Azure's list of sizes). The controller publishes it.
pub fn max_data_disks(driver: &str) -> String {
    format!("{driver}/max-data-disks")
}

/// On a PersistentVolume: whether its disk may be detached by force. Any value but `true` forbids it.
pub fn force_detach(driver: &str) -> String {
    format!("{driver}/force-detach")
}
