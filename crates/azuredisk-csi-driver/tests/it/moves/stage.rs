//! Pods move from machine to machine, on an Azure whose operations are slow, cancelled, or hang.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use azure_simulator::{Azure, Fault, FaultAction, LatencyProfile, Options, PowerState};
use azure_types::ResourceId;
use serde_json::{Value, json};
use simulated_cluster::{Shape, StandaloneMachine};
use tokio::time::{Instant, sleep};

use super::attacher::{Attacher, Controller};
use super::disk_watch::DiskWatch;

/// How long writes of machines take.
const MACHINE: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(90)];
/// The share of writes of machines that are cancelled, and of those that hang for so long.
const CANCELLED: f64 = 0.05;
const HANGING: f64 = 0.02;
const HANGS_FOR: Duration = Duration::from_secs(20 * 60);

/// An Azure whose writes of machines take 5 to 90 s; 5 % are cancelled, and 2 % hang.
pub fn options(seed: u64) -> Options {
    let on_machines = |action, share, name| {
        Fault::new(action).on_method("PUT").on_type("*/virtualMachines").some(share).named(name)
    };
    let hang = FaultAction::SlowOperation { ms: u64::try_from(HANGS_FOR.as_millis()).unwrap() };
    Options {
        seed,
        latency: LatencyProfile::instant().between("PUT", "*/virtualMachines", MACHINE[0], MACHINE[1]),
        faults: vec![
            on_machines(FaultAction::CancelOperation, CANCELLED, "cancelled"),
            on_machines(hang, HANGING, "hangs"),
        ],
        ..Options::default()
    }
}

/// Machines that take 32 disks each, in no zone.
pub fn shape(machines: usize) -> Shape {
    let machine = |number| StandaloneMachine::new(&format!("node{number:02}")).of_size("Standard_D32s_v3");
    Shape {
        zones: Vec::new(),
        pools: Vec::new(),
        machines: (0..machines).map(machine).collect(),
        ..Shape::default()
    }
}

/// Numbers from a seed.
pub struct Dice(u64);

impl Dice {
    pub fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % end
    }

    pub fn milliseconds_below(&mut self, end: Duration) -> Duration {
        Duration::from_millis(self.below(u64::try_from(end.as_millis()).unwrap()))
    }
}

/// One move of a pod.
#[derive(Debug, Clone, Copy)]
pub struct Move {
    /// From the request to detach its disk until the disk is attached elsewhere.
    pub took: Duration,
    /// The part of it in which an operation worked on the machine that the disk waited for.
    pub operations: Duration,
}

/// Machines, disks, and the side-car that moves them.
pub struct Stage<C> {
    pub azure: Azure,
    pub shape: Shape,
    pub watch: DiskWatch,
    pub attacher: Arc<Attacher<C>>,
    machines: BTreeMap<String, ResourceId>,
}

impl<C: Controller> Stage<C> {
    /// Lays out machines and disks: `disks` have the node of each.
    pub fn new(
        azure: &Azure,
        shape: Shape,
        disks: &[usize],
        start: impl FnOnce(&Azure, &Shape) -> C,
    ) -> Self {
        let names = shape.machines.iter().map(|machine| (machine.name.clone(), shape.machine(machine)));
        let machines: BTreeMap<String, ResourceId> = names.collect();
        let mut lists: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
        for (number, node) in disks.iter().enumerate() {
            let disk = disk(&shape, number);
            let creation = json!({ "createOption": "Empty" });
            let properties = json!({ "creationData": creation, "diskSizeGB": 8 });
            azure.put(&disk, json!({ "location": shape.region, "properties": properties })).unwrap();
            let list = lists.entry(*node).or_default();
            list.push(entry(list.len(), &disk));
        }
        for (node, list) in lists {
            let machine = shape.machine(&shape.machines[node]);
            azure
                .edit(&machine, |document| {
                    document["properties"]["storageProfile"]["dataDisks"] = list.into()
                })
                .unwrap();
        }
        let watch = DiskWatch::start(azure, machines.values().cloned());
        for (number, node) in disks.iter().enumerate() {
            let (disk, machine) = (disk(&shape, number), shape.machine(&shape.machines[*node]));
            watch.is_attached(&disk, &machine, watch.disks_of(&machine)[&disk]);
        }
        let attacher = Arc::new(Attacher::connected_to(Arc::new(start(azure, &shape))));
        Self { azure: azure.clone(), shape, watch, attacher, machines }
    }

    pub fn node(&self, number: usize) -> String {
        self.shape.machines[number].name.clone()
    }

    pub fn machine(&self, node: &str) -> ResourceId {
        self.machines[node].clone()
    }

    /// A machine is switched off, and stays where it is.
    pub fn switch_off(&self, node: &str) {
        self.azure.set_power_state(&self.machine(node), PowerState::Stopped).unwrap();
    }

    /// A pod moves, and its volume with it.
    pub async fn move_pod(&self, number: usize, from: &str, to: &str) -> Move {
        let disk = disk(&self.shape, number);
        let (begin, mut operations) = (Instant::now(), Duration::ZERO);
        let worked = self.watch.worked(&self.machine(from));
        self.detach(&disk, from).await;
        operations += self.watch.worked(&self.machine(from)) - worked;
        let worked = self.watch.worked(&self.machine(to));
        self.attach(&disk, to).await;
        operations += self.watch.worked(&self.machine(to)) - worked;
        Move { took: begin.elapsed(), operations }
    }

    pub async fn attach(&self, disk: &ResourceId, node: &str) {
        let machine = self.machine(node);
        self.watch.asks_to_attach(disk, &machine);
        let ask = async |controller: Arc<C>| controller.publish(disk.as_str(), node).await;
        let lun = self.attacher.until_done(ask).await;
        self.watch.is_attached(disk, &machine, lun);
    }

    pub async fn detach(&self, disk: &ResourceId, node: &str) {
        let machine = self.machine(node);
        self.watch.asks_to_detach(disk, &machine);
        self.attacher
            .until_done(async |controller: Arc<C>| controller.unpublish(disk.as_str(), node).await)
            .await;
        self.watch.is_detached(disk, &machine);
    }

    /// Someone attaches a disk by hand, or takes one off. Whether Azure does it: it does not while it changes the machine.
    pub fn by_hand(&self, disk: &ResourceId, node: &str, comes: bool) -> bool {
        let machine = self.machine(node);
        let former = self.watch.disks_of(&machine);
        if former.contains_key(disk) == comes {
            return false;
        }
        let free = (0..32).find(|lun| !former.values().any(|used| used == lun)).unwrap_or_default();
        let new = entry(usize::try_from(free).unwrap_or_default(), disk);
        match comes {
            true => self.watch.asks_to_attach(disk, &machine),
            false => self.watch.asks_to_detach(disk, &machine),
        }
        let edited = self.azure.edit(&machine, |document| {
            let list = &mut document["properties"]["storageProfile"]["dataDisks"];
            let mut entries = list.as_array().cloned().unwrap_or_default();
            let is_it = |entry: &Value| {
                entry["managedDisk"]["id"].as_str().is_some_and(|id| id.eq_ignore_ascii_case(disk.as_str()))
            };
            entries.retain(|entry| !is_it(entry));
            entries.extend(comes.then_some(new));
            *list = entries.into();
        });
        if edited.is_err() {
            match comes {
                true => self.watch.asks_to_detach(disk, &machine),
                false => self.watch.asks_to_attach(disk, &machine),
            }
        }
        edited.is_ok()
    }

    /// Waits until no operation runs, and asserts that all holds, and that each disk is where it belongs.
    pub async fn end(&self, places: &BTreeMap<ResourceId, String>) {
        while self.azure.running_operations() > 0 {
            sleep(Duration::from_secs(10)).await;
        }
        let broken = self.watch.broken();
        assert!(broken.is_empty(), "{} rules are broken:\n{}", broken.len(), broken.join("\n"));
        for (disk, node) in places {
            assert!(self.watch.disks_of(&self.machine(node)).contains_key(disk), "{disk} is not with {node}");
        }
    }
}

/// The disk with this number.
pub fn disk(shape: &Shape, number: usize) -> ResourceId {
    shape.group().resource("Microsoft.Compute", "disks", &format!("disk{number:03}"))
}

fn entry(lun: usize, disk: &ResourceId) -> Value {
    json!({ "lun": lun, "createOption": "Attach", "managedDisk": { "id": disk } })
}
