//! Whether a detach that does not end is forced. Azure then takes the disk from a machine that may still write to it, and data
//! that the machine has not written yet are lost.

/// What is known when a detach has not ended in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForceInputs {
    /// Whether the program may force at all.
    pub is_enabled: bool,
    /// Whether the volume permits it.
    pub volume_permits: bool,
    /// Whether the node is ready; absent if that is unknown, as is whether it still writes.
    pub is_node_ready: Option<bool>,
}

/// Whether to force. A node that is ready, or may be, still uses the disk.
pub fn may_force(inputs: ForceInputs) -> bool {
    inputs.is_enabled && inputs.volume_permits && inputs.is_node_ready == Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CSI-045. Section 3.11, FIX: opt-out for each volume, and never while the node is ready.
    #[test]
    fn only_a_node_known_not_to_be_ready_loses_a_disk_by_force() {
        for (is_enabled, volume_permits, is_node_ready, expected) in [
            (true, true, Some(false), true),
            (true, true, Some(true), false),
            (true, true, None, false),
            (false, true, Some(false), false),
            (true, false, Some(false), false),
        ] {
            assert_eq!(may_force(ForceInputs { is_enabled, volume_permits, is_node_ready }), expected);
        }
    }
}
