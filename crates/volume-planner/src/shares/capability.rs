//! Which uses a share serves.

use crate::model::access::Capability;
use crate::model::error::{Refusal, Result};

/// Checks the capabilities of a request: a share is a file system in any access mode, and never a block device (section 4.1).
///
/// # Errors
/// The request has no capability, or a share does not serve one of them.
pub fn check(capabilities: &[Capability]) -> Result<()> {
    if capabilities.is_empty() {
        return Err(Refusal::Missing("volume capabilities"));
    }
    let problem = capabilities.iter().find_map(|one| match one {
        Capability { mode: None, .. } => Some("access mode is missing or unknown"),
        Capability { is_block: true, .. } => Some("a share is no block device; use volumeMode Filesystem"),
        Capability { is_mount: false, .. } => Some("access type is neither block nor mount"),
        _ => None,
    });
    problem.map_or(Ok(()), |problem| Err(Refusal::UnsupportedCapability(problem)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::access::AccessMode;

    /// FILE-045. Section 4.1: all access modes, no block devices.
    #[test]
    fn a_share_is_a_file_system_for_any_number_of_nodes() {
        use AccessMode::{
            MultiNodeMultiWriter, MultiNodeReaderOnly, SingleNodeMultiWriter, SingleNodeWriter,
        };
        for mode in [MultiNodeMultiWriter, MultiNodeReaderOnly, SingleNodeMultiWriter, SingleNodeWriter] {
            let of = |is_block, is_mount| check(&[Capability { mode: Some(mode), is_block, is_mount }]);
            assert_eq!(of(false, true), Ok(()));
            assert!(of(true, false).is_err() && of(false, false).is_err());
        }
        assert!(check(&[]).is_err());
        assert!(check(&[Capability { mode: None, is_block: false, is_mount: true }]).is_err());
    }
}
