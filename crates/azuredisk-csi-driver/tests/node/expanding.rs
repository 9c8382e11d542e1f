//! NodeExpandVolume (sections 3.14 and 3.21 of the specification of the drivers).

use csi::v1::NodeExpandVolumeRequest;
use csi::v1::node_server::Node as _;
use tonic::{Code, Request};
use volumes_node::simulated::{Contents, Layout};

use crate::world::{STAGING, Step, TARGET, VOLUME, World, mounted, publish, raw, stage};

const DISKS: [Layout; 4] = [Layout::ScsiWithLinks, Layout::Scsi, Layout::Nvme, Layout::NvmeWithLinks];

/// Section 3.14: the file system grows online, by the target or by the staging path, ten times with the same end.
#[tokio::test(start_paused = true)]
async fn a_file_system_grows_online() {
    for layout in DISKS {
        for kind in ["ext4", "ext3", "xfs", "btrfs"] {
            for path in [TARGET, STAGING] {
                let mut world = World::new(layout);
                world.machine.attach(3, Contents::Blank, 8);
                world.succeeds(Step::Stage(stage(mounted(kind, &[])))).await;
                world.succeeds(Step::Publish(publish(mounted(kind, &[]), TARGET))).await;
                world.machine.grow(3, 16);
                for _ in 0..10 {
                    world.succeeds(Step::Expand(path, 16)).await;
                    assert_eq!(world.machine.file_system_gib(3), 16, "{layout:?} {kind} {path}");
                    world.restart();
                }
            }
        }
    }
}

/// Section 3.14, FIX: of many devices, `sdaa` and NVMe included, the one of the raw volume is rescanned and verified.
#[tokio::test(start_paused = true)]
async fn a_raw_device_is_rescanned_alone() {
    for layout in DISKS {
        let world = World::new(layout);
        for lun in (4..34).chain([3]) {
            world.machine.attach(lun, Contents::Blank, 8);
        }
        world.succeeds(Step::Stage(stage(raw()))).await;
        world.succeeds(Step::Publish(publish(raw(), TARGET))).await;
        world.machine.grow(3, 16);
        world.machine.take_journal();
        world.succeeds(Step::Expand(TARGET, 16)).await;
        let journal = world.machine.take_journal();
        let expected =
            if layout.is_nvme() { "/nvme0n32/device/rescan_controller" } else { "/sdag/device/rescan" };
        assert!(journal.len() == 1 && journal[0].ends_with(expected), "{layout:?}: {journal:?}");
    }
}

/// Section 3.21: a device that has not grown is Unavailable, and its file system is left alone.
#[tokio::test(start_paused = true)]
async fn a_device_that_has_not_grown_is_unavailable() {
    for access in [mounted("", &[]), raw()] {
        let world = World::new(Layout::ScsiWithLinks);
        world.machine.attach(3, Contents::Blank, 8);
        world.succeeds(Step::Stage(stage(access.clone()))).await;
        world.succeeds(Step::Publish(publish(access, TARGET))).await;
        let words = "has 8589934592 bytes after a rescan, and 17179869184 are wanted";
        world.fails(Step::Expand(TARGET, 16), Code::Unavailable, words).await;
        world.machine.grow(3, 16);
        world.succeeds(Step::Expand(TARGET, 16)).await;
    }
}

/// A container that may not write to `/sys`: growth that the machine has announced is enough, and else the remedy is named.
#[tokio::test(start_paused = true)]
async fn a_rescan_that_is_refused_matters_only_if_it_is_needed() {
    let world = World::new(Layout::ScsiWithLinks);
    world.machine.attach(3, Contents::Blank, 8);
    world.succeeds(Step::Stage(stage(mounted("", &[])))).await;
    world.machine.grow(3, 16);
    world.machine.remove_path("/sys/devices/host5/5:0:0:3/rescan");
    let words = "check that the container may write to the machine's /sys";
    world.fails(Step::Expand(STAGING, 16), Code::Internal, words).await;
    world.machine.announce_growth(3);
    world.succeeds(Step::Expand(STAGING, 16)).await;
    assert_eq!(world.machine.file_system_gib(3), 16);
}

/// Growth that is announced while the service waits ends the wait.
#[tokio::test(start_paused = true)]
async fn growth_that_comes_later_is_waited_for() {
    let world = World::new(Layout::NvmeWithLinks);
    world.machine.attach(3, Contents::Blank, 8);
    world.succeeds(Step::Stage(stage(mounted("", &[])))).await;
    let grow = async {
        tokio::time::sleep(std::time::Duration::from_secs(7)).await;
        world.machine.grow(3, 16);
        world.machine.announce_growth(3);
    };
    let ((), ()) = tokio::join!(world.succeeds(Step::Expand(STAGING, 16)), grow);
    assert_eq!(world.machine.file_system_gib(3), 16);
}

/// csi-sanity: no ID, no path; a path where nothing is; section 3.14: ext2 does not grow.
#[tokio::test(start_paused = true)]
async fn each_wrong_request_has_its_code() {
    let world = World::new(Layout::ScsiWithLinks);
    let request = |id: &str, path: &str| {
        let (volume_id, volume_path) = (id.to_owned(), path.to_owned());
        NodeExpandVolumeRequest { volume_id, volume_path, ..NodeExpandVolumeRequest::default() }
    };
    for (id, path, code) in [
        ("", TARGET, Code::InvalidArgument),
        (VOLUME, "", Code::InvalidArgument),
        (VOLUME, "/no/such/path", Code::NotFound),
        (VOLUME, "/dev", Code::NotFound),
    ] {
        let status = world.service.node_expand_volume(Request::new(request(id, path))).await.unwrap_err();
        assert_eq!(status.code(), code, "{id} {path}: {status}");
    }
    world.machine.attach(3, Contents::Blank, 8);
    world.succeeds(Step::Stage(stage(mounted("ext2", &[])))).await;
    world.fails(Step::Expand(STAGING, 8), Code::Internal, "ext2 on /dev/sdc cannot grow").await;
}
