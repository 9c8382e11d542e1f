//! Staging: an attached disk is mounted once for all pods of the machine.

use std::path::Path;

use csi::v1::volume_capability::MountVolume;
use csi::v1::{
    NodeStageVolumeRequest, NodeStageVolumeResponse, NodeUnstageVolumeRequest, NodeUnstageVolumeResponse,
};
use tokio::time::Instant;
use tonic::Status;
use volume_planner::disk::context::RESIZE_REQUIRED;
use volume_planner::parameters::given::Entries;
use volume_planner::parameters::keys;
use volumes_node::devices::{Device, Partition};
use volumes_node::filesystems::FileSystem;
use volumes_node::mounts::{MountEntry, MountOptions};

use super::capability::{usage, value};
use super::performance::profile;
use super::service::{NodeService, entries, path};
use super::status::{of_file_system, of_mount};

/// The key for a partition of a disk that a user made.
const PARTITION: &str = "partition";

/// XFS refuses a copy of a file system that is mounted already unless its UUID is ignored: clones and restores are such copies.
const IGNORE_UUID: &str = "nouuid";

/// What is to be mounted, and how.
struct Wanted {
    file_system: FileSystem,
    options: MountOptions,
    partition: Option<Partition>,
    must_grow: bool,
}

impl Wanted {
    /// The context goes before the capability, and ext4 is the default.
    fn read(mount: &MountVolume, context: &Entries) -> Result<Self, Status> {
        let invalid = |text: String| Status::invalid_argument(text);
        let given = value(context, keys::FS_TYPE).unwrap_or(mount.fs_type.as_str());
        let file_system = match given {
            "" => FileSystem::Ext4,
            given => given.parse().map_err(|error| invalid(format!("{error}")))?,
        };
        let flags = mount.mount_flags.iter().map(String::as_str);
        let mut options = MountOptions::parse(flags).map_err(|error| invalid(error.to_string()))?;
        if file_system == FileSystem::Xfs {
            options.require(IGNORE_UUID);
        }
        let partition = match value(context, PARTITION) {
            None => None,
            Some(text) => match text.parse() {
                Ok(number @ 1..) => Some(Partition(number)),
                _ => {
                    let text = format!(
                        "partition {text} is invalid: expected a number from 1 on; correct or remove it"
                    );
                    return Err(invalid(text));
                }
            },
        };
        let must_grow = value(context, RESIZE_REQUIRED).is_some_and(|text| text.eq_ignore_ascii_case("true"));
        Ok(Self { file_system, options, partition, must_grow })
    }
}

impl NodeService {
    pub(super) async fn stage(
        &self,
        request: NodeStageVolumeRequest,
        deadline: Instant,
    ) -> Result<NodeStageVolumeResponse, Status> {
        let _held = self.hold(&request.volume_id)?;
        let staging = path("staging target path", &request.staging_target_path)?;
        let context = entries(request.volume_context);
        let usage = usage(request.volume_capability, &context)?;
        let wanted = usage.mount.map(|mount| Wanted::read(&mount, &context)).transpose()?;
        let profile = self.options.applies_profiles.then(|| profile(&context, &request.publish_context));
        let profile = profile.transpose()?.flatten();

        let partition = wanted.as_ref().and_then(|wanted| wanted.partition);
        let device = self.device(&request.publish_context, partition, deadline).await?;
        if let Some(profile) = profile {
            self.apply(&profile, &device).await?;
        }
        // A raw device is published as it is.
        let Some(wanted) = wanted else { return Ok(NodeStageVolumeResponse {}) };
        let entry = self.mounted(&device, &staging, &wanted).await?;
        self.grow_to_device(&device, &entry, &wanted).await?;
        Ok(NodeStageVolumeResponse {})
    }

    /// Mounts a device unless it is mounted, and returns the mount.
    async fn mounted(&self, device: &Device, staging: &Path, wanted: &Wanted) -> Result<MountEntry, Status> {
        while let Some(entry) = self.mounts.prepare_folder(staging).await.map_err(of_mount)? {
            if self.is_of(&entry, device).await {
                return Ok(entry);
            }
            tracing::warn!(path = %staging.display(), "another device is mounted at the staging path and is taken away");
            self.mounts.release(staging).await.map_err(of_mount)?;
        }
        if !wanted.options.is_direct {
            // What is mounted elsewhere, such as at the staging path of an older kubelet, must not be repaired under it.
            let is_kept = wanted.options.is_read_only() || self.is_mounted(device).await?;
            let prepared = self.file_systems.prepare(&device.node, wanted.file_system, is_kept).await;
            prepared.map_err(of_file_system)?;
        }
        let name = wanted.file_system.name();
        self.mounts.mount(&device.node, staging, name, &wanted.options).await.map_err(of_mount)?;
        let entry = self.mounts.at(staging).await.map_err(of_mount)?;
        entry.ok_or_else(|| {
            let text = format!(
                "{device} was mounted at {}, but the kernel's table lacks it; the path may be in another namespace of mounts",
                staging.display()
            );
            Status::internal(text)
        })
    }

    /// Whether a device is mounted anywhere.
    async fn is_mounted(&self, device: &Device) -> Result<bool, Status> {
        let table = self.mounts.table().await.map_err(of_mount)?;
        let name = device.node.file_name();
        for entry in table.entries().iter().filter(|entry| entry.source.file_name() == name) {
            if self.is_of(entry, device).await {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Grows the file system to its device: it is smaller after a restore to a larger disk, and after a growth that was
    /// interrupted. Those that cannot grow are left alone, unless they must.
    async fn grow_to_device(
        &self,
        device: &Device,
        entry: &MountEntry,
        wanted: &Wanted,
    ) -> Result<(), Status> {
        let Ok(kind) = entry.file_system.parse::<FileSystem>() else { return Ok(()) };
        if entry.is_read_only() || (kind == FileSystem::Ext2 && !wanted.must_grow) {
            return Ok(());
        }
        self.file_systems.grow(&device.node, &entry.mount_point, kind).await.map_err(of_file_system)
    }

    pub(super) async fn unstage(
        &self,
        request: NodeUnstageVolumeRequest,
    ) -> Result<NodeUnstageVolumeResponse, Status> {
        let _held = self.hold(&request.volume_id)?;
        let staging = path("staging target path", &request.staging_target_path)?;
        self.mounts.release(&staging).await.map_err(of_mount)?;
        Ok(NodeUnstageVolumeResponse {})
    }
}
