//! Between the interface's messages and the planner's values: what drivers share is in `csi::messages`.

use csi::v1::{Topology, TopologyRequirement};
use volume_planner::topology::{Requirement, Segments};

pub(super) use csi::messages::{capability, entries, map, range, required};
pub(super) use csi::status::refused;

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

/// A time as Azure writes it, such as `2026-01-02T03:04:05.678+00:00`; absent if the text is no time.
pub(super) fn timestamp(text: &str) -> Option<prost_types::Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(prost_types::Timestamp { seconds: time.as_second(), nanos: time.subsec_nanosecond() })
}

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
