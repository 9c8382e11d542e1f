//! Publishing: a pod gets a staged volume at a path of its own.

use std::path::{Path, PathBuf};

use csi::v1::{
    NodePublishVolumeRequest, NodePublishVolumeResponse, NodeUnpublishVolumeRequest,
    NodeUnpublishVolumeResponse,
};
use tokio::time::Instant;
use tonic::Status;
use volumes_node::devices::Device;
use volumes_node::mounts::{MountEntry, MountTable};
use volumes_node::system::FileKind;

use super::capability::usage;
use super::service::{NodeService, entries, path};
use super::status::of_mount;

/// A request to publish, with its paths as the kernel has them.
struct Publication {
    staging: PathBuf,
    target: PathBuf,
    is_read_only: bool,
    is_single_writer: bool,
}

impl Publication {
    /// Where else the volume is published, among mounts of which `is_same` says that they are the whole volume. Other copies of
    /// the tree of mounts, such as a second path to the kubelet's folder, are left out.
    fn elsewhere<'a>(
        &self,
        table: &'a MountTable,
        is_same: impl Fn(&MountEntry) -> bool,
    ) -> Vec<&'a MountEntry> {
        let mut common = self.staging.ancestors();
        let common = common.find(|above| self.target.starts_with(above)).unwrap_or(Path::new("/"));
        let others = table.entries().iter().filter(|entry| {
            entry.mount_point != self.target
                && entry.mount_point != self.staging
                && entry.mount_point.starts_with(common)
        });
        others.filter(|entry| is_same(entry)).collect()
    }

    fn refuse_second(&self, other: &MountEntry) -> Status {
        Status::failed_precondition(format!(
            "the volume is published at {} already, and its access mode SINGLE_NODE_SINGLE_WRITER (ReadWriteOncePod) allows \
             one pod alone; wait for the end of the other pod",
            other.mount_point.display()
        ))
    }
}

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
            self.publish_file_system(&publication).await?;
        } else {
            let device = self.device(&request.publish_context, None, deadline).await?;
            self.publish_device(&publication, &device).await?;
        }
        Ok(NodePublishVolumeResponse {})
    }

    async fn publish_file_system(&self, publication: &Publication) -> Result<(), Status> {
        let Publication { staging, target, .. } = publication;
        let table = self.mounts.table().await.map_err(of_mount)?;
        let staged = table.at(staging).cloned().ok_or_else(|| {
            let text = format!(
                "nothing is mounted at the staging path {}; stage the volume first",
                staging.display()
            );
            Status::failed_precondition(text)
        })?;
        let is_staged = |entry: &MountEntry| entry.device == staged.device && entry.root == staged.root;
        while let Some(entry) = self.mounts.prepare_folder(target).await.map_err(of_mount)? {
            if is_staged(&entry) {
                return self.complete(publication).await;
            }
            tracing::warn!(path = %target.display(), "another volume is mounted at the target path and is taken away");
            self.mounts.release(target).await.map_err(of_mount)?;
        }
        if publication.is_single_writer
            && let Some(other) = publication.elsewhere(&table, is_staged).first()
        {
            // The path was made for this request.
            self.mounts.release(target).await.map_err(of_mount)?;
            return Err(publication.refuse_second(other));
        }
        self.mounts.bind(staging, target).await.map_err(of_mount)?;
        self.complete(publication).await
    }

    async fn publish_device(&self, publication: &Publication, device: &Device) -> Result<(), Status> {
        let target = &publication.target;
        let number = self.mounts.kind(&device.node).await.map_err(of_mount)?;
        while self.mounts.prepare_file(target).await.map_err(of_mount)?.is_some() {
            if self.mounts.kind(target).await.is_ok_and(|mounted| mounted == number) {
                return self.complete(publication).await;
            }
            tracing::warn!(path = %target.display(), "another volume is mounted at the target path and is taken away");
            self.mounts.release(target).await.map_err(of_mount)?;
        }
        if publication.is_single_writer
            && let Some(other) = self.published_device(publication, device, number).await?
        {
            self.mounts.release(target).await.map_err(of_mount)?;
            return Err(publication.refuse_second(&other));
        }
        self.mounts.bind(&device.node, target).await.map_err(of_mount)?;
        self.complete(publication).await
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

    /// What is left after the bind: a mount for reading is made so by a second step.
    async fn complete(&self, publication: &Publication) -> Result<(), Status> {
        if !publication.is_read_only {
            return Ok(());
        }
        match self.mounts.at(&publication.target).await.map_err(of_mount)? {
            Some(entry) if !entry.options.iter().any(|option| option == "ro") => {
                self.mounts.make_read_only(&entry).await.map_err(of_mount)
            }
            _ => Ok(()),
        }
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
