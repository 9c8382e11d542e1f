//! A cluster with machines of all kinds, and drivers for it.

use std::collections::HashMap;
use std::time::Duration;

use arm::{Credential, Transport};
use azure_simulator::{Azure, LatencyProfile, Options};
use azure_types::ResourceId;
use azuredisk_csi_driver::controller::{
    Azure as AzureOfDriver, Connection, ControllerOptions, DiskController, KubernetesView,
};
use csi::v1::controller_server::Controller as _;
use csi::v1::volume_capability::access_mode::Mode;
use csi::v1::volume_capability::{AccessMode, AccessType, MountVolume};
use csi::v1::{
    CapacityRange, ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest, CreateVolumeRequest,
    DeleteVolumeRequest, Volume, VolumeCapability,
};
use kube::Client;
use kube::api::{Patch, PatchParams};
use kubernetes_simulator::Kubernetes;
use serde_json::{Value, json};
use simulated_cluster::{NodePool, Shape, StandaloneMachine};
use telemetry::metrics::{MachineDiskMetrics, Metrics};
use testkit::KillSwitch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Request, Status};
use volume_planner::ClusterPlace;

pub const GIB: i64 = 1 << 30;
pub const DRIVER: &str = "disk.csi.azure.com";

/// A token of the driver's identity; its signature is not checked here.
const TOKEN: &str = "eyJhbGciOiJub25lIn0.eyJvaWQiOiIwYjFlYzcwMC0wMDAwLTQwMDAtODAwMC0wMDAwMDAwMDAwMDQiLCJhcHBpZCI6ImMxMWU0NzAwLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMyJ9.";

/// How long operations on machines take, and on disks.
pub const MACHINE: Duration = Duration::from_secs(20);
pub const DISK: Duration = Duration::from_secs(3);

pub struct World {
    pub azure: Azure,
    pub kubernetes: Kubernetes,
    pub client: Client,
    pub shape: Shape,
}

/// A driver's controller, as one start of the program has it.
pub struct Driver {
    pub controller: DiskController,
    _stops: DropGuard,
}

impl World {
    /// Two machines of each kind, in no zone, as nodes of a cluster. Machines and disks change as slowly as Azure's.
    pub fn new() -> Self {
        Self::with(Options {
            latency: LatencyProfile::instant()
                .with("*", "*/virtualMachines", MACHINE)
                .with("*", "*/disks", DISK),
            ..Options::default()
        })
    }

    pub fn with(options: Options) -> Self {
        let mut uniform = NodePool::new("uniform", "uniform", 2);
        uniform.size = "Standard_D4s_v3".to_owned();
        let mut flexible = NodePool::new("flexible", "flexible", 2).flexible();
        flexible.size = "Standard_D4s_v3".to_owned();
        let alone = ["alone0", "alone1"].map(|name| StandaloneMachine::new(name).of_size("Standard_D4s_v3"));
        Self::of(
            Shape {
                zones: Vec::new(),
                pools: vec![uniform, flexible],
                machines: alone.to_vec(),
                ..Shape::default()
            },
            options,
        )
    }

    pub fn of(shape: Shape, options: Options) -> Self {
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
        let world = Self { azure, kubernetes, client, shape };
        for (name, machine) in world.machines() {
            world.node(&name, &machine, "True");
        }
        world
    }

    /// The machines with the names of their nodes.
    pub fn machines(&self) -> Vec<(String, ResourceId)> {
        let kinds = ["virtualMachines", "virtualMachineScaleSets/virtualMachines"];
        let documents =
            kinds.iter().flat_map(|kind| self.azure.documents_of_type(&format!("Microsoft.Compute/{kind}")));
        let named = documents.map(|document| {
            let name = document["properties"]["osProfile"]["computerName"].as_str().unwrap().to_lowercase();
            (name, ResourceId::parse(document["id"].as_str().unwrap()).unwrap())
        });
        let mut named: Vec<_> = named.collect();
        named.sort();
        named
    }

    /// The machine of a node.
    pub fn machine(&self, node: &str) -> ResourceId {
        self.machines().into_iter().find(|(name, _)| name == node).unwrap().1
    }

    /// Creates a node, or changes its readiness.
    pub fn node(&self, name: &str, machine: &ResourceId, ready: &str) {
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
            "spec": { "providerID": format!("azure://{machine}") },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        });
        if self.kubernetes.get("Node", "", name).is_some() {
            self.kubernetes.delete("Node", "", name).unwrap();
        }
        self.kubernetes.create(node).unwrap();
    }

    /// The list of a machine: names with LUNs.
    pub fn listed(&self, machine: &ResourceId) -> Vec<(String, u64)> {
        let document = self.azure.document(machine).unwrap();
        let list =
            document["properties"]["storageProfile"]["dataDisks"].as_array().cloned().unwrap_or_default();
        let entry = |entry: &Value| {
            let id = entry["managedDisk"]["id"].as_str().unwrap();
            (id.rsplit('/').next().unwrap().to_owned(), entry["lun"].as_u64().unwrap())
        };
        list.iter().map(entry).collect()
    }

    /// Writes of machines' lists so far.
    pub fn machine_writes(&self) -> usize {
        let entries = self.azure.journal().entries;
        entries
            .iter()
            .filter(|entry| entry.method == "PUT" && entry.path.contains("/virtualMachines/"))
            .count()
    }

    pub fn writes(&self) -> u64 {
        let counts = self.azure.journal().counts;
        counts.writes + counts.deletes
    }

    /// A PersistentVolume of a disk.
    pub fn persistent_volume(&self, name: &str, id: &str) {
        let volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name },
            "spec": { "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
                "csi": { "driver": DRIVER, "volumeHandle": id } },
        });
        self.kubernetes.create(volume).unwrap();
    }

    /// Sets an annotation of the driver on an object without a namespace.
    pub async fn annotate(&self, kind: &str, name: &str, key: &str, value: &str) {
        let patch = json!({ "metadata": { "annotations": { format!("{DRIVER}/{key}"): value } } });
        let plural = format!("{}s", kind.to_lowercase());
        let resource = kube::core::ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural,
        };
        let api = kube::Api::<kube::core::DynamicObject>::all_with(self.client.clone(), &resource);
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// A VolumeAttachment of a volume for a node, with the name that the attach-detach controller gives it.
    pub async fn attachment(&self, name: &str, node: &str, volume: &str, lun: Option<u32>) {
        let attachment = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": { "name": name },
            "spec": { "attacher": DRIVER, "nodeName": node, "source": { "persistentVolumeName": volume } },
        });
        self.kubernetes.create(attachment).unwrap();
        let Some(lun) = lun else { return };
        let status =
            json!({ "status": { "attached": true, "attachmentMetadata": { "LUN": lun.to_string() } } });
        let api = kube::Api::<k8s::VolumeAttachment>::all(self.client.clone());
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    pub fn driver(&self) -> Driver {
        self.driver_with(
            &KillSwitch::never(),
            ControllerOptions { lists_volumes: true, ..ControllerOptions::default() },
        )
    }

    /// A driver without any state. It is dead once it is dropped, or once the switch has cut it off.
    pub fn driver_with(&self, switch: &KillSwitch, options: ControllerOptions) -> Driver {
        let stop = CancellationToken::new();
        let view = KubernetesView::watch(&self.client, DRIVER, &stop);
        self.driver_of(switch.transport(&self.azure), view, options, stop)
    }

    /// A driver that knows no Kubernetes.
    pub fn driver_alone(&self) -> Driver {
        let options = ControllerOptions { lists_volumes: true, ..ControllerOptions::default() };
        let transport = KillSwitch::never().transport(&self.azure);
        self.driver_of(transport, KubernetesView::none(), options, CancellationToken::new())
    }

    pub fn driver_of(
        &self,
        transport: Transport,
        view: KubernetesView,
        options: ControllerOptions,
        stop: CancellationToken,
    ) -> Driver {
        let cloud = arm::Cloud::built_in(&cloud_config::PUBLIC).unwrap();
        let client = arm::Client::builder(cloud, transport, Credential::fixed(TOKEN)).build();
        let place = ClusterPlace {
            subscription: self.shape.subscription.clone(),
            group: self.shape.resource_group.clone(),
            location: self.shape.region.clone(),
            is_stack: false,
        };
        let azure = AzureOfDriver::new(Some(Connection { client, place }));
        Driver {
            controller: DiskController::new(
                azure,
                view,
                options,
                MachineDiskMetrics::of(&Metrics::default()),
                stop.clone(),
            ),
            _stops: stop.drop_guard(),
        }
    }
}

/// One node writes a file system.
pub fn capability() -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode { mode: Mode::SingleNodeWriter.into() }),
        access_type: Some(AccessType::Mount(MountVolume::default())),
    }
}

pub fn parameters(entries: &[(&str, &str)]) -> HashMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A request for a volume of so many GiB.
pub fn create(name: &str, gib: i64) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: name.to_owned(),
        capacity_range: Some(CapacityRange { required_bytes: gib * GIB, limit_bytes: 0 }),
        volume_capabilities: vec![capability()],
        ..CreateVolumeRequest::default()
    }
}

impl Driver {
    pub async fn create(&self, request: CreateVolumeRequest) -> Result<Volume, Status> {
        let answer = self.controller.create_volume(Request::new(request)).await?;
        Ok(answer.into_inner().volume.unwrap())
    }

    /// The ID of a new volume of 8 GiB.
    pub async fn volume(&self, name: &str) -> String {
        self.create(create(name, 8)).await.unwrap().volume_id
    }

    pub async fn delete(&self, id: &str) -> Result<(), Status> {
        let request = DeleteVolumeRequest { volume_id: id.to_owned(), ..DeleteVolumeRequest::default() };
        self.controller.delete_volume(Request::new(request)).await.map(drop)
    }

    /// Attaches a volume; answers its LUN.
    pub async fn publish(&self, id: &str, node: &str) -> Result<u32, Status> {
        let request = ControllerPublishVolumeRequest {
            volume_id: id.to_owned(),
            node_id: node.to_owned(),
            volume_capability: Some(capability()),
            volume_context: parameters(&[("requestedsizegib", "8")]),
            ..ControllerPublishVolumeRequest::default()
        };
        let answer = self.controller.controller_publish_volume(Request::new(request)).await?;
        Ok(answer.into_inner().publish_context["LUN"].parse().unwrap())
    }

    pub async fn unpublish(&self, id: &str, node: &str) -> Result<(), Status> {
        let request = ControllerUnpublishVolumeRequest {
            volume_id: id.to_owned(),
            node_id: node.to_owned(),
            ..ControllerUnpublishVolumeRequest::default()
        };
        self.controller.controller_unpublish_volume(Request::new(request)).await.map(drop)
    }
}
