//! The service.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use csi::detached::detached;
use csi::locks::{Held, Locks};
use csi::v1::node_server::Node;
use csi::v1::node_service_capability::rpc;
use csi::v1::node_service_capability::{Rpc, Type};
use csi::v1::{
    NodeGetCapabilitiesRequest, NodeGetCapabilitiesResponse, NodeGetInfoRequest, NodeGetInfoResponse,
    NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse, NodePublishVolumeRequest,
    NodePublishVolumeResponse, NodeServiceCapability, NodeStageVolumeRequest, NodeStageVolumeResponse,
    NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse, NodeUnstageVolumeRequest,
    NodeUnstageVolumeResponse,
};
use tonic::{Request, Response, Status};
use volumes_node::filesystems::{FileSystems, FormatLimits};
use volumes_node::mounts::Mounts;
use volumes_node::system::System;

use super::options::NodeOptions;
use super::outside::Outside;
use super::plan::attributes::Entries;
use super::remembered::Remembered;

/// How many disks in shares are formatted at once.
const FORMATS: usize = 2;

/// The service Node. Clones share their locks and what they remember.
#[derive(Debug, Clone)]
pub struct NodeService {
    pub(super) options: Arc<NodeOptions>,
    pub(super) system: Arc<dyn System>,
    pub(super) mounts: Mounts,
    pub(super) file_systems: FileSystems,
    pub(super) outside: Outside,
    pub(super) remembered: Arc<Remembered>,
    locks: Locks,
}

impl NodeService {
    /// The service on this system.
    pub fn new(options: NodeOptions, system: Arc<dyn System>, outside: Outside) -> Self {
        let limits = FormatLimits::new(FORMATS, std::time::Duration::from_secs(300));
        Self {
            options: Arc::new(options),
            mounts: Mounts::new(Arc::clone(&system)),
            file_systems: FileSystems::new(Arc::clone(&system), limits),
            system,
            outside,
            remembered: Arc::default(),
            locks: Locks::default(),
        }
    }

    /// Holds a volume at a path (section 2.4).
    pub(super) fn hold(&self, volume: &str, path: &Path) -> Result<Held, Status> {
        Ok(self.locks.hold(&format!("{volume}-{}", path.display()))?)
    }

    /// What the service can do (section 4.1).
    fn capabilities(&self) -> Vec<rpc::Type> {
        let optional = [
            (self.options.has_mount_group, rpc::Type::VolumeMountGroup),
            (self.options.has_statistics, rpc::Type::GetVolumeStats),
        ];
        let optional = optional.into_iter().filter(|(has, _)| *has).map(|(_, kind)| kind);
        [rpc::Type::StageUnstageVolume, rpc::Type::SingleNodeMultiWriter]
            .into_iter()
            .chain(optional)
            .collect()
    }
}

/// A member of a request that must not be empty.
pub(super) fn required(what: &'static str, text: &str) -> Result<(), Status> {
    if text.is_empty() {
        Err(Status::invalid_argument(format!("{what} is missing in the request")))
    } else {
        Ok(())
    }
}

/// A path in a request, which must not be empty.
pub(super) fn path(what: &'static str, text: &str) -> Result<PathBuf, Status> {
    required(what, text)?;
    Ok(PathBuf::from(text))
}

pub(super) fn entries(map: HashMap<String, String>) -> Entries {
    map.into_iter().collect()
}

#[tonic::async_trait]
impl Node for NodeService {
    async fn node_stage_volume(
        &self,
        request: Request<NodeStageVolumeRequest>,
    ) -> Result<Response<NodeStageVolumeResponse>, Status> {
        let (service, request) = (self.clone(), request.into_inner());
        detached(async move { service.stage(request).await }).await
    }

    async fn node_unstage_volume(
        &self,
        request: Request<NodeUnstageVolumeRequest>,
    ) -> Result<Response<NodeUnstageVolumeResponse>, Status> {
        let (service, request) = (self.clone(), request.into_inner());
        detached(async move { service.unstage(request).await }).await
    }

    async fn node_publish_volume(
        &self,
        request: Request<NodePublishVolumeRequest>,
    ) -> Result<Response<NodePublishVolumeResponse>, Status> {
        let (service, request) = (self.clone(), request.into_inner());
        detached(async move { service.publish(request).await }).await
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<NodeUnpublishVolumeRequest>,
    ) -> Result<Response<NodeUnpublishVolumeResponse>, Status> {
        let (service, request) = (self.clone(), request.into_inner());
        detached(async move { service.unpublish(request).await }).await
    }

    async fn node_get_volume_stats(
        &self,
        request: Request<NodeGetVolumeStatsRequest>,
    ) -> Result<Response<NodeGetVolumeStatsResponse>, Status> {
        self.statistics(&request.into_inner()).await.map(Response::new)
    }

    async fn node_get_capabilities(
        &self,
        _: Request<NodeGetCapabilitiesRequest>,
    ) -> Result<Response<NodeGetCapabilitiesResponse>, Status> {
        let capability =
            |own: rpc::Type| NodeServiceCapability { r#type: Some(Type::Rpc(Rpc { r#type: own.into() })) };
        let capabilities = self.capabilities().into_iter().map(capability).collect();
        Ok(Response::new(NodeGetCapabilitiesResponse { capabilities }))
    }

    async fn node_get_info(
        &self,
        _: Request<NodeGetInfoRequest>,
    ) -> Result<Response<NodeGetInfoResponse>, Status> {
        if self.options.node_id.is_empty() {
            return Err(Status::unavailable("this process serves no node; set --nodeid to the node's name"));
        }
        Ok(Response::new(NodeGetInfoResponse { node_id: self.options.node_id.clone(), ..Default::default() }))
    }
}
