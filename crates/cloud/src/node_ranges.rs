//! The node IPAM controller's interface to a cloud.

use async_trait::async_trait;
use k8s::Node;
use logical_time::LogicalTime;

use crate::Existence;

/// The prefix lengths of a node's pod ranges: 24 is a range of 256 addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskSizes {
    /// Prefix length of the IPv4 range.
    pub v4: u8,
    /// Prefix length of the IPv6 range.
    pub v6: u8,
}

/// The sizes of nodes' pod ranges, where the cloud defines them.
#[async_trait]
pub trait NodeRanges: Send + Sync + 'static {
    /// The mask sizes of a Node as its scale set defines them, read after `newer_than`; the defaults if the scale set
    /// defines none or the machine is in no scale set. Unknown if the scale set could not be read: a range of the wrong
    /// size stays for the node's life.
    async fn mask_sizes(&self, node: &Node, newer_than: LogicalTime) -> Existence<MaskSizes>;
}
