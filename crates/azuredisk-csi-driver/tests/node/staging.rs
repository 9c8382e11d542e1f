//! NodeStageVolume and NodeUnstageVolume (section 3.14 of the specification of the drivers).

use azuredisk_csi_driver::node::NodeOptions;
use csi::v1::node_server::Node as _;
use csi::v1::volume_capability::access_mode::Mode;
use csi::v1::{NodeGetCapabilitiesRequest, NodeStageVolumeRequest};
use tonic::{Code, Request};
use volumes_node::simulated::{Contents, Layout};

use crate::world::{STAGING, Step, World, capability, map, mounted, raw, stage};

fn with_context(entries: &[(&str, &str)], request: NodeStageVolumeRequest) -> NodeStageVolumeRequest {
    NodeStageVolumeRequest { volume_context: map(entries), ..request }
}

/// Section 3.14: an empty disk is formatted and mounted, ten times with the same end, on every kind of machine, and unstaged ten
/// times.
#[tokio::test(start_paused = true)]
async fn a_disk_is_staged_and_unstaged_ten_times() {
    for layout in Layout::ALL {
        let mut world = World::new(layout);
        world.machine.attach(3, Contents::Blank, 8);
        for _ in 0..10 {
            world.succeeds(Step::Stage(stage(mounted("", &[])))).await;
            assert_eq!(world.machine.contents(3), Contents::file_system("ext4", 1), "{layout:?}");
            let [mount] = world.machine.mounts().try_into().unwrap();
            assert!(mount.ends_with(&format!(" {STAGING} rw")), "{mount}");
            world.restart();
        }
        for _ in 0..10 {
            world.succeeds(Step::Unstage).await;
            assert_eq!(world.machine.mounts(), Vec::<String>::new());
            assert!(!world.machine.exists(STAGING));
            world.restart();
        }
        assert_eq!(world.machine.contents(3).data(), Some(1));
    }
}

/// Section 3.14: required members, each InvalidArgument, csi-sanity's "missing fields" among them; section 3.21: a missing LUN.
#[tokio::test(start_paused = true)]
async fn a_request_without_required_members_is_invalid() {
    let world = World::new(Layout::ScsiWithLinks);
    world.machine.attach(3, Contents::Blank, 8);
    let good = || stage(mounted("", &[]));
    let mode = |access, mode| Some(capability(access, mode));
    for (request, words) in [
        (NodeStageVolumeRequest { volume_id: String::new(), ..good() }, "volume ID must be provided"),
        (NodeStageVolumeRequest { staging_target_path: String::new(), ..good() }, "staging target path must"),
        (NodeStageVolumeRequest { volume_capability: None, ..good() }, "volume capability must be provided"),
        (
            NodeStageVolumeRequest { publish_context: map(&[]), ..good() },
            "LUN in the publish context must be provided",
        ),
        (NodeStageVolumeRequest { publish_context: map(&[("LUN", "64")]), ..good() }, "LUN 64 is invalid"),
        (with_context(&[("maxShares", "two")], good()), "maxShares=two is invalid"),
        (with_context(&[("fsType", "ntfs")], good()), "file system ntfs is not supported"),
        (with_context(&[("partition", "0")], good()), "partition 0 is invalid"),
        (stage(mounted("", &["noatime,remount"])), "mount option remount is not possible"),
        (
            NodeStageVolumeRequest {
                volume_capability: mode(mounted("", &[]), Mode::MultiNodeMultiWriter),
                ..with_context(&[("maxShares", "2")], good())
            },
            "a file system cannot be mounted on several nodes",
        ),
        (
            NodeStageVolumeRequest { volume_capability: mode(raw(), Mode::MultiNodeMultiWriter), ..good() },
            "maxShares of at least 2",
        ),
    ] {
        world.fails(Step::Stage(request), Code::InvalidArgument, words).await;
    }
    assert_eq!(world.machine.contents(3), Contents::Blank);
    assert_eq!(world.machine.mounts(), Vec::<String>::new());
}

/// Section 3.14, step 4: nothing is done to a raw device, whatever it contains.
#[tokio::test(start_paused = true)]
async fn a_raw_device_is_left_as_it_is() {
    for contents in [Contents::Blank, Contents::file_system("xfs", 9), Contents::PartitionTable("gpt".into())]
    {
        let world = World::new(Layout::Nvme);
        world.machine.attach(3, contents.clone(), 8);
        world.succeeds(Step::Stage(stage(raw()))).await;
        assert_eq!(world.machine.contents(3), contents);
        assert_eq!(world.machine.take_journal(), Vec::<String>::new());
        world.succeeds(Step::Unstage).await;
    }
}

/// Section 3.14, step 5: the context goes before the capability; FIX: `nouuid` by the effective type; options and flags.
#[tokio::test(start_paused = true)]
async fn the_file_system_and_its_options_are_those_asked_for() {
    for (context, access, kind, options) in [
        (vec![], mounted("", &[]), "ext4", "rw"),
        (vec![], mounted("XFS", &[]), "xfs", "rw,nouuid"),
        (vec![("fsType", "xfs")], mounted("ext4", &["nouuid"]), "xfs", "rw,nouuid"),
        (vec![("fstype", "Btrfs")], mounted("xfs", &[]), "btrfs", "rw"),
        (
            vec![("fsType", "")],
            mounted("ext3", &["noatime,discard", "noexec"]),
            "ext3",
            "rw,noexec,noatime,discard",
        ),
    ] {
        let world = World::new(Layout::ScsiWithLinks);
        world.machine.attach(3, Contents::Blank, 8);
        world.succeeds(Step::Stage(with_context(&context, stage(access)))).await;
        assert_eq!(world.machine.contents(3), Contents::file_system(kind, 1));
        assert_eq!(world.machine.mounts(), [format!("/dev/sdc {STAGING} {options}")]);
    }
}

/// Section 3.14, step 6: another file system is an error that names the check, and nothing is changed.
#[tokio::test(start_paused = true)]
async fn a_disk_with_other_contents_is_refused_and_unchanged() {
    for (contents, words) in [
        (Contents::file_system("xfs", 9), "contains xfs (found by blkid), and ext4 is wanted"),
        (Contents::PartitionTable("gpt".into()), "unknown data: a partition table of type gpt"),
        (Contents::Hidden("zfs_member".into()), "contains zfs_member (found by wipefs)"),
    ] {
        let world = World::new(Layout::ScsiWithLinks);
        world.machine.attach(3, contents.clone(), 8);
        world.fails(Step::Stage(stage(mounted("ext4", &[]))), Code::Internal, words).await;
        assert_eq!((world.machine.contents(3), world.machine.mounts()), (contents, vec![]));
    }
}

/// Section 3.14, step 6: an empty disk is not formatted for reading, and `directmount` skips all checks.
#[tokio::test(start_paused = true)]
async fn options_decide_about_checks() {
    let world = World::new(Layout::ScsiWithLinks);
    world.machine.attach(3, Contents::Blank, 8);
    world
        .fails(
            Step::Stage(stage(mounted("", &["ro"]))),
            Code::Internal,
            "is not formatted, and the volume is to be read only",
        )
        .await;
    world.machine.detach(3);
    world.machine.attach(3, Contents::file_system("ext4", 9), 8);
    world.machine.take_journal();
    world.succeeds(Step::Stage(stage(mounted("", &["directmount,ro"])))).await;
    assert_eq!(world.machine.take_journal(), Vec::<String>::new());
    assert_eq!(world.machine.mounts(), [format!("/dev/sdd {STAGING} ro")]);
}

/// Section 3.14, step 5, FIX: partitions of `sdX` and of NVMe.
#[tokio::test(start_paused = true)]
async fn a_partition_is_mounted_alone() {
    for (layout, device) in
        [(Layout::ScsiWithLinks, "/dev/sdc2"), (Layout::Scsi, "/dev/sdc2"), (Layout::Nvme, "/dev/nvme0n2p2")]
    {
        let world = World::new(layout);
        world.machine.attach(3, Contents::PartitionTable("gpt".into()), 8);
        world.machine.add_partition(3, 2, Contents::file_system("ext4", 9));
        world.succeeds(Step::Stage(with_context(&[("partition", "2")], stage(mounted("", &[]))))).await;
        assert_eq!(world.machine.mounts(), [format!("{device} {STAGING} rw")]);
        assert_eq!(world.machine.contents(3), Contents::PartitionTable("gpt".into()));
    }
}

/// Section 3.14, step 7: a restore to a larger disk grows; ext2 cannot, and is left alone unless it must.
#[tokio::test(start_paused = true)]
async fn a_file_system_grows_to_its_device() {
    for (kind, must_grow, expected) in [
        ("ext4", true, Ok(16)),
        ("ext3", false, Ok(16)),
        ("xfs", false, Ok(16)),
        ("btrfs", false, Ok(16)),
        ("ext2", false, Ok(8)),
        ("ext2", true, Err("ext2 on /dev/sdc cannot grow")),
    ] {
        let world = World::new(Layout::ScsiWithLinks);
        world.machine.attach(3, Contents::file_system(kind, 9), 8);
        world.machine.grow(3, 16);
        world.succeeds(Step::Stage(stage(raw()))).await;
        let _ = world.call(Step::Expand("/dev/sdc", 16)).await;
        let context: &[_] = if must_grow { &[("resizeRequired", "true")] } else { &[] };
        let step = Step::Stage(with_context(context, stage(mounted(kind, &[]))));
        match expected {
            Ok(gib) => {
                world.succeeds(step).await;
                assert_eq!(world.machine.file_system_gib(3), gib, "{kind}");
            }
            Err(words) => world.fails(step, Code::Internal, words).await,
        }
    }
}

/// Section 3.21: a device that never comes is Internal after real waiting, within the caller's deadline.
#[tokio::test(start_paused = true)]
async fn the_wait_for_a_device_ends_before_the_callers_deadline() {
    let world = World::new(Layout::ScsiWithLinks);
    let mut request = Request::new(stage(mounted("", &[])));
    request.metadata_mut().insert("grpc-timeout", "60S".parse().unwrap());
    let begun = tokio::time::Instant::now();
    let status = world.service.node_stage_volume(request).await.unwrap_err();
    assert_eq!((begun.elapsed().as_secs(), status.code()), (55, Code::Internal));
    assert!(status.message().contains("no device for LUN 3 within 55 s"), "{status}");
}

/// Section 2.4: one call at a time works on a volume, and goes on when its caller has gone.
#[tokio::test(start_paused = true)]
async fn a_call_goes_on_without_its_caller_and_others_are_refused_meanwhile() {
    let world = World::new(Layout::ScsiWithLinks);
    let second = tokio::time::timeout(
        std::time::Duration::from_secs(10),
        world.call(Step::Stage(stage(mounted("", &[])))),
    );
    assert!(second.await.is_err(), "it waits for its device");
    for step in [Step::Stage(stage(mounted("", &[]))), Step::Unstage] {
        world.fails(step, Code::Aborted, "An operation with the given Volume ID").await;
    }
    world.machine.attach(3, Contents::Blank, 8);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(world.machine.mounts(), [format!("/dev/sdc {STAGING} rw")]);
    world.succeeds(Step::Stage(stage(mounted("", &[])))).await;
}

/// A mount that remains of a disk that was taken away and came back as another device.
#[tokio::test(start_paused = true)]
async fn a_mount_of_another_device_is_made_again() {
    let world = World::new(Layout::ScsiWithLinks);
    world.machine.attach(3, Contents::file_system("ext4", 9), 8);
    world.succeeds(Step::Stage(stage(mounted("", &[])))).await;
    world.machine.detach(3);
    world.machine.attach(3, Contents::file_system("ext4", 9), 8);
    world.succeeds(Step::Stage(stage(mounted("", &[])))).await;
    assert_eq!(world.machine.mounts(), [format!("/dev/sdd {STAGING} rw")]);
}

/// A kubelet that stages at another path than the one before it: `fsck` refuses what is mounted, and pods use it.
#[tokio::test(start_paused = true)]
async fn a_disk_that_is_mounted_elsewhere_is_mounted_once_more() {
    let world = World::new(Layout::ScsiWithLinks);
    world.machine.attach(3, Contents::Blank, 8);
    let older = NodeStageVolumeRequest {
        staging_target_path: "/var/lib/kubelet/plugins/kubernetes.io/csi/pv/pvc-1/globalmount".to_owned(),
        ..stage(mounted("", &[]))
    };
    world.succeeds(Step::Stage(older)).await;
    world.succeeds(Step::Stage(stage(mounted("", &[])))).await;
    assert_eq!(world.machine.mounts().len(), 2);
}

/// Section 3.15: profiles are applied where the node's flag says so; FIX: what is unknown is no error.
#[tokio::test(start_paused = true)]
async fn profiles_of_device_settings_are_applied() {
    let folder = "/sys/class/block/sdc";
    let profile = |entries: &[(&str, &str)]| Step::Stage(with_context(entries, stage(raw())));
    let on = NodeOptions { applies_profiles: true, ..NodeOptions::default() };
    let basic = [("perfProfile", "basic"), ("skuName", "Premium_LRS")];

    let world = World::with(Layout::ScsiWithLinks, NodeOptions::default());
    world.machine.attach(3, Contents::Blank, 8);
    world.succeeds(profile(&basic)).await;
    assert_eq!(world.machine.take_journal(), Vec::<String>::new(), "the flag is off");

    let world = World::with(Layout::ScsiWithLinks, on.clone());
    world.machine.attach(3, Contents::Blank, 8);
    world.succeeds(profile(&basic)).await;
    let text = |path: &str| world.machine.text(&format!("{folder}/{path}"));
    assert_eq!(
        [
            "queue/scheduler",
            "device/queue_depth",
            "queue/nr_requests",
            "queue/max_sectors_kb",
            "queue/read_ahead_kb"
        ]
        .map(text),
        ["mq-deadline", "11", "11", "65", "8"]
    );
    world
        .succeeds(profile(&[("perfProfile", "advanced"), ("device-setting/queue/read_ahead_kb", "64")]))
        .await;
    assert_eq!(text("queue/read_ahead_kb"), "64");
    for (path, code, words) in [
        (
            "device-setting/../sdd/queue/scheduler",
            Code::InvalidArgument,
            "device setting ../sdd/queue/scheduler is invalid",
        ),
        ("device-setting/queue/none", Code::Internal, "cannot set queue/none=64 of /dev/sdc"),
    ] {
        world.fails(profile(&[("perfProfile", "advanced"), (path, "64")]), code, words).await;
    }
    // Nothing is known of its performance.
    world.succeeds(profile(&[("perfProfile", "basic"), ("skuName", "PremiumV2_LRS")])).await;

    // NVMe disks have no depth of a queue.
    let world = World::with(Layout::Nvme, on);
    world.machine.attach(3, Contents::Blank, 8);
    world.succeeds(profile(&basic)).await;
    assert_eq!(world.machine.text("/sys/class/block/nvme0n2/queue/nr_requests"), "11");
}

/// Section 3.1.
#[tokio::test]
async fn the_service_can_do_four_things() {
    use csi::v1::node_service_capability::{Type, rpc};
    let world = World::new(Layout::Scsi);
    let answer =
        world.service.node_get_capabilities(Request::new(NodeGetCapabilitiesRequest {})).await.unwrap();
    let own = answer.into_inner().capabilities.into_iter().filter_map(|one| one.r#type);
    let own: Vec<_> = own.map(|Type::Rpc(one)| one.r#type()).collect();
    let expected = [
        rpc::Type::StageUnstageVolume,
        rpc::Type::ExpandVolume,
        rpc::Type::GetVolumeStats,
        rpc::Type::SingleNodeMultiWriter,
    ];
    assert_eq!(own, expected);
}
