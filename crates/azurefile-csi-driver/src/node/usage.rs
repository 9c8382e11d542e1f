//! How a request uses a volume.

use csi::v1::VolumeCapability;
use csi::v1::volume_capability::{AccessType, access_mode::Mode};
use tonic::Status;

/// How a request uses a volume.
#[derive(Debug, Clone, Default)]
pub(super) struct Usage {
    /// Mount options of the volume.
    pub flags: Vec<String>,
    /// The pod's group (VOLUME_MOUNT_GROUP); may be empty.
    pub group: String,
    /// Whether one pod alone may have it.
    pub is_single_writer: bool,
}

/// How a request uses a volume: always its files, with every mode.
pub(super) fn usage(capability: Option<VolumeCapability>) -> Result<Usage, Status> {
    let missing = |what: &str| Status::invalid_argument(format!("{what} is missing in the request"));
    let capability = capability.ok_or_else(|| missing("volume capability"))?;
    let mount = match capability.access_type {
        Some(AccessType::Mount(mount)) => mount,
        Some(AccessType::Block(_)) => {
            return Err(Status::invalid_argument("a share is no block device; use volumeMode Filesystem"));
        }
        None => return Err(missing("access type")),
    };
    let mode = capability.access_mode.and_then(|mode| Mode::try_from(mode.mode).ok());
    let mut flags = mount.mount_flags;
    if matches!(mode, Some(Mode::MultiNodeReaderOnly | Mode::SingleNodeReaderOnly)) {
        flags.push("ro".to_owned());
    }
    let is_single_writer = mode == Some(Mode::SingleNodeSingleWriter);
    Ok(Usage { flags, group: mount.volume_mount_group, is_single_writer })
}
