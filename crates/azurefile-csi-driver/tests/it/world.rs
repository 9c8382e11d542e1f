//! A cluster without machines, and drivers for it.

use std::collections::HashMap;

use arm::Credential;
use azure_simulator::{Azure, Options};
use azure_types::ResourceId;
use azurefile_csi_driver::controller::{
    Azure as AzureOfDriver, Connection, ControllerOptions, Secrets, ShareController,
};
use csi::v1::controller_server::Controller as _;
use csi::v1::volume_capability::access_mode::Mode;
use csi::v1::volume_capability::{AccessMode, AccessType, MountVolume};
use csi::v1::{
    CapacityRange, ControllerExpandVolumeRequest, ControllerModifyVolumeRequest, CreateSnapshotRequest,
    CreateVolumeRequest, DeleteSnapshotRequest, DeleteVolumeRequest, Snapshot, Volume, VolumeCapability,
};
use kube::Client;
use kubernetes_simulator::Kubernetes;
use serde_json::Value;
use simulated_cluster::Shape;
use testkit::KillSwitch;
use tonic::{Request, Status};
use volume_planner::ClusterPlace;

pub const GIB: i64 = 1 << 30;
pub const DRIVER: &str = "file.csi.azure.com";
pub const ACCOUNTS: &str = "Microsoft.Storage/storageAccounts";
pub const SHARES: &str = "Microsoft.Storage/storageAccounts/fileServices/shares";

/// A token of the driver's identity; its signature is not checked here.
const TOKEN: &str = "eyJhbGciOiJub25lIn0.eyJvaWQiOiIwYjFlYzcwMC0wMDAwLTQwMDAtODAwMC0wMDAwMDAwMDAwMDQiLCJhcHBpZCI6ImMxMWU0NzAwLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMyJ9.";

pub struct World {
    pub azure: Azure,
    pub kubernetes: Kubernetes,
    pub client: Client,
    pub shape: Shape,
}

/// A driver's controller, as one start of the program has it. It is dead once it is dropped.
pub struct Driver {
    pub controller: ShareController,
}

impl World {
    pub fn new() -> Self {
        Self::with(Options::default())
    }

    pub fn with(options: Options) -> Self {
        let shape = Shape { zones: Vec::new(), ..Shape::default() };
        let kubernetes = Kubernetes::new(kubernetes_simulator::Options::default());
        let azure = Azure::new(Options {
            subscription: shape.subscription.clone(),
            tenant: shape.tenant.clone(),
            region: shape.region.clone(),
            start: kubernetes.now(),
            ..options
        });
        shape.lay_out(&azure).unwrap();
        let client = Client::new(kubernetes.router(), "default");
        Self { azure, kubernetes, client, shape }
    }

    pub fn group(&self) -> ResourceId {
        ResourceId::group(&self.shape.subscription, &self.shape.resource_group)
    }

    pub fn accounts(&self) -> Vec<Value> {
        self.azure.documents_of_type(ACCOUNTS)
    }

    pub fn shares(&self) -> Vec<Value> {
        self.azure.documents_of_type(SHARES)
    }

    /// Calls so far whose line has all of these parts.
    pub fn calls(&self, method: &str, part: &str) -> usize {
        let entries = self.azure.journal().entries;
        entries.iter().filter(|entry| entry.method == method && entry.path.contains(part)).count()
    }

    pub fn driver(&self) -> Driver {
        self.driver_with(&KillSwitch::never(), self.client.clone())
    }

    /// A client of Azure.
    pub fn arm(&self, switch: &KillSwitch) -> arm::Client {
        let cloud = arm::Cloud::built_in(&cloud_config::PUBLIC).unwrap();
        arm::Client::builder(cloud, switch.transport(&self.azure), Credential::fixed(TOKEN)).build()
    }

    /// A driver without any state, in the Kubernetes of this client. It is dead once the switch has cut it off.
    pub fn driver_with(&self, switch: &KillSwitch, kubernetes: Client) -> Driver {
        let client = self.arm(switch);
        let place = ClusterPlace {
            subscription: self.shape.subscription.clone(),
            group: self.shape.resource_group.clone(),
            location: self.shape.region.clone(),
            is_stack: false,
        };
        let azure = AzureOfDriver::new(Some(Connection { client, place }));
        let secrets = Secrets::new(Some(kubernetes), DRIVER);
        Driver { controller: ShareController::new(azure, secrets, ControllerOptions::default()) }
    }
}

/// Nodes write a file system.
pub fn capability() -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode { mode: Mode::MultiNodeMultiWriter.into() }),
        access_type: Some(AccessType::Mount(MountVolume::default())),
    }
}

pub fn parameters(entries: &[(&str, &str)]) -> HashMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A request for a volume of so many GiB of a class.
pub fn create(name: &str, gib: i64, class: &[(&str, &str)]) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: name.to_owned(),
        capacity_range: Some(CapacityRange { required_bytes: gib * GIB, limit_bytes: 0 }),
        volume_capabilities: vec![capability()],
        parameters: parameters(class),
        ..CreateVolumeRequest::default()
    }
}

impl Driver {
    pub async fn create(&self, request: CreateVolumeRequest) -> Result<Volume, Status> {
        let answer = self.controller.create_volume(Request::new(request)).await?;
        Ok(answer.into_inner().volume.unwrap())
    }

    /// The same until the driver does not ask for another try.
    pub async fn create_at_last(&self, request: CreateVolumeRequest) -> Result<Volume, Status> {
        loop {
            match self.create(request.clone()).await {
                Err(status) if status.code() == tonic::Code::Aborted => {
                    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
                }
                other => return other,
            }
        }
    }

    /// The ID of a new volume of 8 GiB whose account's key is stored nowhere.
    pub async fn volume(&self, name: &str) -> String {
        self.create(create(name, 8, &[("storeAccountKey", "false")])).await.unwrap().volume_id
    }

    pub async fn delete(&self, id: &str) -> Result<(), Status> {
        let request = DeleteVolumeRequest { volume_id: id.to_owned(), ..DeleteVolumeRequest::default() };
        self.controller.delete_volume(Request::new(request)).await.map(drop)
    }

    pub async fn expand(&self, id: &str, gib: i64) -> Result<i64, Status> {
        let request = ControllerExpandVolumeRequest {
            volume_id: id.to_owned(),
            capacity_range: Some(CapacityRange { required_bytes: gib * GIB, limit_bytes: 0 }),
            ..ControllerExpandVolumeRequest::default()
        };
        let answer = self.controller.controller_expand_volume(Request::new(request)).await?.into_inner();
        assert!(!answer.node_expansion_required);
        Ok(answer.capacity_bytes / GIB)
    }

    pub async fn modify(&self, id: &str, changes: &[(&str, &str)]) -> Result<(), Status> {
        let request = ControllerModifyVolumeRequest {
            volume_id: id.to_owned(),
            mutable_parameters: parameters(changes),
            ..ControllerModifyVolumeRequest::default()
        };
        self.controller.controller_modify_volume(Request::new(request)).await.map(drop)
    }

    pub async fn snapshot(&self, name: &str, volume: &str) -> Result<Snapshot, Status> {
        let request = CreateSnapshotRequest {
            name: name.to_owned(),
            source_volume_id: volume.to_owned(),
            ..CreateSnapshotRequest::default()
        };
        let answer = self.controller.create_snapshot(Request::new(request)).await?;
        Ok(answer.into_inner().snapshot.unwrap())
    }

    pub async fn delete_snapshot(&self, id: &str) -> Result<(), Status> {
        let request =
            DeleteSnapshotRequest { snapshot_id: id.to_owned(), ..DeleteSnapshotRequest::default() };
        self.controller.delete_snapshot(Request::new(request)).await.map(drop)
    }
}
