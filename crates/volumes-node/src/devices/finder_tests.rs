//! Devices of simulated machines.

use std::time::Duration;

use super::*;
use crate::simulated::{Contents, Fault, Layout, SimulatedMachine};

fn lun(number: u8) -> Lun {
    Lun::new(number).unwrap()
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn within(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

/// Section 3.14, step 2: links, SCSI disks, and NVMe namespaces without links; never the system's disks, which have the same LUNs.
#[tokio::test(start_paused = true)]
async fn a_disk_is_found_by_its_lun_on_every_kind_of_machine() {
    for layout in Layout::ALL {
        let machine = SimulatedMachine::new(layout);
        let devices = Devices::new(Arc::new(machine.clone()), "/");
        for number in 0..30 {
            machine.attach(number, Contents::Blank, u64::from(number) + 1);
        }
        for number in 0..30 {
            let device = devices.find(lun(number), None, within(1)).await.unwrap();
            let bytes = device.size(&machine).await.unwrap();
            assert_eq!(bytes >> 30, u64::from(number) + 1, "{layout:?} {number} {device}");
        }
    }
}

/// Section 3.14, FIX: it really waits, and an event ends the wait.
#[tokio::test(start_paused = true)]
async fn a_disk_that_comes_later_is_waited_for() {
    for layout in Layout::ALL {
        let machine = SimulatedMachine::new(layout);
        let devices = Devices::new(Arc::new(machine.clone()), "/");
        let attach = async {
            seconds(95).await;
            machine.attach(3, Contents::Blank, 8);
            Instant::now()
        };
        let (found, attached) = tokio::join!(devices.find(lun(3), None, within(110)), attach);
        found.unwrap();
        assert_eq!(attached.elapsed(), Duration::ZERO, "{layout:?}: it was found by the event");
    }
}

/// Section 3.14, step 2: hosts are asked to look.
#[tokio::test(start_paused = true)]
async fn a_disk_without_an_event_is_found_by_a_scan() {
    for layout in [Layout::ScsiWithLinks, Layout::Scsi, Layout::Nvme, Layout::NvmeWithLinks] {
        let machine = SimulatedMachine::new(layout);
        let devices = Devices::new(Arc::new(machine.clone()), "/");
        machine.attach_unseen(3, Contents::Blank, 8);
        devices.find(lun(3), None, within(1)).await.unwrap();
        machine.take_journal();
        // What is there is not scanned for.
        devices.find(lun(3), None, within(1)).await.unwrap();
        assert_eq!(machine.take_journal(), Vec::<String>::new(), "{layout:?}");
    }
}

/// Section 3.21: what was looked at is named, with the remedy, at the deadline and not before.
#[tokio::test(start_paused = true)]
async fn a_disk_that_never_comes_is_an_error_that_names_the_checks() {
    let machine = SimulatedMachine::new(Layout::ScsiWithLinks);
    let devices = Devices::new(Arc::new(machine.clone()), "/");
    let begun = Instant::now();
    let error = devices.find(lun(1), None, within(110)).await.unwrap_err().to_string();
    assert_eq!(begun.elapsed(), Duration::from_secs(110));
    for part in [
        "no device for LUN 1 within 110 s",
        "/dev/disk/azure/scsi1/lun1 leads to no device",
        "SCSI device 0:0:0:1 is sdb, which is no data disk",
        "has NVMe namespace 3",
        "check that the disk is attached",
    ] {
        assert!(error.contains(part), "{part} is missing in {error}");
    }
}

/// Two disks at one LUN: a guess could format the wrong one.
#[tokio::test(start_paused = true)]
async fn two_disks_with_one_lun_are_an_error() {
    let machine = SimulatedMachine::new(Layout::Scsi);
    let devices = Devices::new(Arc::new(machine.clone()), "/");
    machine.attach(4, Contents::Blank, 8);
    machine.add_rival(4);
    let error = devices.find(lun(4), None, within(20)).await.unwrap_err().to_string();
    assert!(error.contains("/dev/sdc and /dev/sdb both have LUN 4"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_was_replaced_is_found_at_its_new_device() {
    let machine = SimulatedMachine::new(Layout::ScsiWithLinks);
    let devices = Devices::new(Arc::new(machine.clone()), "/");
    machine.attach(2, Contents::Blank, 8);
    assert_eq!(devices.find(lun(2), None, within(1)).await.unwrap().to_string(), "/dev/sdc");
    machine.detach(2);
    machine.attach(5, Contents::Blank, 9);
    machine.attach(2, Contents::Blank, 10);
    assert_eq!(devices.find(lun(2), None, within(1)).await.unwrap().to_string(), "/dev/sde");
}

/// Section 3.14, step 5, FIX.
#[tokio::test(start_paused = true)]
async fn a_partition_is_waited_for_like_its_disk() {
    for layout in Layout::ALL {
        let machine = SimulatedMachine::new(layout);
        let devices = Devices::new(Arc::new(machine.clone()), "/");
        machine.attach(0, Contents::PartitionTable("gpt".into()), 8);
        let add = async {
            seconds(5).await;
            machine.add_partition(0, 2, Contents::file_system("ext4", 77));
        };
        let (found, ()) = tokio::join!(devices.find(lun(0), Some(Partition(2)), within(20)), add);
        let expected = if layout.is_nvme() { "/dev/nvme0n2p2" } else { "/dev/sdc2" };
        assert_eq!(found.unwrap().to_string(), expected);
        let error = devices.find(lun(0), Some(Partition(3)), within(1)).await.unwrap_err().to_string();
        assert!(error.contains("has no partition 3"), "{error}");
    }
}

/// Section 3.14, NodeExpandVolume, FIX: this one device is rescanned, `sdaa` and NVMe included, and its size is verified.
#[tokio::test(start_paused = true)]
async fn one_device_is_rescanned_and_its_size_is_verified() {
    for layout in [Layout::ScsiWithLinks, Layout::Scsi, Layout::Nvme, Layout::NvmeWithLinks] {
        let machine = SimulatedMachine::new(layout);
        let devices = Devices::new(Arc::new(machine.clone()), "/");
        for number in 0..30 {
            machine.attach(number, Contents::Blank, 8);
        }
        let device = devices.find(lun(28), None, within(1)).await.unwrap();
        machine.grow(28, 16);
        let error = devices.wait_for_size(&device, 16 << 30, within(1)).await.unwrap_err().to_string();
        assert!(error.contains("has 8589934592 bytes after a rescan, and 17179869184 are wanted"), "{error}");
        machine.take_journal();
        devices.rescan(&device).await.unwrap();
        assert_eq!(machine.take_journal().len(), 1, "{layout:?}");
        assert_eq!(devices.wait_for_size(&device, 16 << 30, within(1)).await.unwrap(), 16 << 30);
    }
}

/// A read that fails once is repeated at the next look.
#[tokio::test(start_paused = true)]
async fn no_single_failure_hides_a_disk() {
    let machine = SimulatedMachine::new(Layout::ScsiWithLinks);
    let devices = Devices::new(Arc::new(machine.clone()), "/");
    machine.attach(3, Contents::Blank, 8);
    let before = machine.steps();
    devices.find(lun(3), None, within(1)).await.unwrap();
    for step in 0..machine.steps() - before {
        machine.plan(step, Fault::Fail);
        let device = devices.find(lun(3), None, within(30)).await.unwrap();
        assert_eq!(device.to_string(), "/dev/sdc", "after a failure of step {step}");
    }
}

/// Section 3.15: settings are files of this device alone.
#[tokio::test(start_paused = true)]
async fn settings_are_written_below_the_devices_folder_alone() {
    let machine = SimulatedMachine::new(Layout::ScsiWithLinks);
    let devices = Devices::new(Arc::new(machine.clone()), "/");
    machine.attach(0, Contents::Blank, 8);
    machine.attach(1, Contents::Blank, 8);
    let device = devices.find(lun(0), None, within(1)).await.unwrap();
    let set = async |path: &str| devices.set(&device, &[(path.to_owned(), "8".to_owned())]).await;
    set("queue/read_ahead_kb").await.unwrap();
    set("device/queue_depth").await.unwrap();
    assert_eq!(machine.text("/sys/class/block/sdc/queue/read_ahead_kb"), "8");
    assert_eq!(machine.text("/sys/class/block/sdd/queue/read_ahead_kb"), "default\n");
    for path in ["../sdd/queue/read_ahead_kb", "/etc/passwd", "device/../5:0:0:1/queue_depth"] {
        let error = set(path).await.unwrap_err();
        assert!(matches!(error, DeviceError::InvalidSetting(_)), "{path}: {error}");
    }
    let error = set("queue/none").await.unwrap_err().to_string();
    assert!(error.contains("cannot set queue/none=8 of /dev/sdc"), "{error}");
}
