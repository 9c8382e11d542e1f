//! What the controller that gives ranges of pods to nodes asks of a cloud.

use async_trait::async_trait;
use k8s::Node;

use crate::{Existence, LogicalTime};

/// How long the prefixes of a node's ranges are: 24 is a range of 256 addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskSizes {
    /// Of its IPv4 range.
    pub v4: u8,
    /// Of its IPv6 range.
    pub v6: u8,
}

/// How large the ranges of nodes are, where the cloud says so.
#[async_trait]
pub trait NodeRanges: Send + Sync + 'static {
    /// The masks of a Node, as its set of machines has them, read after `newer_than`; the defaults where the set says
    /// nothing, and where the machine is in none. Unknown where nobody could say: a range of the wrong size stays for the
    /// node's life.
    async fn mask_sizes(&self, node: &Node, newer_than: LogicalTime) -> Existence<MaskSizes>;
}
