//! The devices of all machines, which follow what was observed in Azure.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::contents::{Contents, remove_all};
use crate::error::HardwareError;
use crate::layout::{self, Disk, Entry};
use crate::loop_device::LoopDevice;
use crate::observed::{Controller, Observed, Slot};
use crate::tree::{self, Node};

/// What a disk is in the tree of its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Devices {
    /// A loop device. This needs root on Linux.
    Loop,
    /// A file, for programs that are tested without block devices. This needs no rights.
    Files,
}

/// The folder of the contents, in which no machine can have its own.
const CONTENTS: &str = ".contents";
/// The file that a running simulation locks.
const LOCK: &str = ".lock";

/// The devices, their contents and the machines' trees. All of it is released when this value is dropped.
#[derive(Debug)]
pub(crate) struct Hardware {
    folder: PathBuf,
    devices: Devices,
    contents: Arc<Contents>,
    machines: BTreeMap<String, Tree>,
    /// The disks and snapshots of the last look.
    known: BTreeSet<String>,
    _lock: File,
}

/// The tree of a machine.
#[derive(Debug)]
struct Tree {
    controller: Controller,
    disks: BTreeMap<Slot, Plugged>,
}

/// A disk in a machine.
#[derive(Debug)]
struct Plugged {
    unique: String,
    name: String,
    bytes: u64,
    device: Option<LoopDevice>,
    entries: Vec<Entry>,
}

impl Hardware {
    /// Takes a folder, and removes what a killed simulation has left in it.
    pub(crate) fn take(folder: &Path, devices: Devices) -> Result<Self, HardwareError> {
        fs::create_dir_all(folder).map_err(HardwareError::of_file(folder))?;
        let folder = folder.canonicalize().map_err(HardwareError::of_file(folder))?;
        let lock = lock(&folder)?;
        release_leftovers(&folder)?;
        let contents = Arc::new(Contents::new(folder.join(CONTENTS))?);
        let hardware = Self {
            folder,
            devices,
            contents,
            machines: BTreeMap::new(),
            known: BTreeSet::new(),
            _lock: lock,
        };
        if devices == Devices::Loop {
            hardware.check()?;
        }
        Ok(hardware)
    }

    /// The absolute path of its folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn contents(&self) -> Arc<Contents> {
        self.contents.clone()
    }

    /// Fails where devices cannot be had: better now than at the first disk.
    fn check(&self) -> Result<(), HardwareError> {
        const PROBE: &str = "probe";
        let file = self.contents.open(PROBE, 1 << 20)?;
        let device = LoopDevice::attach(&file)?;
        let (major, minor) = device.numbers;
        let entry = [Entry::Disk(".probe".into())];
        let made = tree::write(&self.folder, &entry, Node::Block(major, minor));
        // The node has to lead to the device: not where the file system is mounted with nodev.
        let node = self.folder.join(".probe");
        let opened = made.and_then(|()| {
            let opened = File::open(&node);
            opened.map(drop).map_err(|source| HardwareError::Nodes { path: node.clone(), source })
        });
        let released = tree::remove(&self.folder, &entry).and_then(|()| device.detach());
        opened.and(released).and_then(|()| self.contents.remove(PROBE))
    }

    /// Makes the devices what they are in Azure. Disks are pulled out before others are plugged in. Returns what failed; the
    /// rest is done.
    pub(crate) fn follow(&mut self, observed: &Observed) -> Vec<HardwareError> {
        let (stuck, mut failed) = self.pull_all(|name, controller, slot, unique| {
            let machine = observed.machines.get(name).filter(|machine| machine.controller == controller);
            machine.and_then(|machine| machine.disks.get(&slot)).is_some_and(|wanted| wanted == unique)
        });
        let mut note = |result: Result<(), HardwareError>| failed.extend(result.err());
        let gone = self.machines.iter().filter(|(name, tree)| {
            let machine = observed.machines.get(*name);
            tree.disks.is_empty() && machine.is_none_or(|machine| machine.controller != tree.controller)
        });
        for name in gone.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            note(remove_all(&self.folder.join(&name)));
            self.machines.remove(&name);
        }
        note(self.grow(&observed.sizes));
        for (name, machine) in &observed.machines {
            note(self.build(name, machine.controller));
            // A disk that its former machine may still write to goes to no other one.
            for (slot, unique) in machine.disks.iter().filter(|(_, unique)| !stuck.contains(*unique)) {
                let bytes = observed.sizes.get(unique).copied().unwrap_or_default();
                note(self.plug(name, *slot, unique, bytes));
            }
        }
        let now: BTreeSet<String> = observed.sizes.keys().cloned().collect();
        for unique in self.known.difference(&now) {
            note(self.contents.remove(unique));
        }
        self.known = now;
        failed
    }

    /// Pulls out the disks that are not to stay. Returns those that could not be, and why.
    fn pull_all(
        &mut self,
        stays: impl Fn(&str, Controller, Slot, &str) -> bool,
    ) -> (BTreeSet<String>, Vec<HardwareError>) {
        let (mut stuck, mut failed) = (BTreeSet::new(), Vec::new());
        let mut users: BTreeMap<String, usize> = BTreeMap::new();
        for disk in self.machines.values().flat_map(|tree| tree.disks.values()) {
            *users.entry(disk.unique.clone()).or_default() += 1;
        }
        for (name, tree) in &mut self.machines {
            let going =
                tree.disks.iter().filter(|(slot, disk)| !stays(name, tree.controller, **slot, &disk.unique));
            for slot in going.map(|(slot, _)| *slot).collect::<Vec<_>>() {
                let Some(disk) = tree.disks.remove(&slot) else { continue };
                let left = users.entry(disk.unique.clone()).and_modify(|users| *users -= 1).or_default();
                let pulled = tree::remove(&self.folder.join(name), &disk.entries)
                    .and_then(|()| pull(&self.contents, &disk, *left > 0));
                if let Err(error) = pulled {
                    failed.push(error);
                    stuck.insert(disk.unique.clone());
                    tree.disks.insert(slot, disk);
                }
            }
        }
        (stuck, failed)
    }

    /// Makes the tree of a machine without disks.
    fn build(&mut self, name: &str, controller: Controller) -> Result<(), HardwareError> {
        if self.machines.contains_key(name) {
            return Ok(());
        }
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).map_err(HardwareError::of_file(&folder))?;
        tree::write(&folder, &layout::machine(controller, self.devices == Devices::Loop), Node::None)?;
        self.machines.insert(name.to_owned(), Tree { controller, disks: BTreeMap::new() });
        Ok(())
    }

    /// Plugs a disk in, unless it is there.
    fn plug(&mut self, name: &str, slot: Slot, unique: &str, bytes: u64) -> Result<(), HardwareError> {
        let Some(tree) = self.machines.get_mut(name) else { return Ok(()) };
        if tree.disks.contains_key(&slot) {
            return Ok(());
        }
        let file = self.contents.open(unique, bytes)?;
        let device = match self.devices {
            Devices::Loop => Some(LoopDevice::attach(&file)?),
            Devices::Files => None,
        };
        let is_used = |name: &str| tree.disks.values().any(|disk| disk.name == name);
        let device_name = layout::name(tree.controller, slot, is_used);
        let numbers = device.as_ref().map(|device| device.numbers);
        let entries = layout::disk(tree.controller, Disk { slot, name: &device_name, numbers, bytes });
        let node = numbers.map_or(Node::File(&file), |(major, minor)| Node::Block(major, minor));
        let written = tree::write(&self.folder.join(name), &entries, node);
        let disk = Plugged { unique: unique.to_owned(), name: device_name, bytes, device, entries };
        // Also one that has only some of its files has to be pulled out.
        tree.disks.insert(slot, disk);
        written
    }

    /// Makes disks as large as they are in Azure.
    fn grow(&mut self, sizes: &BTreeMap<String, u64>) -> Result<(), HardwareError> {
        for (name, tree) in &mut self.machines {
            for (slot, disk) in &mut tree.disks {
                let Some(bytes) = sizes.get(&disk.unique).copied().filter(|bytes| *bytes > disk.bytes) else {
                    continue;
                };
                self.contents.open(&disk.unique, bytes)?;
                disk.device.as_ref().map_or(Ok(()), LoopDevice::take_size)?;
                let entry = layout::size(tree.controller, *slot, &disk.name, bytes);
                tree::write(&self.folder.join(name), &[entry], Node::None)?;
                disk.bytes = bytes;
            }
        }
        Ok(())
    }
}

/// Takes the bytes away from a device. One that is mounted or open stays until it is closed, without a sector. The bytes of
/// a disk that other machines have, too, cannot be taken away from one of them alone.
fn pull(contents: &Contents, disk: &Plugged, is_shared: bool) -> Result<(), HardwareError> {
    let unique = &disk.unique;
    let Some(device) = &disk.device else {
        return if is_shared { Ok(()) } else { contents.cut_off(unique) };
    };
    device.detach()?;
    if !device.is_attached_to(&contents.path(unique)) {
        return Ok(());
    }
    if is_shared {
        tracing::warn!(
            unique,
            "a shared disk is still open on a machine that lost it, which can write to it"
        );
        return Ok(());
    }
    tracing::info!(unique, "a disk was pulled out while it was open: its device has no sectors any more");
    contents.cut_off(unique)?;
    device.take_size()
}

impl Drop for Hardware {
    fn drop(&mut self) {
        for error in self.pull_all(|_, _, _, _| false).1 {
            tracing::warn!(%error, "a disk of a machine is left");
        }
        let trees = self.machines.keys().map(|name| self.folder.join(name));
        for folder in trees.chain([self.folder.join(CONTENTS)]) {
            if let Err(error) = remove_all(&folder) {
                tracing::warn!(%error, "files of machines are left");
            }
        }
        // Last: from now on another simulation can have the folder.
        let _not_there = fs::remove_file(self.folder.join(LOCK));
    }
}

/// Locks the folder while the file is open.
fn lock(folder: &Path) -> Result<File, HardwareError> {
    let path = folder.join(LOCK);
    loop {
        let file = File::options().create(true).append(true).open(&path);
        let file = file.map_err(HardwareError::of_file(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(HardwareError::InUse { path: folder.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(HardwareError::File { path, source }),
        }
        // The previous simulation may have removed the file in between: then another one locks a new file.
        let locked = file.metadata().map_err(HardwareError::of_file(&path))?.ino();
        if fs::metadata(&path).is_ok_and(|there| there.ino() == locked) {
            return Ok(file);
        }
    }
}

/// Releases the devices of a simulation that was killed, and removes its trees.
fn release_leftovers(folder: &Path) -> Result<(), HardwareError> {
    for device in LoopDevice::all_of(folder) {
        device.detach()?;
    }
    for entry in fs::read_dir(folder).map_err(HardwareError::of_file(folder))?.filter_map(Result::ok) {
        if entry.path().join("dev/disk/azure").is_dir() {
            remove_all(&entry.path())?;
        }
    }
    Ok(())
}
