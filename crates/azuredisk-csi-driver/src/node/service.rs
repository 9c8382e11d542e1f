//! The service.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use csi::detached::detached;
use csi::locks::{Held, Locks};
use csi::status::refused;
use csi::v1::node_server::Node;
use csi::v1::node_service_capability::rpc;
use csi::v1::node_service_capability::{Rpc, Type};
use csi::v1::{
    NodeExpandVolumeRequest, NodeExpandVolumeResponse, NodeGetCapabilitiesRequest,
    NodeGetCapabilitiesResponse, NodeGetInfoRequest, NodeGetInfoResponse, NodeGetVolumeStatsRequest,
    NodeGetVolumeStatsResponse, NodePublishVolumeRequest, NodePublishVolumeResponse, NodeServiceCapability,
    NodeStageVolumeRequest, NodeStageVolumeResponse, NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse,
    NodeUnstageVolumeRequest, NodeUnstageVolumeResponse,
};
use tokio::time::Instant;
use tonic::{Request, Response, Status};
use volume_planner::Refusal;
use volume_planner::disk::publish_context::LUN;
use volume_planner::parameters::given::Entries;
use volumes_node::devices::{Device, Devices, Lun, Partition};
use volumes_node::filesystems::{FileSystems, FormatLimits};
use volumes_node::mounts::{MountEntry, Mounts};
use volumes_node::system::System;

use super::machine::FactSource;
use super::options::NodeOptions;
use super::{deadline, status};

/// What the service can do (section 3.1 of the specification of the drivers).
const CAPABILITIES: [rpc::Type; 4] = [
    rpc::Type::StageUnstageVolume,
    rpc::Type::ExpandVolume,
    rpc::Type::GetVolumeStats,
    rpc::Type::SingleNodeMultiWriter,
];

/// The service Node. Clones share their locks.
#[derive(Clone)]
pub struct NodeService {
    pub(super) options: Arc<NodeOptions>,
    pub(super) devices: Devices,
    pub(super) file_systems: FileSystems,
    pub(super) mounts: Mounts,
    locks: Locks,
    /// Instance metadata.
    pub(super) metadata: Option<Arc<dyn FactSource>>,
    /// The machine's Node.
    pub(super) node: Option<Arc<dyn FactSource>>,
}

impl NodeService {
    /// The service on this system. Facts about the machine come from `metadata` (instance metadata) and from `node` (the
    /// machine's Node); either may be absent.
    pub fn new(
        options: NodeOptions,
        system: Arc<dyn System>,
        metadata: Option<Arc<dyn FactSource>>,
        node: Option<Arc<dyn FactSource>>,
    ) -> Self {
        let limits = FormatLimits::new(options.max_concurrent_format, options.concurrent_format_timeout);
        Self {
            devices: Devices::new(Arc::clone(&system), options.device_root.clone()),
            file_systems: FileSystems::new(Arc::clone(&system), limits),
            mounts: Mounts::new(system),
            options: Arc::new(options),
            locks: Locks::default(),
            metadata,
            node,
        }
    }

    /// Holds a volume, of which the request must give the ID.
    pub(super) fn hold(&self, volume: &str) -> Result<Held, Status> {
        required("volume ID", volume)?;
        Ok(self.locks.hold(volume)?)
    }

    /// The device of an attached volume, with its link of udev.
    pub(super) async fn device(
        &self,
        publish_context: &HashMap<String, String>,
        partition: Option<Partition>,
        deadline: Instant,
    ) -> Result<Device, Status> {
        let lun = lun(publish_context)?;
        self.devices.find(lun, partition, deadline).await.map_err(status::of_device)
    }

    /// Whether a mount is one of this device. File systems such as Btrfs have numbers that are not their device's, so the source
    /// of the mount is compared.
    pub(super) async fn is_of(&self, entry: &MountEntry, device: &Device) -> bool {
        self.devices.at(&entry.source).await.is_ok_and(|mounted| mounted.node == device.node)
    }
}

/// The LUN that the controller gave.
fn lun(publish_context: &HashMap<String, String>) -> Result<Lun, Status> {
    let missing = || refused(&Refusal::Missing("LUN in the publish context"));
    let text = publish_context.get(LUN).ok_or_else(missing)?;
    text.parse()
        .map_err(|error: volumes_node::devices::InvalidLun| Status::invalid_argument(error.to_string()))
}

/// A member of a request that must not be empty.
pub(super) fn required(what: &'static str, text: &str) -> Result<(), Status> {
    if text.is_empty() { Err(refused(&Refusal::Missing(what))) } else { Ok(()) }
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
        let deadline = deadline::of(request.metadata());
        let (service, request) = (self.clone(), request.into_inner());
        detached(async move { service.stage(request, deadline).await }).await
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
        let deadline = deadline::of(request.metadata());
        let (service, request) = (self.clone(), request.into_inner());
        detached(async move { service.publish(request, deadline).await }).await
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<NodeUnpublishVolumeRequest>,
    ) -> Result<Response<NodeUnpublishVolumeResponse>, Status> {
        let (service, request) = (self.clone(), request.into_inner());
        detached(async move { service.unpublish(request).await }).await
    }

    async fn node_expand_volume(
        &self,
        request: Request<NodeExpandVolumeRequest>,
    ) -> Result<Response<NodeExpandVolumeResponse>, Status> {
        let deadline = deadline::of(request.metadata());
        let (service, request) = (self.clone(), request.into_inner());
        detached(async move { service.expand(request, deadline).await }).await
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
        let capabilities = CAPABILITIES.map(capability).to_vec();
        Ok(Response::new(NodeGetCapabilitiesResponse { capabilities }))
    }

    async fn node_get_info(
        &self,
        _: Request<NodeGetInfoRequest>,
    ) -> Result<Response<NodeGetInfoResponse>, Status> {
        self.info().await.map(Response::new)
    }
}
