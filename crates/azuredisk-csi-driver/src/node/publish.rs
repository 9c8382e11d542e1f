//! Publishing: a pod gets a staged volume at a path of its own.

use csi::v1::{
    NodePublishVolumeRequest, NodePublishVolumeResponse, NodeUnpublishVolumeRequest,
    NodeUnpublishVolumeResponse,
};
use tokio::time::Instant;
use tonic::Status;
use volumes_node::devices::Device;
use volumes_node::mounts::{MountEntry, Publication, PublishError, Stale};
use volumes_node::system::FileKind;

use super::capability::usage;
use super::service::{NodeService, entries, path};
use super::status::{of_mount, of_publish};

impl NodeService {
    pub(super) async fn publish(
        &self,
        request: NodePublishVolumeRequest,
        deadline: Instant,
    ) -> Result<NodePublishVolumeResponse, Status> {
        let _held = self.hold(&request.volume_id)?;
        let usage = usage(request.volume_capability, &entries(request.volume_context))?;
        let staging = path("staging target path", &request.staging_target_path)?;
        let target = path("target path", &request.target_path)?;
        let publication = Publication {
            staging: self.mounts.resolved(&staging).await,
            target: self.mounts.resolved(&target).await,
            is_read_only: request.readonly,
            is_single_writer: usage.is_single_writer,
        };
        if usage.mount.is_some() {
            self.mounts.publish_folder(&publication, Stale::Renewed).await.map_err(of_publish)?;
        } else {
            let device = self.device(&request.publish_context, None, deadline).await?;
            self.publish_device(&publication, &device).await?;
        }
        Ok(NodePublishVolumeResponse {})
    }

    async fn publish_device(&self, publication: &Publication, device: &Device) -> Result<(), Status> {
        let target = &publication.target;
        let number = self.mounts.kind(&device.node).await.map_err(of_mount)?;
        while self.mounts.prepare_file(target).await.map_err(of_mount)?.is_some() {
            if self.mounts.kind(target).await.is_ok_and(|mounted| mounted == number) {
                return self.mounts.complete(publication).await.map_err(of_mount);
            }
            tracing::warn!(path = %target.display(), "another volume is mounted at the target path and is taken away");
            self.mounts.release(target).await.map_err(of_mount)?;
        }
        if publication.is_single_writer
            && let Some(other) = self.published_device(publication, device, number).await?
        {
            self.mounts.release(target).await.map_err(of_mount)?;
            return Err(of_publish(PublishError::Taken(other.mount_point)));
        }
        self.mounts.bind(&device.node, target).await.map_err(of_mount)?;
        self.mounts.complete(publication).await.map_err(of_mount)
    }

    /// Another path at which the device itself is published: a mount of its node, which has its name at the time of the mount.
    async fn published_device(
        &self,
        publication: &Publication,
        device: &Device,
        number: FileKind,
    ) -> Result<Option<MountEntry>, Status> {
        let table = self.mounts.table().await.map_err(of_mount)?;
        let has_name = |entry: &MountEntry| entry.root.file_name() == device.node.file_name();
        for entry in publication.elsewhere(&table, has_name) {
            if self.mounts.kind(&entry.mount_point).await.is_ok_and(|mounted| mounted == number) {
                return Ok(Some(entry.clone()));
            }
        }
        Ok(None)
    }

    pub(super) async fn unpublish(
        &self,
        request: NodeUnpublishVolumeRequest,
    ) -> Result<NodeUnpublishVolumeResponse, Status> {
        let _held = self.hold(&request.volume_id)?;
        let target = path("target path", &request.target_path)?;
        self.mounts.release(&target).await.map_err(of_mount)?;
        Ok(NodeUnpublishVolumeResponse {})
    }
}
