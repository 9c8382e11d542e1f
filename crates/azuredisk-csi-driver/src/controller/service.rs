//! The calls of the interface, each passed to its room.

use csi::locks::Locks;
use csi::v1::controller_server::Controller;
use csi::v1::controller_service_capability::{Rpc, Type, rpc};
use csi::v1::{
    ControllerExpandVolumeRequest, ControllerExpandVolumeResponse, ControllerGetCapabilitiesRequest,
    ControllerGetCapabilitiesResponse, ControllerModifyVolumeRequest, ControllerModifyVolumeResponse,
    ControllerPublishVolumeRequest, ControllerPublishVolumeResponse, ControllerServiceCapability,
    ControllerUnpublishVolumeRequest, ControllerUnpublishVolumeResponse, CreateSnapshotRequest,
    CreateSnapshotResponse, CreateVolumeRequest, CreateVolumeResponse, DeleteSnapshotRequest,
    DeleteSnapshotResponse, DeleteVolumeRequest, DeleteVolumeResponse, ListSnapshotsRequest,
    ListSnapshotsResponse, ListVolumesRequest, ListVolumesResponse, ValidateVolumeCapabilitiesRequest,
    ValidateVolumeCapabilitiesResponse,
};
use telemetry::metrics::MachineDiskMetrics;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::attach::Attachments;
use super::azure::Azure;
use super::kubernetes::KubernetesView;
use super::limits;
use super::options::ControllerOptions;
use super::snapshots::Snapshots;
use super::volumes::Volumes;

/// The service Controller of the driver.
pub struct DiskController {
    volumes: Volumes,
    snapshots: Snapshots,
    attachments: Attachments,
    options: ControllerOptions,
}

impl DiskController {
    /// A controller; its writers end when `stop` is cancelled.
    pub fn new(
        azure: Azure,
        view: KubernetesView,
        options: ControllerOptions,
        metrics: MachineDiskMetrics,
        stop: CancellationToken,
    ) -> Self {
        if view.is_connected() {
            let publishing = limits::publish(azure.clone(), view.clone());
            let stop = stop.clone();
            tokio::spawn(async move { stop.run_until_cancelled(publishing).await });
        }
        Self {
            volumes: Volumes {
                azure: azure.clone(),
                view: view.clone(),
                options: options.clone(),
                locks: Locks::default(),
            },
            snapshots: Snapshots { azure: azure.clone(), options: options.clone(), locks: Locks::default() },
            attachments: Attachments::new(azure, view, options.clone(), metrics, stop),
            options,
        }
    }

    /// What the controller can do (section 3.1 of the specification of the drivers). Either flag enables both lists, as the established
    /// driver's users expect.
    fn capabilities(&self) -> Vec<rpc::Type> {
        use rpc::Type as Can;
        let mut all = vec![
            Can::CreateDeleteVolume,
            Can::PublishUnpublishVolume,
            Can::CreateDeleteSnapshot,
            Can::CloneVolume,
            Can::ExpandVolume,
            Can::SingleNodeMultiWriter,
            Can::ModifyVolume,
        ];
        if self.options.lists_volumes {
            all.extend([Can::ListVolumes, Can::ListVolumesPublishedNodes]);
        }
        if self.options.lists_volumes || self.options.lists_snapshots {
            all.push(Can::ListSnapshots);
        }
        all
    }
}

#[tonic::async_trait]
impl Controller for DiskController {
    async fn create_volume(
        &self,
        request: Request<CreateVolumeRequest>,
    ) -> Result<Response<CreateVolumeResponse>, Status> {
        self.volumes.create(request.into_inner()).await.map(Response::new)
    }

    async fn delete_volume(
        &self,
        request: Request<DeleteVolumeRequest>,
    ) -> Result<Response<DeleteVolumeResponse>, Status> {
        self.volumes.delete(request.into_inner()).await.map(Response::new)
    }

    async fn controller_publish_volume(
        &self,
        request: Request<ControllerPublishVolumeRequest>,
    ) -> Result<Response<ControllerPublishVolumeResponse>, Status> {
        self.attachments.publish(request.into_inner()).await.map(Response::new)
    }

    async fn controller_unpublish_volume(
        &self,
        request: Request<ControllerUnpublishVolumeRequest>,
    ) -> Result<Response<ControllerUnpublishVolumeResponse>, Status> {
        self.attachments.unpublish(request.into_inner()).await.map(Response::new)
    }

    async fn validate_volume_capabilities(
        &self,
        request: Request<ValidateVolumeCapabilitiesRequest>,
    ) -> Result<Response<ValidateVolumeCapabilitiesResponse>, Status> {
        self.volumes.validate(request.into_inner()).await.map(Response::new)
    }

    async fn list_volumes(
        &self,
        request: Request<ListVolumesRequest>,
    ) -> Result<Response<ListVolumesResponse>, Status> {
        self.volumes.list(request.into_inner()).await.map(Response::new)
    }

    async fn controller_get_capabilities(
        &self,
        _: Request<ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<ControllerGetCapabilitiesResponse>, Status> {
        let capability = |can: rpc::Type| ControllerServiceCapability {
            r#type: Some(Type::Rpc(Rpc { r#type: can.into() })),
        };
        let capabilities = self.capabilities().into_iter().map(capability).collect();
        Ok(Response::new(ControllerGetCapabilitiesResponse { capabilities }))
    }

    async fn create_snapshot(
        &self,
        request: Request<CreateSnapshotRequest>,
    ) -> Result<Response<CreateSnapshotResponse>, Status> {
        self.snapshots.create(request.into_inner()).await.map(Response::new)
    }

    async fn delete_snapshot(
        &self,
        request: Request<DeleteSnapshotRequest>,
    ) -> Result<Response<DeleteSnapshotResponse>, Status> {
        self.snapshots.delete(request.into_inner()).await.map(Response::new)
    }

    async fn list_snapshots(
        &self,
        request: Request<ListSnapshotsRequest>,
    ) -> Result<Response<ListSnapshotsResponse>, Status> {
        self.snapshots.list(request.into_inner()).await.map(Response::new)
    }

    async fn controller_expand_volume(
        &self,
        request: Request<ControllerExpandVolumeRequest>,
    ) -> Result<Response<ControllerExpandVolumeResponse>, Status> {
        self.volumes.expand(request.into_inner()).await.map(Response::new)
    }

    async fn controller_modify_volume(
        &self,
        request: Request<ControllerModifyVolumeRequest>,
    ) -> Result<Response<ControllerModifyVolumeResponse>, Status> {
        self.volumes.modify(request.into_inner()).await.map(Response::new)
    }
}
