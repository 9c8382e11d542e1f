//! Loop devices, where this machine allows them: as root on Linux, with the module loop.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use machine_disks::{Devices, HardwareError, MachineDisks, Options};
use simulated_cluster::running_host;
use tokio_util::sync::CancellationToken;

use crate::world::World;

/// A world with loop devices; `None` where they cannot be had.
async fn world() -> Option<World> {
    let folder = tempfile::tempdir().unwrap();
    let azure = azure_simulator::Azure::new(azure_simulator::Options::default());
    let options = Options { folder: folder.path().to_owned(), delay: Duration::ZERO, devices: Devices::Loop };
    match MachineDisks::start(&azure, options, running_host, &CancellationToken::new()) {
        Ok(disks) => disks.release().await,
        // The message has the remedy.
        Err(error @ (HardwareError::LoopDevices { .. } | HardwareError::Nodes { .. })) => {
            assert!(error.to_string().contains("run as root"), "{error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    Some(World::start_in(folder, Devices::Loop, Duration::ZERO).await)
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().unwrap().status.success()
}

/// Mounts a device, and unmounts it again when dropped.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn new(world: &World, name: &str, device: &Path) -> Self {
        let target = world.path("", "").join(name);
        fs::create_dir_all(&target).unwrap();
        let (device, path) = (device.to_str().unwrap(), target.to_str().unwrap());
        assert!(succeeds("mount", &["-t", "ext4", device, path]), "mount {device} {path}");
        Self(target)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        succeeds("umount", &[self.0.to_str().unwrap()]);
    }
}

fn bytes(device: &Path) -> u64 {
    let output = Command::new("blockdev").arg("--getsize64").arg(device).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

/// The loop devices of a folder.
fn loops(folder: &Path) -> usize {
    let devices = fs::read_dir("/sys/block").unwrap().map(|entry| entry.unwrap().path());
    let files = devices.filter_map(|device| fs::read_to_string(device.join("loop/backing_file")).ok());
    files.filter(|file| Path::new(file.trim()).starts_with(folder)).count()
}

/// A disk that is pulled out while it is mounted: its former machine gets errors, and nothing that it still writes
/// reaches the disk, which another machine has meanwhile.
#[tokio::test]
async fn no_later_write_of_the_former_machine_reaches_a_disk_that_was_pulled_out() {
    let Some(world) = world().await else { return };
    let (first, second) = (world.machine("first"), world.machine("second"));
    world.create("data", 1);
    world.attach(&first, &[(0, "data")]);
    let device = world.device("first", 0).await;
    assert_eq!(bytes(&device), 1 << 30);
    assert!(succeeds("mkfs.ext4", &["-q", device.to_str().unwrap()]));
    let former = Mounted::new(&world, "mount-of-first", &device);
    fs::write(former.0.join("kept"), "before").unwrap();
    assert!(succeeds("sync", &["-f", former.0.to_str().unwrap()]));
    let raw = fs::File::options().write(true).open(&device).unwrap();

    world.attach(&first, &[]);
    world.attach(&second, &[(1, "data")]);
    let device = world.device("second", 1).await;
    assert!(!world.lun("first", 0).exists());
    let late = fs::File::create(former.0.join("late")).and_then(|file| file.sync_all());
    assert!(late.is_err(), "a file system without its disk takes no file");
    let written =
        std::os::unix::fs::FileExt::write_all_at(&raw, &[7; 4096], 1 << 20).and_then(|()| raw.sync_all());
    assert!(written.is_err(), "a device without its disk takes no bytes");

    let mount = Mounted::new(&world, "mount-of-second", &device);
    assert_eq!(fs::read_to_string(mount.0.join("kept")).unwrap(), "before");
    assert!(!mount.0.join("late").exists());
    // What is in memory of the former machine is not written later, either.
    drop(raw);
    drop(former);
    drop(mount);
    assert!(succeeds("e2fsck", &["-f", "-n", device.to_str().unwrap()]), "the file system is whole");
}

#[tokio::test]
async fn a_mounted_device_grows_with_its_disk() {
    let Some(world) = world().await else { return };
    world.create("data", 1);
    world.attach(&world.machine("third"), &[(0, "data")]);
    let link = world.path("third", "dev/disk/azure/data/by-lun/0");
    world.until(&link, true).await;
    let device = link.canonicalize().unwrap();
    assert!(succeeds("mkfs.ext4", &["-q", device.to_str().unwrap()]));
    let mount = Mounted::new(&world, "mount", &device);
    world.azure.edit(&world.disk("data"), |disk| disk["properties"]["diskSizeGB"] = 2.into()).unwrap();
    world.until_it(|| bytes(&device) == 2 << 30, "the device is larger").await;
    // Growing ext4 while it is mounted needs a capability that containers lack.
    drop(mount);
    let device = device.to_str().unwrap();
    assert!(succeeds("e2fsck", &["-f", "-p", device]) && succeeds("resize2fs", &[device]));
}

#[tokio::test]
async fn no_loop_device_is_left() {
    let Some(mut world) = world().await else { return };
    world.create("data", 1);
    world.attach(&world.machine("first"), &[(0, "data")]);
    let device = world.device("first", 0).await;
    let folder = world.path("", "");
    assert!(loops(&folder) > 1);
    // Also one that is open goes, once it is closed.
    let open = fs::File::open(&device).unwrap();
    world.disks.take().unwrap().release().await;
    assert_eq!(loops(&folder), 1);
    drop(open);
    assert_eq!(loops(&folder), 0);

    // What a killed simulation leaves is found at the next start.
    let left = folder.join(".contents");
    fs::create_dir_all(&left).unwrap();
    fs::File::create(left.join("left.img")).unwrap().set_len(1 << 20).unwrap();
    assert!(succeeds("losetup", &["--find", left.join("left.img").to_str().unwrap()]));
    assert_eq!(loops(&folder), 1);
    let options = Options { folder, delay: Duration::ZERO, devices: Devices::Loop };
    let azure = azure_simulator::Azure::new(azure_simulator::Options::default());
    let disks = MachineDisks::start(&azure, options, running_host, &world.stop).unwrap();
    assert_eq!(loops(&left), 0);
    disks.release().await;
}
