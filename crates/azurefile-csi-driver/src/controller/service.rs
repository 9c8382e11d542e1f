//! The calls of the interface, each passed to its room.

use csi::locks::Locks;
use csi::v1::controller_server::Controller;
use csi::v1::controller_service_capability::{Rpc, Type, rpc};
use csi::v1::{
    ControllerExpandVolumeRequest, ControllerExpandVolumeResponse, ControllerGetCapabilitiesRequest,
    ControllerGetCapabilitiesResponse, ControllerModifyVolumeRequest, ControllerModifyVolumeResponse,
    ControllerServiceCapability, CreateSnapshotRequest, CreateSnapshotResponse, CreateVolumeRequest,
    CreateVolumeResponse, DeleteSnapshotRequest, DeleteSnapshotResponse, DeleteVolumeRequest,
    DeleteVolumeResponse, ValidateVolumeCapabilitiesRequest, ValidateVolumeCapabilitiesResponse,
};
use tonic::{Request, Response, Status};

use super::accounts::Accounts;
use super::azure::Azure;
use super::options::ControllerOptions;
use super::secrets::Secrets;
use super::snapshots::Snapshots;
use super::volumes::Volumes;

/// What the controller can do (section 4.1 of the specification of the drivers). Copies are not among it yet.
const CAPABILITIES: [rpc::Type; 5] = [
    rpc::Type::CreateDeleteVolume,
    rpc::Type::CreateDeleteSnapshot,
    rpc::Type::ExpandVolume,
    rpc::Type::SingleNodeMultiWriter,
    rpc::Type::ModifyVolume,
];

/// The service Controller of the driver.
pub struct ShareController {
    volumes: Volumes,
    snapshots: Snapshots,
}

impl ShareController {
    /// A controller of shares in this Azure.
    pub fn new(azure: Azure, secrets: Secrets, options: ControllerOptions) -> Self {
        Self {
            volumes: Volumes {
                azure: azure.clone(),
                accounts: Accounts::new(azure.clone()),
                secrets,
                options,
                locks: Locks::default(),
            },
            snapshots: Snapshots { azure, locks: Locks::default() },
        }
    }
}

#[tonic::async_trait]
impl Controller for ShareController {
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

    async fn validate_volume_capabilities(
        &self,
        request: Request<ValidateVolumeCapabilitiesRequest>,
    ) -> Result<Response<ValidateVolumeCapabilitiesResponse>, Status> {
        self.volumes.validate(request.into_inner()).await.map(Response::new)
    }

    async fn controller_get_capabilities(
        &self,
        _: Request<ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<ControllerGetCapabilitiesResponse>, Status> {
        let capability = |can: rpc::Type| ControllerServiceCapability {
            r#type: Some(Type::Rpc(Rpc { r#type: can.into() })),
        };
        let capabilities = CAPABILITIES.into_iter().map(capability).collect();
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
