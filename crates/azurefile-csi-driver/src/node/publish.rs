//! Publishing: a pod gets a staged volume at a path of its own.

use std::path::Path;

use csi::secrets::{Confidential as _, Secrets};
use csi::v1::{
    NodePublishVolumeRequest, NodePublishVolumeResponse, NodeUnpublishVolumeRequest,
    NodeUnpublishVolumeResponse,
};
use tonic::Status;
use volume_planner::Code;
use volume_planner::share_id::ShareId;
use volumes_node::mounts::{Publication, Stale};

use super::access::tokens;
use super::plan::attributes::{Attributes, Identity};
use super::plan::inline;
use super::service::{NodeService, entries, path, required};
use super::status::{invalid, of_mount, of_publish};
use super::usage::{Usage, usage};

const EPHEMERAL: &str = "csi.storage.k8s.io/ephemeral";

impl NodeService {
    pub(super) async fn publish(
        &self,
        mut request: NodePublishVolumeRequest,
    ) -> Result<NodePublishVolumeResponse, Status> {
        let secrets = request.take_secrets();
        let usage = usage(request.volume_capability)?;
        let volume = request.volume_id;
        required("volume ID", &volume)?;
        let target = path("target path", &request.target_path)?;
        let entries = entries(request.volume_context);
        let is_inline = entries
            .iter()
            .any(|(key, value)| key.eq_ignore_ascii_case(EPHEMERAL) && value.eq_ignore_ascii_case("true"));
        let entries = if is_inline { inline::confined(&entries).map_err(invalid)? } else { entries };
        let mut attributes = Attributes::read(&volume, &entries, self.options.defaults).map_err(invalid)?;
        if is_inline {
            inline::check(&attributes).map_err(invalid)?;
            let _held = self.hold(&volume, &target)?;
            self.limit_inline(&mut attributes);
            if self.needs_nothing(&attributes, &target).await? {
                self.refresh(&attributes, &usage, &secrets, &target).await?;
                return Ok(NodePublishVolumeResponse {});
            }
            self.authorize(&attributes).await?;
            self.mount_volume(&volume, &attributes, &usage, &secrets, (&target, Stale::Kept)).await?;
            return Ok(NodePublishVolumeResponse {});
        }
        if attributes.needs_token() && tokens(&secrets, &attributes).is_some() {
            let _held = self.hold(&volume, &target)?;
            if self.needs_nothing(&attributes, &target).await? {
                self.refresh(&attributes, &usage, &secrets, &target).await?;
            } else {
                self.mount_volume(&volume, &attributes, &usage, &secrets, (&target, Stale::Kept)).await?;
            }
            return Ok(NodePublishVolumeResponse {});
        }
        let staging = path("staging target path", &request.staging_target_path)?;
        let publication = Publication {
            staging: self.mounts.resolved(&staging).await,
            target: self.mounts.resolved(&target).await,
            is_read_only: request.readonly,
            is_single_writer: usage.is_single_writer,
        };
        // Two pods must not both be the single one.
        let held = if usage.is_single_writer { &staging } else { &target };
        let _held = self.hold(&volume, held)?;
        if self.publish_confidential(&attributes, &staging, &target).await? {
            return Ok(NodePublishVolumeResponse {});
        }
        self.renew(&volume, &attributes, &usage, &secrets, &staging).await?;
        self.mounts.publish_folder(&publication, Stale::Kept).await.map_err(of_publish)?;
        Ok(NodePublishVolumeResponse {})
    }

    /// Whether a volume that is mounted for one pod is mounted, and its login does not end.
    async fn needs_nothing(&self, attributes: &Attributes, target: &Path) -> Result<bool, Status> {
        if attributes.identity == Some(Identity::WorkloadToken) {
            return Ok(false);
        }
        Ok(self.mounts.at(target).await.map_err(of_mount)?.is_some())
    }

    /// Renews the login of a staged mount: before it is looked at, because it does not answer with an old one.
    async fn renew(
        &self,
        volume: &str,
        attributes: &Attributes,
        usage: &Usage,
        secrets: &Secrets,
        staging: &Path,
    ) -> Result<(), Status> {
        if attributes.identity == Some(Identity::OauthToken) {
            let (access, share) =
                self.prepared(attributes, usage, secrets, super::access::Freshness::Lately).await?;
            return self.ticket(volume, attributes, &access, &share.host, secrets).await;
        }
        self.refresh(attributes, usage, secrets, staging).await
    }

    pub(super) async fn unpublish(
        &self,
        request: NodeUnpublishVolumeRequest,
    ) -> Result<NodeUnpublishVolumeResponse, Status> {
        required("volume ID", &request.volume_id)?;
        let target = path("target path", &request.target_path)?;
        let _held = self.hold(&request.volume_id, &target)?;
        self.mounts.release(&target).await.map_err(of_mount)?;
        self.forget_confidential(&target).await?;
        self.remembered.keep_used_key(&target, None);
        if ShareId::parse(&request.volume_id, Code::NotFound).is_err() {
            // An inline volume, which is never unstaged.
            self.remove_tokens(&request.volume_id).await;
        }
        Ok(NodeUnpublishVolumeResponse {})
    }
}
