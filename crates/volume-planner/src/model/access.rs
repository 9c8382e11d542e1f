//! Access modes and types: which of them a disk serves.

use super::error::{Refusal, Result};

/// An access mode of the Container Storage Interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessMode {
    /// One node writes.
    SingleNodeWriter,
    /// One node reads.
    SingleNodeReaderOnly,
    /// One writer on one node.
    SingleNodeSingleWriter,
    /// Several writers on one node.
    SingleNodeMultiWriter,
    /// Several nodes read.
    MultiNodeReaderOnly,
    /// Several nodes read, one writes.
    MultiNodeSingleWriter,
    /// Several nodes write.
    MultiNodeMultiWriter,
}

impl AccessMode {
    /// Whether several nodes have the volume at a time.
    pub const fn is_multi_node(self) -> bool {
        matches!(self, Self::MultiNodeReaderOnly | Self::MultiNodeSingleWriter | Self::MultiNodeMultiWriter)
    }
}

/// What a request says about the use of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capability {
    /// The mode; absent if the request has none, or one that the interface does not know.
    pub mode: Option<AccessMode>,
    /// Whether it is used as a block device.
    pub is_block: bool,
    /// Whether a file system is mounted.
    pub is_mount: bool,
}

/// Checks all capabilities of a request against the number of machines that may share the disk.
///
/// # Errors
/// The request has no capability, or a disk does not serve one of them.
pub fn check(capabilities: &[Capability], max_shares: u32) -> Result<()> {
    if capabilities.is_empty() {
        return Err(Refusal::Missing("volume capabilities"));
    }
    for one in capabilities {
        let problem = match one {
            Capability { mode: None, .. } => Some("access mode is missing or unknown"),
            Capability { is_block: true, is_mount: true, .. } => Some("access type is both block and mount"),
            Capability { is_block: false, is_mount: false, .. } => {
                Some("access type is neither block nor mount")
            }
            Capability { mode: Some(mode), is_mount: true, .. } if mode.is_multi_node() => {
                Some("a file system cannot be mounted on several nodes; use volumeMode Block with maxShares")
            }
            Capability { mode: Some(mode), .. } if mode.is_multi_node() && max_shares < 2 => {
                Some("access by several nodes needs parameter maxShares of at least 2")
            }
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(Refusal::UnsupportedCapability(problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CSI-028. Section 3.1: modes and types that a disk serves.
    #[test]
    fn several_nodes_share_block_devices_only() {
        use AccessMode::{MultiNodeMultiWriter, SingleNodeSingleWriter, SingleNodeWriter};
        let of = |mode, is_block, is_mount| Capability { mode, is_block, is_mount };
        for (capability, shares, is_served) in [
            (of(Some(SingleNodeWriter), false, true), 1, true),
            (of(Some(SingleNodeSingleWriter), true, false), 1, true),
            (of(Some(MultiNodeMultiWriter), false, true), 2, false),
            (of(Some(MultiNodeMultiWriter), true, false), 1, false),
            (of(Some(MultiNodeMultiWriter), true, false), 2, true),
            (of(Some(SingleNodeWriter), true, true), 1, false),
            (of(Some(SingleNodeWriter), false, false), 1, false),
            (of(None, false, true), 1, false),
        ] {
            assert_eq!(check(&[capability], shares).is_ok(), is_served, "{capability:?} {shares}");
        }
        assert!(check(&[], 1).is_err());
    }
}
