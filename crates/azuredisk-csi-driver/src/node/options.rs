//! What flags decide about a node.

use std::path::PathBuf;
use std::time::Duration;

/// What flags decide about a node (section 3.20 of the specification of the drivers). `--vol-stats-cache-expire-in-minutes` is
/// without effect on Linux, where statistics cost one call of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOptions {
    /// `--nodeid`: the node's name.
    pub node_id: String,
    /// `--drivername`.
    pub driver: String,
    /// The cluster's region, if it is known: zones of others are none.
    pub region: Option<String>,
    /// `--support-zone`: whether the node reports its zone.
    pub supports_zones: bool,
    /// `--get-node-info-from-labels`: the node's labels alone are asked for zone and size.
    pub prefers_labels: bool,
    /// `--volume-attach-limit`; negative for the machine's own.
    pub attach_limit: i64,
    /// `--reserved-data-disk-slot-num`.
    pub reserved_slots: u32,
    /// `--enable-perf-optimization`: whether profiles of device settings are applied.
    pub applies_profiles: bool,
    /// `--max-concurrent-format`; 0 for as many as there are.
    pub max_concurrent_format: usize,
    /// `--concurrent-format-timeout`: how long one of them counts.
    pub concurrent_format_timeout: Duration,
    /// The folder in which `/dev` and `/sys` are; `/` except where machines are simulated.
    pub device_root: PathBuf,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            node_id: String::new(),
            driver: "disk.csi.azure.com".to_owned(),
            region: None,
            supports_zones: true,
            prefers_labels: false,
            attach_limit: -1,
            reserved_slots: 0,
            applies_profiles: false,
            max_concurrent_format: 2,
            concurrent_format_timeout: Duration::from_secs(300),
            device_root: PathBuf::from("/"),
        }
    }
}
