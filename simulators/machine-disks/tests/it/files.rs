//! Worlds on paused time, in which a disk is a file: no test here needs rights.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use azure_simulator::{LatencyProfile, PowerState};
use machine_disks::{Devices, HardwareError, MachineDisks, Options};
use serde_json::json;
use simulated_cluster::running_host;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::world::World;

const GIB: u64 = 1 << 30;

fn write(device: &Path, text: &str) {
    fs::File::options().write(true).open(device).unwrap().write_all(text.as_bytes()).unwrap();
}

fn read(device: &Path, length: usize) -> String {
    let mut bytes = vec![0; length];
    fs::File::open(device).unwrap().read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

async fn world() -> World {
    World::start(Devices::Files, Duration::ZERO).await
}

/// Section 3.14 of the specification of the drivers: where a node looks for a disk on SCSI, by link and by `sys`.
#[tokio::test(start_paused = true)]
async fn a_disk_on_scsi_is_at_its_lun() {
    let world = world().await;
    world.create("data", 4);
    world.attach(&world.machine("first"), &[(3, "data")]);
    let device = world.device("first", 3).await;
    assert_eq!(device, world.path("first", "dev/sdc"));
    assert_eq!(fs::metadata(&device).unwrap().len(), 4 * GIB);
    let sys = world.path("first", "sys/bus/scsi/devices/1:0:0:3");
    assert_eq!(fs::read_to_string(sys.join("vendor")).unwrap().trim(), "Msft");
    assert_eq!(fs::read_to_string(sys.join("model")).unwrap().trim(), "Virtual Disk");
    let size: u64 = fs::read_to_string(sys.join("block/sdc/size")).unwrap().trim().parse().unwrap();
    assert_eq!(size * 512, 4 * GIB);
    let class = world.path("first", "sys/class/block/sdc");
    assert_eq!(class.canonicalize().unwrap(), sys.join("block/sdc"));
    assert_eq!(class.join("device").canonicalize().unwrap(), sys);
    let root = world.path("first", "dev/disk/azure/root");
    assert_eq!(root.canonicalize().unwrap(), world.path("first", "dev/sda"));
    assert!(!world.path("first", "dev/disk/azure/data").exists());
}

/// Section 3.14 of the specification of the drivers: the data disk of LUN n is namespace n + 2 of the controller of disks over the network.
#[tokio::test(start_paused = true)]
async fn a_disk_on_nvme_is_at_its_namespace() {
    let world = world().await;
    world.create("data", 4);
    world.attach(&world.machine("third"), &[(0, "data")]);
    let link = world.path("third", "dev/disk/azure/data/by-lun/0");
    world.until(&link, true).await;
    assert_eq!(link.canonicalize().unwrap(), world.path("third", "dev/nvme0n2"));
    let controller = world.path("third", "sys/class/nvme/nvme0");
    assert_eq!(fs::read_to_string(controller.join("model")).unwrap().trim(), "MSFT NVMe Accelerator v1.0");
    assert_eq!(fs::read_to_string(controller.join("nvme0n2/nsid")).unwrap().trim(), "2");
    let root = world.path("third", "dev/disk/azure/root");
    assert_eq!(root.canonicalize().unwrap(), world.path("third", "dev/nvme0n1"));
    assert_eq!(fs::read_dir(world.path("third", "sys/bus/scsi/devices")).unwrap().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn instances_of_both_kinds_of_scale_sets_get_disks() {
    let world = world().await;
    world.create("one", 4);
    world.create("two", 4);
    let instance = world.compute("virtualMachineScaleSets", "uniform").child("virtualMachines", "0");
    world.attach(&instance, &[(0, "one")]);
    world.device("uniform000000", 0).await;
    assert!(world.path("uniform000000", "dev/disk/azure/root").exists());
    let flexible = world.azure.documents_of_type("Microsoft.Compute/virtualMachines");
    let flexible = flexible.iter().find(|one| one["name"].as_str().unwrap().starts_with("flexible")).unwrap();
    let (id, host) = (flexible["id"].as_str().unwrap().parse().unwrap(), running_host(flexible).unwrap());
    world.attach(&id, &[(1, "two")]);
    world.device(&host, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_disk_moves_with_what_was_written() {
    let world = world().await;
    let (first, second) = (world.machine("first"), world.machine("second"));
    world.create("data", 4);
    world.attach(&first, &[(0, "data")]);
    let mut open = fs::File::options().write(true).open(world.device("first", 0).await).unwrap();
    open.write_all(b"hello").unwrap();
    world.attach(&first, &[]);
    world.attach(&second, &[(5, "data")]);
    let device = world.device("second", 5).await;
    assert!(!world.lun("first", 0).exists());
    assert_eq!(read(&device, 5), "hello");
    // What the first machine still writes does not get there.
    open.seek(SeekFrom::Start(0)).unwrap();
    open.write_all(b"wrong").unwrap();
    assert_eq!(read(&device, 5), "hello");
    // A machine that is gone has no folder, and the disk stays.
    world.attach(&second, &[]);
    world.azure.delete(&second).unwrap();
    world.until(&world.path("second", ""), false).await;
    world.attach(&first, &[(1, "data")]);
    assert_eq!(read(&world.device("first", 1).await, 5), "hello");
}

#[tokio::test(start_paused = true)]
async fn copies_hold_what_their_source_held_when_azure_took_them() {
    let world = world().await;
    let first = world.machine("first");
    world.create("data", 4);
    world.attach(&first, &[(0, "data")]);
    let device = world.device("first", 0).await;
    write(&device, "before");
    let snapshot = world.compute("snapshots", "shot");
    world.copy(&world.disk("data"), &snapshot);
    write(&device, "later!");
    world.copy(&world.disk("data"), &world.disk("clone"));
    write(&device, "latest");
    world.copy(&snapshot, &world.disk("restored"));
    // The sources are gone before anything could look at them.
    world.azure.delete(&snapshot).unwrap();
    world.attach(&first, &[(1, "clone"), (2, "restored")]);
    assert_eq!(read(&world.device("first", 1).await, 6), "later!");
    assert_eq!(read(&world.device("first", 2).await, 6), "before");
    // Another disk of the same name is another disk.
    world.gone("first", 0).await;
    world.azure.delete(&world.disk("data")).unwrap();
    world.create("data", 4);
    world.attach(&first, &[(3, "data")]);
    assert_eq!(read(&world.device("first", 3).await, 6), "\0\0\0\0\0\0");
}

#[tokio::test(start_paused = true)]
async fn a_disk_grows_and_a_deleted_one_leaves_no_file() {
    let world = world().await;
    let first = world.machine("first");
    world.create("data", 4);
    world.attach(&first, &[(0, "data")]);
    let device = world.device("first", 0).await;
    write(&device, "hello");
    world.azure.edit(&world.disk("data"), |disk| disk["properties"]["diskSizeGB"] = json!(8)).unwrap();
    let is_grown = || fs::metadata(&device).unwrap().len() == 8 * GIB;
    world.until_it(is_grown, "the device is larger").await;
    let size = world.path("first", "sys/class/block/sdc/size");
    assert_eq!(fs::read_to_string(size).unwrap().trim(), (8 * GIB / 512).to_string());
    assert_eq!(read(&device, 5), "hello");
    assert!(fs::metadata(&device).unwrap().blocks() < 100, "the file is sparse");
    let files = || fs::read_dir(world.path(".contents", "")).unwrap().count();
    let before = files();
    world.attach(&first, &[]);
    world.gone("first", 0).await;
    world.azure.delete(&world.disk("data")).unwrap();
    world.until_it(|| files() < before, "the file is gone").await;
}

/// A device comes some time after Azure's list names the disk, however long the operation takes.
#[tokio::test(start_paused = true)]
async fn a_device_comes_after_the_delay() {
    let world = World::start(Devices::Files, Duration::from_secs(30)).await;
    let begun = Instant::now();
    world.create("data", 4);
    world.attach(&world.machine("first"), &[(0, "data")]);
    world.device("first", 0).await;
    let passed = begun.elapsed();
    assert!(passed >= Duration::from_secs(30) && passed < Duration::from_secs(31), "{passed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_off_has_no_devices() {
    let world = world().await;
    world.azure.set_latency(LatencyProfile::default());
    world.create("data", 4);
    world.attach(&world.machine("first"), &[(0, "data")]);
    world.device("first", 0).await;
    world.switch("first", PowerState::Deallocated);
    world.until(&world.path("first", ""), false).await;
    world.switch("first", PowerState::Running);
    world.device("first", 0).await;
}

/// Leftovers of a killed simulation are removed, and a running one keeps its folder.
#[tokio::test(start_paused = true)]
async fn the_folder_is_empty_before_and_after() {
    let folder = tempfile::tempdir().unwrap();
    for left in ["killed/dev/disk/azure/scsi1", "mine", ".contents"] {
        fs::create_dir_all(folder.path().join(left)).unwrap();
    }
    fs::write(folder.path().join(".contents/disk.img"), "x").unwrap();
    let mut world = World::start_in(folder, Devices::Files, Duration::ZERO).await;
    world.until(&world.path("first", "dev/disk/azure/root"), true).await;
    assert!(!world.path("killed", "").exists());
    assert!(!world.path(".contents", "disk.img").exists());
    let options =
        Options { folder: world.folder.path().to_owned(), delay: Duration::ZERO, devices: Devices::Files };
    let second = MachineDisks::start(&world.azure, options, running_host, &CancellationToken::new());
    assert!(matches!(second, Err(HardwareError::InUse { .. })), "{second:?}");
    world.disks.take().unwrap().release().await;
    let left: Vec<_> =
        fs::read_dir(world.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["mine"]);
}
