//! All of a simulated machine.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::disk::Disk;
use super::fault::Fault;
use super::layout::Layout;
use super::mounted::{Mount, Mounted};
use super::served::{FileService, Session};
use super::tree::{Entry, FileTree};

/// All of a simulated machine.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub layout: Layout,
    pub tree: FileTree,
    pub disks: BTreeMap<u32, Disk>,
    pub mounts: Vec<Mount>,
    /// Attached disks that appear once the hosts are scanned.
    pub unseen: Vec<Disk>,
    pub busy: BTreeSet<PathBuf>,
    pub missing_programs: BTreeSet<String>,
    pub next_device: u32,
    pub next_data: u64,
    pub steps: u64,
    pub fault: Option<(u64, Fault)>,
    pub journal: Vec<String>,
    /// Modes of files and folders that have another one than the usual.
    pub modes: BTreeMap<PathBuf, u32>,
    /// Files that are images of disks.
    pub images: BTreeMap<PathBuf, u32>,
    /// File systems that the kernel has.
    pub protocols: BTreeSet<String>,
    /// Services of files by host name.
    pub services: BTreeMap<String, FileService>,
    /// What mounts of shares are logged in with.
    pub sessions: BTreeMap<u32, Session>,
    /// Hosts for which there is a ticket.
    pub tickets: BTreeSet<String>,
    /// Whether a mount can get another password while it is used.
    pub can_change_passwords: bool,
}

impl State {
    pub fn topmost(&self, path: &Path) -> Option<&Mount> {
        self.mounts.iter().rev().find(|mount| mount.point == path)
    }

    /// The number of the device at a path.
    pub fn device_number(&self, path: &Path) -> io::Result<u32> {
        if let Some(Mount { what: Mounted::Node { device, .. }, .. }) = self.topmost(path) {
            return Ok(*device);
        }
        if let Some(image) = self.images.get(path) {
            return Ok(*image);
        }
        match self.tree.at(path)? {
            Entry::Device(device) => Ok(*device),
            _ => Err(Errno::NOTBLK.into()),
        }
    }

    /// The disk at a path.
    pub fn disk(&mut self, path: &Path) -> io::Result<&mut Disk> {
        let number = self.device_number(path)?;
        self.disks.get_mut(&number).ok_or_else(|| Errno::NXIO.into())
    }

    /// The file system at a path or above it.
    pub fn file_system(&mut self, path: &Path) -> Option<&mut Disk> {
        let mount = path.ancestors().find_map(|above| self.topmost(above))?;
        let Mounted::FileSystem { device, .. } = mount.what else { return None };
        self.disks.get_mut(&device)
    }

    /// Shows a disk in the trees of devices.
    pub fn show(&mut self, disk: Disk) {
        let number = self.next_device;
        self.next_device += 1;
        let (name, lun) = (disk.name.clone(), disk.lun);
        self.tree.put(format!("/dev/{name}"), Entry::Device(number));
        let block = format!("/sys/class/block/{name}");
        let file = |text: &str| Entry::File(text.to_owned());
        if self.layout.is_scsi() {
            let address = format!("5:0:0:{lun}");
            let device = format!("/sys/devices/host5/{address}");
            for (member, text) in [("vendor", "Msft    \n"), ("model", "Virtual Disk    \n"), ("rescan", "")]
            {
                self.tree.put(format!("{device}/{member}"), file(text));
            }
            self.tree.put(format!("{device}/queue_depth"), file("64\n"));
            let own = format!("{device}/block/{name}");
            self.tree.put(format!("{own}/device"), Entry::Link(device.clone().into()));
            self.tree.put(format!("/sys/bus/scsi/devices/{address}"), Entry::Link(device.into()));
            self.queue(&own);
            self.tree.put(format!("{own}/dev"), file(&format!("8:{number}\n")));
            self.tree.put(&block, Entry::Link(own.into()));
        } else if self.layout.is_nvme() {
            let own = format!("/sys/devices/nvme0/{name}");
            self.tree.put(format!("{own}/nsid"), file(&format!("{}\n", lun + 2)));
            self.tree.put(format!("{own}/device"), Entry::Link("/sys/devices/nvme0".into()));
            self.queue(&own);
            self.tree.put(format!("{own}/dev"), file(&format!("8:{number}\n")));
            self.tree.put(&block, Entry::Link(own.into()));
        }
        if let Some(link) = self.layout.link(lun) {
            self.tree.put(link, Entry::Link(format!("/dev/{name}").into()));
        }
        self.disks.insert(number, disk);
    }

    fn queue(&mut self, block: &str) {
        for setting in ["max_sectors_kb", "scheduler", "nr_requests", "read_ahead_kb"] {
            self.tree.put(format!("{block}/queue/{setting}"), Entry::File("default\n".to_owned()));
        }
    }

    /// Takes a disk out of the trees.
    pub fn hide(&mut self, lun: u8) {
        let Some((number, disk)) = self.disks.iter().find(|(_, disk)| disk.lun == lun) else { return };
        let (number, name) = (*number, disk.name.clone());
        self.tree.cut(format!("/dev/{name}"));
        self.tree.cut(format!("/sys/class/block/{name}"));
        self.tree.cut(format!("/sys/devices/nvme0/{name}"));
        self.tree.cut(format!("/sys/devices/host5/5:0:0:{lun}"));
        self.tree.cut(format!("/sys/bus/scsi/devices/5:0:0:{lun}"));
        if let Some(link) = self.layout.link(lun) {
            self.tree.cut(link);
        }
        self.disks.remove(&number);
        for mount in &mut self.mounts {
            let is_of = matches!(mount.what, Mounted::FileSystem { device, .. } if device == number);
            mount.is_dead |= is_of;
        }
    }

    /// A write into a file of the kernel, with its effect.
    pub fn write(&mut self, file: &Path, text: &str) -> io::Result<()> {
        let place = self.tree.canonical(file)?;
        text.clone_into(self.tree.text(&place)?);
        let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match name.as_str() {
            "scan" | "rescan_controller" => {
                for disk in std::mem::take(&mut self.unseen) {
                    self.show(disk);
                }
                if name == "rescan_controller" {
                    self.disks.values_mut().for_each(|disk| disk.bytes = disk.bytes_in_azure);
                }
            }
            "rescan" => {
                let device = place.parent().unwrap_or(Path::new("/"));
                let lun = device.to_string_lossy().rsplit(':').next().and_then(|lun| lun.parse::<u8>().ok());
                let disk = self.disks.values_mut().find(|disk| Some(disk.lun) == lun);
                disk.into_iter().for_each(|disk| disk.bytes = disk.bytes_in_azure);
            }
            _ => {}
        }
        Ok(())
    }
}
