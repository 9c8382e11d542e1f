//! The files by which a machine's system shows its disks: nodes and links in `dev`, and the kernel's description in `sys`.
//! Pure.
//!
//! As on machines with Azure's udev rules ("Azure virtual machine utilities"): SCSI has the system disk at host 0 and data
//! disks at host 1, each at its LUN; NVMe has one controller for both, on which namespace 1 is the system disk and the data
//! disk of LUN n is namespace n + 2.

use std::path::{Path, PathBuf};

use crate::observed::{Controller, Slot};

/// A file in a machine's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Folder(PathBuf),
    Text(PathBuf, String),
    Link(PathBuf, PathBuf),
    /// A character device with its numbers.
    Character(PathBuf, u32, u32),
    /// The node of the disk.
    Disk(PathBuf),
}

impl Entry {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Folder(path)
            | Self::Text(path, _)
            | Self::Link(path, _)
            | Self::Character(path, ..)
            | Self::Disk(path) => path,
        }
    }
}

fn folder(path: impl Into<PathBuf>) -> Entry {
    Entry::Folder(path.into())
}

fn line(path: impl Into<PathBuf>, text: impl std::fmt::Display) -> Entry {
    Entry::Text(path.into(), format!("{text}\n"))
}

fn link(path: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Entry {
    Entry::Link(path.into(), target.into())
}

/// The vendor and the model of Azure's disks on SCSI, padded as SCSI has them.
const VENDOR: &str = "Msft    ";
const MODEL: &str = "Virtual Disk    ";
/// The model of the NVMe controller of disks over the network, as opposed to local ones.
const NVME_MODEL: &str = "MSFT NVMe Accelerator v1.0              ";
/// The size of a sector in `size` of `sys`, whatever the device's is.
const SECTOR: u64 = 512;

/// The files of a machine without any disk. Programs in a mount namespace need more of `/dev` than disks.
pub(crate) fn machine(controller: Controller, with_characters: bool) -> Vec<Entry> {
    let mut all = vec![
        folder("dev/disk/azure"),
        folder("dev/shm"),
        folder("dev/pts"),
        link("dev/fd", "/proc/self/fd"),
        link("dev/stdin", "/proc/self/fd/0"),
        link("dev/stdout", "/proc/self/fd/1"),
        link("dev/stderr", "/proc/self/fd/2"),
        folder("sys/class/block"),
        folder("sys/class/nvme"),
        folder("sys/class/scsi_host"),
        folder("sys/bus/scsi/devices"),
    ];
    let characters = [
        ("null", 1, 3),
        ("zero", 1, 5),
        ("full", 1, 7),
        ("random", 1, 8),
        ("urandom", 1, 9),
        ("tty", 5, 0),
        ("ptmx", 5, 2),
        ("loop-control", 10, 237),
    ];
    if with_characters {
        let node = |(name, major, minor)| Entry::Character(Path::new("dev").join(name), major, minor);
        all.extend(characters.map(node));
    }
    match controller {
        Controller::Scsi => {
            all.push(folder("dev/disk/azure/scsi1"));
            for host in ["host0", "host1"] {
                all.push(folder(format!("sys/class/scsi_host/{host}")));
                all.push(Entry::Text(format!("sys/class/scsi_host/{host}/scan").into(), String::new()));
            }
        }
        Controller::Nvme => {
            all.push(folder("dev/disk/azure/data/by-lun"));
            all.push(folder("sys/class/nvme/nvme0"));
            all.push(line("sys/class/nvme/nvme0/model", NVME_MODEL));
            all.push(line("sys/class/nvme/nvme0/state", "live"));
            all.push(Entry::Text("sys/class/nvme/nvme0/rescan_controller".into(), String::new()));
        }
    }
    all
}

/// The name of a disk's device, given the names in use.
pub(crate) fn name(controller: Controller, slot: Slot, is_used: impl Fn(&str) -> bool) -> String {
    match (controller, slot) {
        (Controller::Scsi, Slot::System) => "sda".to_owned(),
        // sdb is the temporary disk, which these machines do without. Data disks are named as they come.
        (Controller::Scsi, Slot::Data(_)) => {
            let mut names = (2..).map(|number| format!("sd{}", letters(number)));
            names.find(|name| !is_used(name)).unwrap_or_default()
        }
        (Controller::Nvme, Slot::System) => "nvme0n1".to_owned(),
        (Controller::Nvme, Slot::Data(lun)) => format!("nvme0n{}", lun + 2),
    }
}

/// a to z, then aa, ab and on.
fn letters(number: u32) -> String {
    let last = char::from_digit(10 + number % 26, 36).unwrap_or('a');
    match number / 26 {
        0 => last.to_string(),
        before => letters(before - 1) + &last.to_string(),
    }
}

/// What a disk is at its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disk<'a> {
    pub(crate) slot: Slot,
    pub(crate) name: &'a str,
    /// Its numbers, where it is a block device.
    pub(crate) numbers: Option<(u32, u32)>,
    pub(crate) bytes: u64,
}

/// The files of a disk, in the order in which they are made: the link by which programs find it comes last.
pub(crate) fn disk(controller: Controller, disk: Disk<'_>) -> Vec<Entry> {
    let name = disk.name;
    let (parent, block) = places(controller, disk.slot, name);
    let above = |depth: usize| PathBuf::from("../".repeat(depth));
    let mut all = vec![Entry::Disk(format!("dev/{name}").into())];
    if controller == Controller::Scsi {
        all.extend([
            folder(&parent),
            line(parent.join("vendor"), VENDOR),
            line(parent.join("model"), MODEL),
            line(parent.join("type"), 0),
            Entry::Text(parent.join("rescan"), String::new()),
            folder(parent.join("block")),
        ]);
    }
    all.extend([folder(&block), line(block.join("size"), disk.bytes / SECTOR), line(block.join("ro"), 0)]);
    if let Some((major, minor)) = disk.numbers {
        all.push(line(block.join("dev"), format_args!("{major}:{minor}")));
    }
    match (controller, disk.slot) {
        (Controller::Scsi, _) => all.push(link(block.join("device"), "../..")),
        (Controller::Nvme, _) => {
            let namespace = name.rsplit('n').next().unwrap_or_default();
            all.push(line(block.join("nsid"), namespace));
            all.push(link(block.join("device"), ".."));
        }
    }
    let from_sys = block.strip_prefix("sys").unwrap_or(&block);
    all.push(link(format!("sys/class/block/{name}"), above(2).join(from_sys)));
    all.push(match (controller, disk.slot) {
        (_, Slot::System) => link("dev/disk/azure/root", above(2).join(name)),
        (Controller::Scsi, Slot::Data(lun)) => {
            link(format!("dev/disk/azure/scsi1/lun{lun}"), above(3).join(name))
        }
        (Controller::Nvme, Slot::Data(lun)) => {
            link(format!("dev/disk/azure/data/by-lun/{lun}"), above(4).join(name))
        }
    });
    all
}

/// The file with the size of a disk, and its new text.
pub(crate) fn size(controller: Controller, slot: Slot, name: &str, bytes: u64) -> Entry {
    line(places(controller, slot, name).1.join("size"), bytes / SECTOR)
}

/// The folders in `sys` of a disk's device and of its block device.
fn places(controller: Controller, slot: Slot, name: &str) -> (PathBuf, PathBuf) {
    let parent = match (controller, slot) {
        (Controller::Scsi, Slot::System) => "sys/bus/scsi/devices/0:0:0:0".to_owned(),
        (Controller::Scsi, Slot::Data(lun)) => format!("sys/bus/scsi/devices/1:0:0:{lun}"),
        (Controller::Nvme, _) => "sys/class/nvme/nvme0".to_owned(),
    };
    let parent = PathBuf::from(parent);
    let block = match controller {
        Controller::Scsi => parent.join("block").join(name),
        Controller::Nvme => parent.join(name),
    };
    (parent, block)
}

#[cfg(test)]
mod tests {
    use super::{Disk, Entry, disk, letters, name};
    use crate::observed::{Controller, Slot};

    #[test]
    fn names_are_those_of_the_kernel() {
        let names: Vec<String> = [0, 2, 25, 26, 27, 51, 52].map(letters).to_vec();
        assert_eq!(names, ["a", "c", "z", "aa", "ab", "az", "ba"]);
        assert_eq!(name(Controller::Scsi, Slot::System, |_| true), "sda");
        assert_eq!(name(Controller::Scsi, Slot::Data(7), |name| name == "sdc"), "sdd");
        assert_eq!(name(Controller::Nvme, Slot::System, |_| true), "nvme0n1");
        assert_eq!(name(Controller::Nvme, Slot::Data(7), |_| true), "nvme0n9");
    }

    #[test]
    fn a_disk_is_linked_by_its_lun_once_all_the_rest_is_there() {
        let found = |controller, name| {
            let lun = Slot::Data(3);
            let all = disk(controller, Disk { slot: lun, name, numbers: Some((7, 1)), bytes: 1 << 30 });
            assert!(matches!(&all[0], Entry::Disk(node) if node.ends_with(name)));
            match all.last().unwrap() {
                Entry::Link(path, target) => (path.display().to_string(), target.display().to_string()),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            found(Controller::Scsi, "sdc"),
            ("dev/disk/azure/scsi1/lun3".to_owned(), "../../../sdc".to_owned())
        );
        assert_eq!(
            found(Controller::Nvme, "nvme0n5"),
            ("dev/disk/azure/data/by-lun/3".to_owned(), "../../../../nvme0n5".to_owned())
        );
    }
}
