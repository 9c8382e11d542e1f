//! What must hold of the machines' lists of disks at every moment.
//!
//! The simulated Azure notifies of each change; then all lists are compared with the former ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use azure_simulator::Azure;
use azure_types::ResourceId;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

/// What a machine's list shows of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Listed {
    lun: i64,
    leaves: bool,
    /// Whether an operation that has succeeded brought it.
    is_held: bool,
}

/// What was asked last for a disk and a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Attach,
    Detach,
}

#[derive(Default)]
struct State {
    lists: BTreeMap<ResourceId, BTreeMap<ResourceId, Listed>>,
    asked: BTreeMap<(ResourceId, ResourceId), Request>,
    /// Where pods write to their disks.
    mounted: BTreeMap<ResourceId, (ResourceId, i64)>,
    /// For how long an operation worked on each machine, and those on which one works now.
    worked: BTreeMap<ResourceId, Duration>,
    works: BTreeSet<ResourceId>,
    looked: Option<Instant>,
    broken: BTreeSet<String>,
}

/// Watches the machines of one Azure.
#[derive(Clone)]
pub struct DiskWatch {
    azure: Azure,
    machines: Arc<[ResourceId]>,
    state: Arc<Mutex<State>>,
}

impl DiskWatch {
    /// Watches these machines from now on. What they list now was asked for.
    pub fn start(azure: &Azure, machines: impl IntoIterator<Item = ResourceId>) -> Self {
        let watch =
            Self { azure: azure.clone(), machines: machines.into_iter().collect(), state: Arc::default() };
        for machine in &*watch.machines {
            for disk in listed(&watch.document(machine)).into_keys() {
                watch.asks_to_attach(&disk, machine);
            }
        }
        watch.look();
        let (watching, mut changed) = (watch.clone(), azure.subscribe());
        tokio::spawn(async move {
            while changed.changed().await.is_ok() {
                watching.look();
            }
        });
        watch
    }

    fn document(&self, machine: &ResourceId) -> Value {
        self.azure.document(machine).unwrap_or_default()
    }

    /// The machine that a disk names as its manager.
    fn holder(&self, disk: &ResourceId) -> Option<ResourceId> {
        let document = self.azure.document(disk)?;
        ResourceId::parse(document["managedBy"].as_str()?).ok().as_ref().map(as_listed)
    }

    /// An attach is asked for: until the opposite is asked, the disk may come to the machine.
    pub fn asks_to_attach(&self, disk: &ResourceId, machine: &ResourceId) {
        self.state.lock().asked.insert((disk.clone(), machine.clone()), Request::Attach);
    }

    /// A detach is asked for: until the opposite is asked, the disk may leave the machine. The pod has ended.
    pub fn asks_to_detach(&self, disk: &ResourceId, machine: &ResourceId) {
        let mut state = self.state.lock();
        state.asked.insert((disk.clone(), machine.clone()), Request::Detach);
        state.mounted.remove(disk);
    }

    /// An attach was answered with this LUN: from now on a pod writes to it. The answer is compared with Azure's model.
    pub fn is_attached(&self, disk: &ResourceId, machine: &ResourceId, lun: i64) {
        self.state.lock().mounted.insert(disk.clone(), (machine.clone(), lun));
        self.look();
        let holder = self.holder(disk);
        if holder.as_ref() != Some(machine) {
            self.report(format!("{disk} counts as attached to {machine}, but {holder:?} has it"));
        }
    }

    /// A detach was answered: the model shows the disk there no more.
    pub fn is_detached(&self, disk: &ResourceId, machine: &ResourceId) {
        self.look();
        if self.state.lock().lists.get(machine).is_some_and(|list| list.contains_key(disk)) {
            self.report(format!("{disk} counts as detached from {machine}, but is in its list"));
        }
    }

    /// For how long operations have worked on a machine since the beginning.
    pub fn worked(&self, machine: &ResourceId) -> Duration {
        self.look();
        self.state.lock().worked.get(machine).copied().unwrap_or_default()
    }

    /// The disks that a machine has, with their LUNs.
    pub fn disks_of(&self, machine: &ResourceId) -> BTreeMap<ResourceId, i64> {
        self.look();
        let state = self.state.lock();
        let list = state.lists.get(machine).into_iter().flatten();
        list.map(|(disk, listed)| (disk.clone(), listed.lun)).collect()
    }

    /// What did not hold.
    pub fn broken(&self) -> Vec<String> {
        self.look();
        self.state.lock().broken.iter().cloned().collect()
    }

    fn report(&self, what: String) {
        self.state.lock().broken.insert(what);
    }

    /// Compares all lists with the former ones.
    fn look(&self) {
        let documents: Vec<Value> = self.machines.iter().map(|machine| self.document(machine)).collect();
        let mut state = self.state.lock();
        let state = &mut *state;
        let now = Instant::now();
        let passed = state.looked.replace(now).map(|looked| now - looked).unwrap_or_default();
        for machine in &state.works {
            *state.worked.entry(machine.clone()).or_default() += passed;
        }
        for (machine, document) in self.machines.iter().zip(&documents) {
            let mut list = listed(document);
            let is_idle = document["properties"]["provisioningState"] != "Updating";
            match is_idle {
                true => state.works.remove(machine),
                false => state.works.insert(machine.clone()),
            };
            let before = state.lists.remove(machine).unwrap_or_default();
            for (disk, listed) in &mut list {
                // Between two operations may be no moment in which this watch sees it idle: the disk names its machine, too.
                listed.is_held = is_idle
                    || before.get(disk).is_some_and(|before| before.is_held)
                    || self.holder(disk).as_ref() == Some(machine);
            }
            let asked = |disk: &ResourceId| state.asked.get(&(disk.clone(), machine.clone())).copied();
            for (disk, _) in list.iter().filter(|(disk, _)| !before.contains_key(disk)) {
                if asked(disk) != Some(Request::Attach) {
                    state.broken.insert(format!("{disk} came to {machine} without a request"));
                }
            }
            for (disk, was) in before.iter().filter(|(_, was)| was.is_held && !was.leaves) {
                let leaves = list.get(disk).is_none_or(|listed| listed.leaves);
                if leaves && asked(disk) != Some(Request::Detach) {
                    state.broken.insert(format!("{disk} left {machine} without a request"));
                }
                if list.get(disk).is_some_and(|listed| listed.lun != was.lun) {
                    state.broken.insert(format!("{disk} changed its LUN on {machine}"));
                }
            }
            let mut luns = BTreeMap::new();
            for (disk, listed) in list.iter().filter(|(_, listed)| !listed.leaves) {
                if let Some(other) = luns.insert(listed.lun, disk) {
                    state.broken.insert(format!("{disk} and {other} are at LUN {} of {machine}", listed.lun));
                }
            }
            state.lists.insert(machine.clone(), list);
        }
        let mut places: BTreeMap<&ResourceId, &ResourceId> = BTreeMap::new();
        for (machine, list) in &state.lists {
            for disk in list.keys() {
                if let Some(other) = places.insert(disk, machine) {
                    state.broken.insert(format!("{disk} is in the lists of {machine} and {other}"));
                }
            }
        }
        for (disk, (machine, lun)) in &state.mounted {
            let list = state.lists.get(machine);
            let at_lun = list.into_iter().flatten().find(|(_, listed)| listed.lun == *lun && listed.is_held);
            if at_lun.map(|(disk, _)| disk) != Some(disk) {
                let other = at_lun.map(|(disk, _)| disk.name());
                state
                    .broken
                    .insert(format!("what is written to {disk} goes to {other:?} at LUN {lun} of {machine}"));
            }
        }
    }
}

fn listed(machine: &Value) -> BTreeMap<ResourceId, Listed> {
    let list = machine["properties"]["storageProfile"]["dataDisks"].as_array();
    let entry = |entry: &Value| {
        let disk = ResourceId::parse(entry["managedDisk"]["id"].as_str()?).ok()?;
        let leaves = entry["toBeDetached"] == true;
        Some((disk, Listed { lun: entry["lun"].as_i64()?, leaves, is_held: false }))
    };
    list.into_iter().flatten().filter_map(entry).collect()
}

/// The id of a machine as lists of machines have it: disks name instances of scale sets by the whole name.
fn as_listed(holder: &ResourceId) -> ResourceId {
    let Some((set, number)) = holder.parent().zip(holder.name().rsplit_once('_')) else {
        return holder.clone();
    };
    if holder.as_str().contains("/virtualMachineScaleSets/") {
        set.child("virtualMachines", number.1)
    } else {
        holder.clone()
    }
}
