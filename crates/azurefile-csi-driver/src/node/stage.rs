//! Staging: a share is mounted once for all pods of the machine.

use std::path::Path;

use csi::secrets::{Confidential as _, Secrets};
use csi::v1::{
    NodeStageVolumeRequest, NodeStageVolumeResponse, NodeUnstageVolumeRequest, NodeUnstageVolumeResponse,
};
use tonic::Status;
use volumes_node::mounts::{MountOptions, Stale};

use super::access::{Freshness, tokens};
use super::mount::{MOUNT_LIMIT, PROXY_MOUNT};
use super::plan::attributes::{Attributes, Protocol};
use super::service::{NodeService, entries, path, required};
use super::status::{invalid, of_file_system, of_mount};
use super::usage::{Usage, usage};

impl NodeService {
    pub(super) async fn stage(
        &self,
        mut request: NodeStageVolumeRequest,
    ) -> Result<NodeStageVolumeResponse, Status> {
        let secrets = request.take_secrets();
        required("volume ID", &request.volume_id)?;
        let staging = path("staging target path", &request.staging_target_path)?;
        let usage = usage(request.volume_capability)?;
        let entries = entries(request.volume_context);
        let attributes =
            Attributes::read(&request.volume_id, &entries, self.options.defaults).map_err(invalid)?;
        let _held = self.hold(&request.volume_id, &staging)?;
        if attributes.needs_token() && tokens(&secrets, &attributes).is_none() {
            // Each pod has a token of its own, so that the volume is mounted for each when it is published.
            return Ok(NodeStageVolumeResponse {});
        }
        self.mount_volume(&request.volume_id, &attributes, &usage, &secrets, (&staging, Stale::Renewed))
            .await?;
        Ok(NodeStageVolumeResponse {})
    }

    /// Mounts a volume at a path, unless it is mounted there and answers.
    pub(super) async fn mount_volume(
        &self,
        volume: &str,
        attributes: &Attributes,
        usage: &Usage,
        secrets: &Secrets,
        (target, stale): (&Path, Stale),
    ) -> Result<(), Status> {
        let folder = Self::share_folder(attributes, target);
        let (access, share) = self.prepared(attributes, usage, secrets, Freshness::Lately).await?;
        if access.login.has_token() {
            // Before the mount is looked at: with an old ticket it does not answer.
            self.ticket(volume, attributes, &access, &share.host, secrets).await?;
        }
        if !self.is_mounted(&folder, stale).await? {
            self.make_folder(attributes, &access).await;
            if let Err(status) = self.mount(volume, attributes, &access, &share, secrets, &folder).await {
                // The folder was made for this request.
                if let Err(error) = self.mounts.release(&folder).await {
                    tracing::warn!(%error, "the folder of a mount that failed stays");
                }
                return Err(status);
            }
            if let Some(mode) = attributes.permissions.filter(|_| attributes.protocol == Protocol::Nfs) {
                self.mounts.set_permissions(&folder, mode).await.map_err(of_mount)?;
            }
        }
        self.keep_confidential(attributes, &access, &share, &folder).await?;
        if let Some((disk, file_system)) = &attributes.disk {
            if self.is_mounted(target, stale).await? {
                return Ok(());
            }
            let image = folder.join(disk);
            if !self.mounts.is_plain_file(&image).await.map_err(of_mount)? {
                let text = format!("{} is no plain file, and cannot be a disk", image.display());
                return Err(Status::invalid_argument(text));
            }
            let mut options = MountOptions::parse(usage.flags.iter().map(String::as_str))
                .map_err(|error| Status::invalid_argument(error.to_string()))?;
            if file_system.name().starts_with("ext") {
                for option in ["barrier=1", "errors=remount-ro"] {
                    options.require(option);
                }
                options.flags |= volumes_node::system::MountFlags::NOATIME;
            }
            let reads = options.is_read_only();
            self.file_systems.prepare(&image, *file_system, reads).await.map_err(of_file_system)?;
            let mounted =
                self.mounts.mount_image(&image, target, file_system.name(), &options, MOUNT_LIMIT).await;
            mounted.map_err(of_mount)?;
        }
        self.own(attributes, usage, target).await
    }

    /// Makes the files of NFS and of a disk the pod's group's, which SMB does by an option.
    async fn own(&self, attributes: &Attributes, usage: &Usage, target: &Path) -> Result<(), Status> {
        let (Some(when), false) = (attributes.owner, usage.group.is_empty()) else { return Ok(()) };
        if attributes.protocol == Protocol::Smb && attributes.disk.is_none() {
            return Ok(());
        }
        let Ok(group) = usage.group.parse() else {
            let text = format!("the group of the pod is {:?}: expected a number", usage.group);
            return Err(Status::invalid_argument(text));
        };
        self.mounts.change_group(target, group, when).await.map_err(of_mount)
    }

    pub(super) async fn unstage(
        &self,
        request: NodeUnstageVolumeRequest,
    ) -> Result<NodeUnstageVolumeResponse, Status> {
        required("volume ID", &request.volume_id)?;
        let staging = path("staging target path", &request.staging_target_path)?;
        let _held = self.hold(&request.volume_id, &staging)?;
        self.mounts.release(&staging).await.map_err(of_mount)?;
        self.mounts.release(&staging.with_file_name(PROXY_MOUNT)).await.map_err(of_mount)?;
        self.forget_confidential(&staging).await?;
        self.remembered.keep_used_key(&staging, None);
        self.remove_tokens(&request.volume_id).await;
        Ok(NodeUnstageVolumeResponse {})
    }
}
