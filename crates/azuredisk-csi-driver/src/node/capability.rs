//! What a request says about the use of a volume.

use csi::status::refused;
use csi::v1::VolumeCapability;
use csi::v1::volume_capability::{AccessType, MountVolume, access_mode};
use tonic::Status;
use volume_planner::Refusal;
use volume_planner::access::{self, AccessMode, Capability};
use volume_planner::disk::context::VolumeContext;
use volume_planner::parameters::given::Entries;

/// How a volume is used.
#[derive(Debug, Clone)]
pub(super) struct Usage {
    /// The file system to mount; absent for a raw block device.
    pub mount: Option<MountVolume>,
    /// Whether one pod alone may have the volume.
    pub is_single_writer: bool,
}

/// Reads and checks the use of a volume, against the number of machines that may share its disk.
pub(super) fn usage(capability: Option<VolumeCapability>, context: &Entries) -> Result<Usage, Status> {
    let capability = capability.ok_or_else(|| refused(&Refusal::Missing("volume capability")))?;
    let context = VolumeContext::parse(context, false).map_err(|refusal| refused(&refusal))?;
    let mode = capability.access_mode.and_then(|mode| mode_of(mode.mode));
    let is_block = matches!(capability.access_type, Some(AccessType::Block(_)));
    let mount = match capability.access_type {
        Some(AccessType::Mount(mount)) => Some(mount),
        _ => None,
    };
    let checked = Capability { mode, is_block, is_mount: mount.is_some() };
    access::check(&[checked], context.max_shares.unwrap_or(1)).map_err(|refusal| refused(&refusal))?;
    Ok(Usage { mount, is_single_writer: mode == Some(AccessMode::SingleNodeSingleWriter) })
}

fn mode_of(mode: i32) -> Option<AccessMode> {
    use access_mode::Mode;
    Some(match Mode::try_from(mode).ok()? {
        Mode::Unknown => return None,
        Mode::SingleNodeWriter => AccessMode::SingleNodeWriter,
        Mode::SingleNodeReaderOnly => AccessMode::SingleNodeReaderOnly,
        Mode::SingleNodeSingleWriter => AccessMode::SingleNodeSingleWriter,
        Mode::SingleNodeMultiWriter => AccessMode::SingleNodeMultiWriter,
        Mode::MultiNodeReaderOnly => AccessMode::MultiNodeReaderOnly,
        Mode::MultiNodeSingleWriter => AccessMode::MultiNodeSingleWriter,
        Mode::MultiNodeMultiWriter => AccessMode::MultiNodeMultiWriter,
    })
}

/// The value of a key in any case, if it is not empty.
pub(super) fn value<'a>(context: &'a Entries, key: &str) -> Option<&'a str> {
    let entry = context.iter().find(|(own, value)| own.eq_ignore_ascii_case(key) && !value.is_empty());
    entry.map(|(_, value)| value.as_str())
}
