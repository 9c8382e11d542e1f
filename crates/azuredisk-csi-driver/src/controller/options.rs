//! What the flags decide about the controller.

use std::time::Duration;

/// The options of the controller (section 3.20 of the specification of the drivers).
#[derive(Debug, Clone)]
pub struct ControllerOptions {
    /// The driver's name, such as `disk.csi.azure.com`.
    pub driver: String,
    /// Whether ListVolumes is served.
    pub lists_volumes: bool,
    /// Whether ListSnapshots is served.
    pub lists_snapshots: bool,
    /// Whether an attached disk may grow.
    pub grows_attached: bool,
    /// How long a publish waits for the disk's document; then Azure judges the disk alone.
    pub get_disk_timeout: Duration,
    /// How long a detach may take before it is forced, if the node is known not to be ready.
    pub detach_timeout: Duration,
    /// Whether a detach may be forced at all.
    pub may_force_detach: bool,
    /// Whether a snapshot is answered only once it is ready.
    pub waits_for_snapshots: bool,
    /// Whether LUNs that VolumeAttachments name are kept free for their disks.
    pub reserves_luns: bool,
    /// Whether the cache of in-tree volumes is `ReadOnly` where they say `ReadWrite`.
    pub weakens_in_tree_caching: bool,
    /// How long attaches wait for others before a write, beside those that have begun; of a class's parameter, for its volumes.
    pub batch_window: Duration,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        Self {
            driver: "disk.csi.azure.com".to_owned(),
            lists_volumes: false,
            lists_snapshots: false,
            grows_attached: true,
            get_disk_timeout: Duration::from_secs(15),
            detach_timeout: Duration::from_secs(200),
            may_force_detach: true,
            waits_for_snapshots: false,
            reserves_luns: true,
            weakens_in_tree_caching: false,
            batch_window: Duration::ZERO,
        }
    }
}
