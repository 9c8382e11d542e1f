//! Between the interface's messages and the planner's values: what drivers share.

use std::collections::HashMap;

use tonic::Status;
use volume_planner::access::{AccessMode, Capability};
use volume_planner::parameters::given::Entries;
use volume_planner::size::CapacityRange;

use crate::status::refused;
use crate::v1::volume_capability::AccessType;
use crate::v1::volume_capability::access_mode::Mode;
use crate::v1::{CapacityRange as WireRange, VolumeCapability};

/// Parameters, or a context.
pub fn entries(map: HashMap<String, String>) -> Entries {
    map.into_iter().collect()
}

/// A map as messages have it.
pub fn map(entries: impl IntoIterator<Item = (String, String)>) -> HashMap<String, String> {
    entries.into_iter().collect()
}

/// What a request says about size.
pub fn range(range: Option<WireRange>) -> CapacityRange {
    let range = range.unwrap_or_default();
    CapacityRange { required_bytes: range.required_bytes, limit_bytes: range.limit_bytes }
}

/// What a request says about the use of a volume.
pub fn capability(capability: &VolumeCapability) -> Capability {
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

/// Refuses a request without a member that it needs.
///
/// # Errors
/// The text is empty.
pub fn required(text: &str, what: &'static str) -> Result<(), Status> {
    if text.is_empty() { Err(refused(&volume_planner::Refusal::Missing(what))) } else { Ok(()) }
}
