//! Two machines, and disks that move between them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use azure_simulator::{Azure, Options as AzureOptions, PowerState};
use azure_types::ResourceId;
use machine_disks::{Devices, MachineDisks, Options};
use serde_json::{Value, json};
use simulated_cluster::{NodePool, Shape, StandaloneMachine, running_host};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A simulated Azure, with its machines' disks as devices.
pub struct World {
    pub azure: Azure,
    pub shape: Shape,
    pub disks: Option<MachineDisks>,
    pub folder: TempDir,
    pub stop: CancellationToken,
}

/// The first machine, the second one, and one whose size has NVMe.
pub const MACHINES: [&str; 3] = ["first", "second", "third"];

impl World {
    pub async fn start(devices: Devices, delay: Duration) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), devices, delay).await
    }

    pub async fn start_in(folder: TempDir, devices: Devices, delay: Duration) -> Self {
        let mut machines: Vec<_> =
            MACHINES.iter().map(|name| StandaloneMachine::new(name).of_size("Standard_D8s_v5")).collect();
        machines[2] = machines[2].clone().of_size("Standard_D4s_v6");
        let pools =
            vec![NodePool::new("uniform", "uniform", 1), NodePool::new("flexible", "flexible", 1).flexible()];
        let shape = Shape { pools, machines, zones: vec!["1".to_owned()], ..Shape::default() };
        let azure = Azure::new(AzureOptions {
            subscription: shape.subscription.clone(),
            region: shape.region.clone(),
            ..AzureOptions::default()
        });
        shape.lay_out(&azure).unwrap();
        let stop = CancellationToken::new();
        let options = Options { folder: folder.path().to_owned(), delay, devices };
        let disks = MachineDisks::start(&azure, options, running_host, &stop).unwrap();
        Self { azure, shape, disks: Some(disks), folder, stop }
    }

    pub fn machine(&self, name: &str) -> ResourceId {
        self.shape.machine(&StandaloneMachine::new(name))
    }

    pub fn compute(&self, kind: &str, name: &str) -> ResourceId {
        self.shape.group().resource("Microsoft.Compute", kind, name)
    }

    pub fn disk(&self, name: &str) -> ResourceId {
        self.compute("disks", name)
    }

    /// Creates an empty disk.
    pub fn create(&self, name: &str, gib: u64) {
        self.put(&self.disk(name), gib, json!({ "createOption": "Empty" }));
    }

    /// Creates a disk or snapshot of another one.
    pub fn copy(&self, source: &ResourceId, target: &ResourceId) {
        self.put(target, 0, json!({ "createOption": "Copy", "sourceResourceId": source }));
    }

    fn put(&self, id: &ResourceId, gib: u64, creation: Value) {
        let mut document = json!({ "properties": { "creationData": creation } });
        if gib > 0 {
            document["properties"]["diskSizeGB"] = gib.into();
        }
        if id.as_str().contains("/disks/") {
            document["zones"] = json!(["1"]);
            document["sku"] = json!({ "name": "Premium_LRS" });
        }
        self.azure.put(id, document).unwrap();
    }

    /// Sets a machine's data disks.
    pub fn attach(&self, machine: &ResourceId, disks: &[(u64, &str)]) {
        let list: Vec<Value> = disks
            .iter()
            .map(|(lun, disk)| {
                json!({ "lun": lun, "createOption": "Attach", "managedDisk": { "id": self.disk(disk) } })
            })
            .collect();
        self.azure
            .edit(machine, |document| document["properties"]["storageProfile"]["dataDisks"] = list.into())
            .unwrap();
    }

    pub fn switch(&self, machine: &str, state: PowerState) {
        self.azure.set_power_state(&self.machine(machine), state).unwrap();
    }

    pub fn path(&self, machine: &str, below: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(machine).join(below)
    }

    /// Waits until the devices are as in Azure, and a path is there, or is not.
    pub async fn until(&self, path: &Path, is_there: bool) {
        self.until_it(|| path.exists() == is_there, &format!("{} is {is_there}", path.display())).await;
    }

    pub async fn until_it(&self, is: impl Fn() -> bool, what: &str) {
        let mut changed = self.disks.as_ref().unwrap().changed();
        let waiting = async {
            while !is() {
                changed.changed().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(60), waiting)
            .await
            .unwrap_or_else(|_| panic!("{what}: never"));
    }

    /// Waits until the link of a LUN is there, and returns where it leads.
    pub async fn device(&self, machine: &str, lun: u64) -> PathBuf {
        let link = self.lun(machine, lun);
        self.until(&link, true).await;
        link.canonicalize().unwrap()
    }

    pub fn lun(&self, machine: &str, lun: u64) -> PathBuf {
        self.path(machine, &format!("dev/disk/azure/scsi1/lun{lun}"))
    }

    /// Waits until a LUN is empty.
    pub async fn gone(&self, machine: &str, lun: u64) {
        self.until(&self.lun(machine, lun), false).await;
    }
}
