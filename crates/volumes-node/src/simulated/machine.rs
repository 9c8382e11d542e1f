//! A simulated machine: what tests do with it, and the seam.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use rustix::io::Errno;
use tokio::sync::watch;

use super::disk::{Contents, Disk};
use super::fault::Fault;
use super::layout::Layout;
use super::mounted::{Mount, Mounted};
use super::programs;
use super::served::FileService;
use super::state::State;
use super::tree::{Entry, FileTree};
use crate::system::{
    Amount, Changes, Command, DeviceNumber, FileKind, MOUNT_TABLE, MountCall, MountFlags, Output,
    OwnerChange, RunError, Statistics, System,
};

const GIB: u64 = 1024 * 1024 * 1024;

/// A simulated machine. Clones are the same machine.
#[derive(Clone)]
pub struct SimulatedMachine {
    state: Arc<Mutex<State>>,
    changed: Arc<watch::Sender<u64>>,
    died: Arc<watch::Sender<bool>>,
}

impl fmt::Debug for SimulatedMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimulatedMachine")
    }
}

impl SimulatedMachine {
    /// A machine with a disk of the operating system and a resource disk.
    pub fn new(layout: Layout) -> Self {
        let mut tree = FileTree::default();
        let file = |text: &str| Entry::File(text.to_owned());
        for folder in ["/dev", "/proc/self", "/sys/class/block", "/sys/bus/scsi/devices", "/sys/class/nvme"] {
            tree.put(folder, Entry::Folder);
        }
        tree.put(MOUNT_TABLE, file(""));
        for (number, name) in [(1, "sda"), (2, "sdb")] {
            tree.put(format!("/dev/{name}"), Entry::Device(number));
        }
        if layout.is_scsi() {
            // The LUNs of the system's disks are those of data disks, too.
            for (lun, name) in [(0, "sda"), (1, "sdb")] {
                let device = format!("/sys/devices/host0/0:0:0:{lun}");
                tree.put(format!("{device}/vendor"), file("Msft\n"));
                tree.put(format!("{device}/model"), file("Virtual Disk\n"));
                tree.put(format!("{device}/block/{name}"), Entry::Folder);
                tree.put(format!("/sys/bus/scsi/devices/0:0:0:{lun}"), Entry::Link(device.into()));
            }
            tree.put("/sys/class/scsi_host/host5/scan", file(""));
        }
        if layout == Layout::ScsiWithLinks {
            tree.put("/dev/disk/azure/root", Entry::Link("../../sda".into()));
            tree.put("/dev/disk/azure/resource", Entry::Link("../../sdb".into()));
        }
        if layout.is_nvme() {
            tree.put("/sys/devices/nvme0/model", file("MSFT NVMe Accelerator v1.0              \n"));
            tree.put("/sys/devices/nvme0/rescan_controller", file(""));
            tree.put("/sys/class/nvme/nvme0", Entry::Link("/sys/devices/nvme0".into()));
            // A local disk, whose namespace is that of a data disk.
            tree.put("/sys/devices/nvme1/model", file("Microsoft NVMe Direct Disk v2\n"));
            tree.put("/sys/devices/nvme1/nvme1n2/nsid", file("2\n"));
            tree.put("/sys/devices/nvme1/nvme1n2/device", Entry::Link("/sys/devices/nvme1".into()));
            tree.put("/sys/class/block/nvme1n2", Entry::Link("/sys/devices/nvme1/nvme1n2".into()));
            tree.put("/dev/nvme1n2", Entry::Device(2));
        }
        let disks = [(1, "sda"), (2, "sdb")].map(|(number, name)| {
            let contents = Contents::file_system("ext4", u64::MAX - u64::from(number));
            (number, disk(name, u8::MAX, contents, 30 * GIB))
        });
        let state = State {
            layout,
            tree,
            disks: BTreeMap::from(disks),
            mounts: Vec::new(),
            unseen: Vec::new(),
            busy: BTreeSet::new(),
            missing_programs: BTreeSet::new(),
            next_device: 32,
            next_data: 1,
            steps: 0,
            fault: None,
            journal: Vec::new(),
            modes: BTreeMap::new(),
            images: BTreeMap::new(),
            protocols: ["cifs", "nfs4"].map(str::to_owned).into(),
            services: BTreeMap::new(),
            sessions: BTreeMap::new(),
            tickets: BTreeSet::new(),
            can_change_passwords: true,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            changed: Arc::new(watch::Sender::new(0)),
            died: Arc::new(watch::Sender::new(false)),
        }
    }

    fn next_disk(&self, lun: u8, contents: Contents, bytes: u64) -> Disk {
        let state = self.state.lock();
        let number =
            usize::from(u16::try_from(state.next_device - 32).unwrap_or_default()) + state.unseen.len();
        let letter = |at: usize| char::from(b'a' + u8::try_from(at % 26).unwrap_or_default());
        let name = match state.layout {
            layout if layout.is_nvme() => format!("nvme0n{}", number + 2),
            _ if number < 24 => format!("sd{}", letter(number + 2)),
            _ => format!("sd{}{}", letter((number - 24) / 26), letter(number - 24)),
        };
        disk(&name, lun, contents, bytes)
    }

    /// Attaches a disk. Its device is there at once, with an event.
    pub fn attach(&self, lun: u8, contents: Contents, gib: u64) {
        let disk = self.next_disk(lun, contents, gib * GIB);
        self.state.lock().show(disk);
        self.announce();
    }

    /// Attaches a disk that appears only once the machine's hosts are scanned, without an event.
    pub fn attach_unseen(&self, lun: u8, contents: Contents, gib: u64) {
        let disk = self.next_disk(lun, contents, gib * GIB);
        self.state.lock().unseen.push(disk);
    }

    /// Takes a disk away. Mounts of it do not answer any more.
    pub fn detach(&self, lun: u8) {
        self.state.lock().hide(lun);
        self.announce();
    }

    /// Lets a disk grow in Azure.
    pub fn grow(&self, lun: u8, gib: u64) {
        for disk in self.state.lock().disks.values_mut().filter(|disk| disk.lun == lun) {
            disk.bytes_in_azure = gib * GIB;
        }
    }

    /// Lets the machine see a disk's growth without a rescan.
    pub fn announce_growth(&self, lun: u8) {
        for disk in self.state.lock().disks.values_mut().filter(|disk| disk.lun == lun) {
            disk.bytes = disk.bytes_in_azure;
        }
        self.announce();
    }

    /// Takes a file or folder away, with all below it.
    pub fn remove_path(&self, path: &str) {
        self.state.lock().tree.cut(path);
    }

    /// Adds a second node that claims the LUN, without a link.
    pub fn add_rival(&self, lun: u8) {
        let mut state = self.state.lock();
        let device = format!("/sys/devices/host6/6:0:0:{lun}");
        for (member, text) in [("vendor", "Msft"), ("model", "Virtual Disk")] {
            state.tree.put(format!("{device}/{member}"), Entry::File(text.to_owned()));
        }
        state.tree.put(format!("{device}/block/sdb"), Entry::Folder);
        state.tree.put(format!("/sys/bus/scsi/devices/6:0:0:{lun}"), Entry::Link(device.into()));
    }

    /// Adds a partition to a disk, which has its own contents.
    pub fn add_partition(&self, lun: u8, partition: u32, contents: Contents) {
        let mut state = self.state.lock();
        let found = state.disks.values().find(|disk| disk.lun == lun).map(|disk| disk.name.clone());
        let name = found.unwrap_or_default();
        let separator = if name.ends_with(|last: char| last.is_ascii_digit()) { "p" } else { "" };
        let number = state.next_device;
        state.next_device += 1;
        let own = format!("{name}{separator}{partition}");
        state.tree.put(format!("/dev/{own}"), Entry::Device(number));
        state.disks.insert(number, disk(&own, u8::MAX, contents, GIB));
        drop(state);
        self.announce();
    }

    pub fn set_unreadable(&self, lun: u8) {
        for disk in self.state.lock().disks.values_mut().filter(|disk| disk.lun == lun) {
            disk.is_readable = false;
        }
    }

    pub fn remove_program(&self, program: &str) {
        self.state.lock().missing_programs.insert(program.to_owned());
    }

    /// A program uses what is mounted there.
    pub fn set_busy(&self, path: &str, is_busy: bool) {
        let mut state = self.state.lock();
        if is_busy {
            state.busy.insert(path.into());
        } else {
            state.busy.remove(Path::new(path));
        }
    }

    /// Mounts answer with errors from now on.
    pub fn set_dead(&self, path: &str) {
        for mount in self.state.lock().mounts.iter_mut().filter(|mount| mount.point == Path::new(path)) {
            mount.is_dead = true;
        }
    }

    /// Lets the step after so many others go wrong.
    pub fn plan(&self, after: u64, fault: Fault) {
        let mut state = self.state.lock();
        state.fault = Some((state.steps + after, fault));
    }

    /// No step goes wrong from now on, and the process lives.
    pub fn heal(&self) {
        self.state.lock().fault = None;
        self.died.send_replace(false);
    }

    /// Returns once the process has died.
    pub async fn death(&self) {
        let mut died = self.died.subscribe();
        let _ = died.wait_for(|died| *died).await;
    }

    /// How many steps there were.
    pub fn steps(&self) -> u64 {
        self.state.lock().steps
    }

    /// The commands and writes since the beginning, and since this was called last.
    pub fn take_journal(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().journal)
    }

    pub fn contents(&self, lun: u8) -> Contents {
        let state = self.state.lock();
        let found = state.disks.values().find(|disk| disk.lun == lun);
        found.map_or(Contents::Blank, |disk| disk.contents.clone())
    }

    pub fn file_system_gib(&self, lun: u8) -> u64 {
        let state = self.state.lock();
        state.disks.values().find(|disk| disk.lun == lun).map_or(0, |disk| disk.file_system_bytes / GIB)
    }

    /// All mounts, each as `SOURCE TARGET OPTIONS`, with the options for the file system.
    pub fn mounts(&self) -> Vec<String> {
        let state = self.state.lock();
        let words = |mount: &Mount| {
            let data = if mount.data.is_empty() { String::new() } else { format!(",{}", mount.data) };
            format!("{} {} {}{data}", mount.source.display(), mount.point.display(), mount.options())
        };
        state.mounts.iter().map(words).collect()
    }

    pub fn exists(&self, path: &str) -> bool {
        self.state.lock().tree.at(Path::new(path)).is_ok()
    }

    /// Creates a file with a text.
    pub fn put_file(&self, path: &str, text: &str) {
        self.state.lock().tree.put(path, Entry::File(text.to_owned()));
    }

    /// Creates a link.
    pub fn put_link(&self, path: &str, target: &str) {
        self.state.lock().tree.put(path, Entry::Link(target.into()));
    }

    /// Creates a plain file that is the image of a disk.
    pub fn put_image(&self, path: &str, contents: Contents) {
        let mut state = self.state.lock();
        let number = state.next_device;
        state.next_device += 1;
        state.tree.put(path, Entry::File(String::new()));
        state.images.insert(path.into(), number);
        state.disks.insert(number, disk(path, u8::MAX, contents, GIB));
    }

    pub fn text(&self, path: &str) -> String {
        self.state.lock().tree.text(Path::new(path)).map(|text| text.clone()).unwrap_or_default()
    }

    /// Adds a service of files, or replaces one.
    pub fn serve(&self, host: &str, service: FileService) {
        self.state.lock().services.insert(host.to_owned(), service);
    }

    /// Changes a service of files. Mounts whose key is gone do not answer any more.
    pub fn change_service(&self, host: &str, change: impl FnOnce(&mut FileService)) {
        let mut state = self.state.lock();
        if let Some(service) = state.services.get_mut(host) {
            change(service);
        }
        state.check_sessions();
    }

    /// Takes a file system away from the kernel.
    pub fn remove_protocol(&self, name: &str) {
        self.state.lock().protocols.remove(name);
    }

    /// From now on the kernel does not let mounts change their password, as older ones.
    pub fn keep_passwords(&self) {
        self.state.lock().can_change_passwords = false;
    }

    /// The mode of a file or folder.
    pub fn mode(&self, path: &str) -> u32 {
        self.state.lock().modes.get(Path::new(path)).copied().unwrap_or(0o755)
    }

    fn announce(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// A step: what the kernel does, unless something goes wrong.
    async fn step<T>(&self, effect: impl FnOnce(&mut State) -> T + Send, failed: fn() -> T) -> T
    where
        T: Send,
    {
        let done = {
            let mut state = self.state.lock();
            let own = state.steps;
            state.steps += 1;
            let fault = state.fault.filter(|(at, _)| *at == own).map(|(_, fault)| fault);
            match fault {
                None => Some(effect(&mut state)),
                Some(Fault::Fail) => Some(failed()),
                Some(Fault::FailAfter) => {
                    effect(&mut state);
                    Some(failed())
                }
                Some(Fault::DieBefore) => None,
                Some(Fault::DieAfter) => {
                    effect(&mut state);
                    None
                }
            }
        };
        match done {
            Some(done) => done,
            None => {
                self.died.send_replace(true);
                std::future::pending().await
            }
        }
    }

    async fn call<T: Send>(&self, effect: impl FnOnce(&mut State) -> io::Result<T> + Send) -> io::Result<T> {
        self.step(effect, || Err(Errno::IO.into())).await
    }
}

fn disk(name: &str, lun: u8, contents: Contents, bytes: u64) -> Disk {
    let file_system_bytes = if contents.data().is_some() { bytes } else { 0 };
    Disk {
        name: name.to_owned(),
        lun,
        contents,
        bytes,
        bytes_in_azure: bytes,
        file_system_bytes,
        is_readable: true,
    }
}

#[derive(Debug)]
struct Announcements(watch::Receiver<u64>);

#[async_trait]
impl Changes for Announcements {
    async fn next(&mut self) -> io::Result<()> {
        self.0.changed().await.map_err(io::Error::other)
    }
}

#[async_trait]
impl System for SimulatedMachine {
    async fn run(&self, command: &Command) -> Result<Output, RunError> {
        let effect = |state: &mut State| {
            state.journal.push(command.to_string());
            programs::run(state, command)
        };
        self.step(effect, || Ok(Output { code: Some(32), ..Output::default() })).await
    }

    async fn entries(&self, folder: &Path, most: usize) -> io::Result<Vec<String>> {
        let entries = |state: &mut State| {
            if let Some(mount) = state.topmost(folder) {
                let dead =
                    if matches!(mount.what, Mounted::Share { .. }) { Errno::ACCESS } else { Errno::IO };
                return if mount.is_dead { Err(dead.into()) } else { Ok(Vec::new()) };
            }
            let mut names = state.tree.names(folder)?;
            names.truncate(most);
            Ok(names)
        };
        self.call(entries).await
    }

    async fn read(&self, file: &Path) -> io::Result<String> {
        let read = |state: &mut State| {
            if file == Path::new(MOUNT_TABLE) {
                let lines = state.mounts.iter().enumerate().map(|(at, mount)| mount.line(at + 20));
                return Ok(lines.collect());
            }
            if file == Path::new("/proc/filesystems") {
                return Ok(state.protocols.iter().map(|name| format!("nodev\t{name}\n")).collect());
            }
            state.tree.text(file).map(|text| text.clone())
        };
        self.call(read).await
    }

    async fn write(&self, file: &Path, text: &str) -> io::Result<()> {
        let write = |state: &mut State| {
            state.write(file, text)?;
            state.journal.push(format!("echo {text} > {}", file.display()));
            Ok(())
        };
        self.call(write).await
    }

    async fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.call(|state| state.tree.canonical(path)).await
    }

    async fn kind(&self, path: &Path) -> io::Result<FileKind> {
        let kind = |state: &mut State| {
            if let Some(mount) = state.topmost(path) {
                return match &mount.what {
                    _ if mount.is_dead => Err(Errno::IO.into()),
                    Mounted::Node { device, .. } => {
                        Ok(FileKind::BlockDevice(DeviceNumber { major: 8, minor: *device }))
                    }
                    _ => Ok(FileKind::Folder),
                };
            }
            Ok(match state.tree.at(path)? {
                Entry::Folder => FileKind::Folder,
                Entry::Device(device) => FileKind::BlockDevice(DeviceNumber { major: 8, minor: *device }),
                Entry::File(_) | Entry::Link(_) => FileKind::File,
            })
        };
        self.call(kind).await
    }

    async fn create_folder(&self, path: &Path) -> io::Result<()> {
        let create = |state: &mut State| match state.tree.at(path) {
            Ok(Entry::Folder) => Ok(()),
            Ok(_) => Err(Errno::EXIST.into()),
            Err(_) => {
                state.tree.put(path, Entry::Folder);
                Ok(())
            }
        };
        self.call(create).await
    }

    async fn create_file(&self, path: &Path) -> io::Result<()> {
        let create = |state: &mut State| match state.tree.at(path) {
            Ok(Entry::Folder) => Err(Errno::ISDIR.into()),
            Ok(_) => Ok(()),
            Err(_) => {
                state.tree.put(path, Entry::File(String::new()));
                Ok(())
            }
        };
        self.call(create).await
    }

    async fn remove(&self, path: &Path) -> io::Result<()> {
        let remove = |state: &mut State| {
            if state.topmost(path).is_some() {
                return Err(Errno::BUSY.into());
            }
            state.tree.remove(path)
        };
        self.call(remove).await
    }

    async fn size(&self, device: &Path) -> io::Result<u64> {
        self.call(|state| state.disk(device).map(|disk| disk.bytes)).await
    }

    async fn starts_with_zeros(&self, device: &Path) -> io::Result<bool> {
        let read = |state: &mut State| {
            let disk = state.disk(device)?;
            let is_zero =
                matches!(disk.contents, Contents::Blank | Contents::SpareSuperblock | Contents::Hidden(_));
            if disk.is_readable { Ok(is_zero) } else { Err(Errno::IO.into()) }
        };
        self.call(read).await
    }

    async fn mount(&self, call: &MountCall) -> io::Result<()> {
        let mount = |state: &mut State| {
            if *state.tree.at(&call.target)? != Entry::Folder {
                return Err(Errno::NOTDIR.into());
            }
            let device = state.device_number(&call.source)?;
            let disk = state.disk(&call.source)?;
            match &disk.contents {
                Contents::FileSystem { kind, .. } if *kind == call.file_system && disk.is_readable => {}
                _ => return Err(Errno::INVAL.into()),
            }
            state.mounts.push(Mount {
                what: Mounted::FileSystem { device, kind: call.file_system.clone() },
                point: call.target.clone(),
                source: call.source.clone(),
                flags: call.flags,
                data: call.data.clone(),
                is_dead: false,
            });
            Ok(())
        };
        self.call(mount).await
    }

    async fn bind(&self, source: &Path, target: &Path) -> io::Result<()> {
        let bind = |state: &mut State| {
            let target_entry = state.tree.at(target)?.clone();
            let mut new = match state.topmost(source) {
                Some(mount) => mount.clone(),
                None => {
                    let what = match state.tree.at(source)? {
                        Entry::Device(device) => {
                            let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
                            Mounted::Node { device: *device, name }
                        }
                        _ => Mounted::Folder,
                    };
                    Mount {
                        what,
                        point: PathBuf::new(),
                        source: source.to_owned(),
                        flags: MountFlags::empty(),
                        data: String::new(),
                        is_dead: false,
                    }
                }
            };
            let is_folder = !matches!(new.what, Mounted::Node { .. });
            if is_folder != (target_entry == Entry::Folder) {
                return Err(Errno::NOTDIR.into());
            }
            new.point = target.to_owned();
            state.mounts.push(new);
            Ok(())
        };
        self.call(bind).await
    }

    async fn remount_bind(&self, target: &Path, flags: MountFlags) -> io::Result<()> {
        let remount = |state: &mut State| {
            let found = state.mounts.iter_mut().rev().find(|mount| mount.point == target);
            found.ok_or(Errno::INVAL)?.flags = flags;
            Ok(())
        };
        self.call(remount).await
    }

    async fn unmount(&self, target: &Path) -> io::Result<()> {
        let unmount = |state: &mut State| {
            if state.busy.contains(target) {
                return Err(Errno::BUSY.into());
            }
            let found = state.mounts.iter().rposition(|mount| mount.point == target);
            state.mounts.remove(found.ok_or(Errno::INVAL)?);
            Ok(())
        };
        self.call(unmount).await
    }

    async fn statistics(&self, path: &Path) -> io::Result<Statistics> {
        let statistics = |state: &mut State| {
            state.tree.at(path)?;
            let total = state.file_system(path).map_or(GIB, |disk| disk.file_system_bytes);
            let used = total / 4;
            let inodes = Amount { total: 1_000, available: 900, used: 100 };
            Ok(Statistics { space: Amount { total, available: total - used, used }, inodes })
        };
        self.call(statistics).await
    }

    async fn is_plain_file(&self, path: &Path) -> io::Result<bool> {
        self.call(|state| Ok(matches!(state.tree.entry(path), Some(Entry::File(_))))).await
    }

    async fn write_private(&self, file: &Path, text: &str) -> io::Result<()> {
        let write = |state: &mut State| {
            state.tree.put(file, Entry::File(text.to_owned()));
            state.modes.insert(file.to_owned(), 0o600);
            Ok(())
        };
        self.call(write).await
    }

    async fn permissions(&self, path: &Path) -> io::Result<u32> {
        self.call(|state| Ok(state.modes.get(path).copied().unwrap_or(0o755))).await
    }

    async fn set_permissions(&self, path: &Path, mode: u32) -> io::Result<()> {
        let change = |state: &mut State| {
            state.journal.push(format!("chmod {mode:o} {}", path.display()));
            state.modes.insert(path.to_owned(), mode);
            Ok(())
        };
        self.call(change).await
    }

    async fn change_group(&self, folder: &Path, group: u32, when: OwnerChange) -> io::Result<()> {
        let change = |state: &mut State| {
            state.journal.push(format!("chgrp {group} {} {when:?}", folder.display()));
            Ok(())
        };
        self.call(change).await
    }

    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = |state: &mut State| {
            let service = state.services.get(host).ok_or(io::ErrorKind::NotFound)?;
            Ok(service.addresses.clone())
        };
        self.call(found).await
    }

    async fn reach(&self, address: SocketAddr) -> io::Result<()> {
        let reach = |state: &mut State| {
            let mut services = state.services.values();
            let listens = services.any(|service| {
                service.addresses.contains(&address.ip()) && service.ports.contains(&address.port())
            });
            if listens { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
        };
        self.call(reach).await
    }

    async fn changes(&self, _: &[PathBuf]) -> io::Result<Box<dyn Changes>> {
        let receiver = self.changed.subscribe();
        self.call(move |_| Ok(Box::new(Announcements(receiver)) as Box<dyn Changes>)).await
    }
}
