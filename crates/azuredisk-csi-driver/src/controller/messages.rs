//! Between the interface's messages and the planner's values.

use std::collections::HashMap;

use csi::v1::volume_capability::AccessType;
use csi::v1::volume_capability::access_mode::Mode;
use csi::v1::{CapacityRange as WireRange, Topology, TopologyRequirement, VolumeCapability};
use tonic::Status;
use volume_planner::access::{AccessMode, Capability};
use volume_planner::parameters::given::Entries;
use volume_planner::size::CapacityRange;
use volume_planner::topology::{Requirement, Segments};

/// Parameters, or a context.
pub(super) fn entries(map: HashMap<String, String>) -> Entries {
    map.into_iter().collect()
}

/// A map as messages have it.
pub(super) fn map(entries: impl IntoIterator<Item = (String, String)>) -> HashMap<String, String> {
    entries.into_iter().collect()
}

/// What a request says about size.
pub(super) fn range(range: Option<WireRange>) -> CapacityRange {
    let range = range.unwrap_or_default();
    CapacityRange { required_bytes: range.required_bytes, limit_bytes: range.limit_bytes }
}

/// What a request says about topologies.
pub(super) fn requirement(requirement: Option<TopologyRequirement>) -> Requirement {
    let segments = |topologies: Vec<Topology>| {
        topologies.into_iter().map(|topology| topology.segments.into_iter().collect::<Segments>()).collect()
    };
    let TopologyRequirement { requisite, preferred } = requirement.unwrap_or_default();
    Requirement { preferred: segments(preferred), requisite: segments(requisite) }
}

/// Topologies for an answer.
pub(super) fn topologies(topologies: Vec<Segments>) -> Vec<Topology> {
    topologies.into_iter().map(|segments| Topology { segments: map(segments) }).collect()
}

/// What a request says about the use of a volume.
pub(super) fn capability(capability: &VolumeCapability) -> Capability {
    let mode = capability.access_mode.as_ref().and_then(|mode| Mode::try_from(mode.mode).ok());
    let mode = mode.and_then(|mode| match mode {
        Mode::Unknown => None,
        Mode::SingleNodeWriter => Some(AccessMode::SingleNodeWriter),
        Mode::SingleNodeReaderOnly => Some(AccessMode::SingleNodeReaderOnly),
        Mode::SingleNodeSingleWriter => Some(AccessMode::SingleNodeSingleWriter),
        Mode::SingleNodeMultiWriter => Some(AccessMode::SingleNodeMultiWriter),
        Mode::MultiNodeReaderOnly => Some(AccessMode::MultiNodeReaderOnly),
        Mode::MultiNodeSingleWriter => Some(AccessMode::MultiNodeSingleWriter),
        Mode::MultiNodeMultiWriter => Some(AccessMode::MultiNodeMultiWriter),
    });
    Capability {
        mode,
        is_block: matches!(capability.access_type, Some(AccessType::Block(_))),
        is_mount: matches!(capability.access_type, Some(AccessType::Mount(_))),
    }
}

/// A time as Azure writes it, such as `2026-01-02T03:04:05.678+00:00`; absent if the text is no time.
pub(super) fn timestamp(text: &str) -> Option<prost_types::Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(prost_types::Timestamp { seconds: time.as_second(), nanos: time.subsec_nanosecond() })
}

/// Refuses a request without a member that it needs.
pub(super) fn required(text: &str, what: &'static str) -> Result<(), Status> {
    if text.is_empty() { Err(refused(&volume_planner::Refusal::Missing(what))) } else { Ok(()) }
}

pub(super) use csi::status::refused;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn azures_times_are_read() {
        let time = timestamp("2026-01-02T03:04:05.5+00:00").unwrap();
        assert_eq!((time.seconds, time.nanos), (1_767_323_045, 500_000_000));
        assert_eq!(timestamp("yesterday"), None);
    }
}
