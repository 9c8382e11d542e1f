//! NodePublishVolume and NodeUnpublishVolume (section 3.14 of the specification of the drivers).

use csi::v1::NodePublishVolumeRequest;
use csi::v1::volume_capability::AccessType;
use csi::v1::volume_capability::access_mode::Mode;
use tonic::Code;
use volumes_node::simulated::{Contents, Layout};

use crate::world::{SECOND, STAGING, Step, TARGET, World, capability, map, mounted, publish, raw, stage};

fn read_only(access: AccessType, target: &str) -> Step {
    Step::Publish(NodePublishVolumeRequest { readonly: true, ..publish(access, target) })
}

fn with_mode(access: AccessType, target: &str, mode: Mode) -> Step {
    let volume_capability = Some(capability(access.clone(), mode));
    Step::Publish(NodePublishVolumeRequest { volume_capability, ..publish(access, target) })
}

async fn staged(layout: Layout, access: AccessType) -> World {
    let world = World::new(layout);
    world.machine.attach(3, Contents::Blank, 8);
    world.succeeds(Step::Stage(stage(access))).await;
    world
}

fn lines(world: &World, target: &str) -> Vec<String> {
    world.machine.mounts().into_iter().filter(|line| line.contains(&format!(" {target} "))).collect()
}

/// Section 3.14: a mount and a device, for writing and for reading, ten times with the same end, and unpublished ten times, by a
/// new process each time.
#[tokio::test(start_paused = true)]
async fn a_volume_is_published_and_unpublished_ten_times() {
    for (access, is_read_only) in
        [(mounted("", &[]), false), (mounted("", &[]), true), (raw(), false), (raw(), true)]
    {
        for layout in Layout::ALL {
            let mut world = staged(layout, access.clone()).await;
            let before = world.machine.mounts();
            let step = || {
                if is_read_only {
                    read_only(access.clone(), TARGET)
                } else {
                    Step::Publish(publish(access.clone(), TARGET))
                }
            };
            for _ in 0..10 {
                world.succeeds(step()).await;
                let [line] = lines(&world, TARGET).try_into().unwrap();
                assert!(line.ends_with(if is_read_only { " ro" } else { " rw" }), "{line}");
                world.restart();
            }
            for _ in 0..10 {
                world.succeeds(Step::Unpublish(TARGET)).await;
                assert!(!world.machine.exists(TARGET), "csi-sanity: the target is removed");
                world.restart();
            }
            assert_eq!(world.machine.mounts(), before);
        }
    }
}

/// csi-sanity: "missing fields".
#[tokio::test(start_paused = true)]
async fn a_request_without_required_members_is_invalid() {
    let world = staged(Layout::ScsiWithLinks, mounted("", &[])).await;
    let good = || publish(mounted("", &[]), TARGET);
    for (request, words) in [
        (NodePublishVolumeRequest { volume_id: String::new(), ..good() }, "volume ID must be provided"),
        (
            NodePublishVolumeRequest { staging_target_path: String::new(), ..good() },
            "staging target path must",
        ),
        (NodePublishVolumeRequest { target_path: String::new(), ..good() }, "target path must be provided"),
        (
            NodePublishVolumeRequest { volume_capability: None, ..good() },
            "volume capability must be provided",
        ),
        (
            NodePublishVolumeRequest { publish_context: map(&[]), ..publish(raw(), TARGET) },
            "LUN in the publish context",
        ),
    ] {
        world.fails(Step::Publish(request), Code::InvalidArgument, words).await;
    }
}

/// A volume that is not staged is not published: the pod would write on the machine's own disk.
#[tokio::test(start_paused = true)]
async fn what_is_not_staged_is_not_published() {
    let world = World::new(Layout::ScsiWithLinks);
    world.machine.attach(3, Contents::Blank, 8);
    let step = Step::Publish(publish(mounted("", &[]), TARGET));
    world.fails(step, Code::FailedPrecondition, "nothing is mounted at the staging path").await;
    assert!(!world.machine.exists(TARGET));
}

/// Section 3.14, FIX, and csi-sanity 5.5: SINGLE_NODE_SINGLE_WRITER at a second target is FailedPrecondition, after a restart of
/// the process, too; the first target can be published again; the second one is free once the first one is.
#[tokio::test(start_paused = true)]
async fn a_single_writer_is_published_once() {
    for access in [mounted("", &[]), raw()] {
        for layout in Layout::ALL {
            let mut world = staged(layout, access.clone()).await;
            let single = |target| with_mode(access.clone(), target, Mode::SingleNodeSingleWriter);
            world.succeeds(single(TARGET)).await;
            world.restart();
            world
                .fails(single(SECOND), Code::FailedPrecondition, &format!("published at {TARGET} already"))
                .await;
            assert!(!world.machine.exists(SECOND), "nothing is left of the attempt");
            world.succeeds(single(TARGET)).await;
            world.succeeds(Step::Unpublish(TARGET)).await;
            world.succeeds(single(SECOND)).await;
        }
    }
}

/// Section 3.1: other modes have several pods.
#[tokio::test(start_paused = true)]
async fn other_modes_are_published_at_several_targets() {
    for mode in [Mode::SingleNodeWriter, Mode::SingleNodeMultiWriter, Mode::SingleNodeReaderOnly] {
        for access in [mounted("", &[]), raw()] {
            let world = staged(Layout::ScsiWithLinks, access.clone()).await;
            for target in [TARGET, SECOND] {
                world.succeeds(with_mode(access.clone(), target, mode)).await;
                assert_eq!(lines(&world, target).len(), 1);
            }
        }
    }
}

/// Other volumes of the machine do not count.
#[tokio::test(start_paused = true)]
async fn a_single_writer_does_not_meet_other_volumes() {
    let world = staged(Layout::ScsiWithLinks, mounted("", &[])).await;
    world.machine.attach(4, Contents::Blank, 8);
    let other = csi::v1::NodeStageVolumeRequest {
        volume_id: "other".to_owned(),
        publish_context: map(&[("LUN", "4")]),
        staging_target_path: "/var/lib/kubelet/other".to_owned(),
        ..stage(mounted("", &[]))
    };
    world.succeeds(Step::Stage(other)).await;
    let other = NodePublishVolumeRequest {
        volume_id: "other".to_owned(),
        staging_target_path: "/var/lib/kubelet/other".to_owned(),
        ..publish(mounted("", &[]), SECOND)
    };
    world.succeeds(Step::Publish(other)).await;
    world.succeeds(with_mode(mounted("", &[]), TARGET, Mode::SingleNodeSingleWriter)).await;
}

/// Section 3.14, "Mount-point ensure": a target that does not answer, or that has another volume, is made again.
#[tokio::test(start_paused = true)]
async fn a_target_that_does_not_answer_is_made_again() {
    let world = staged(Layout::ScsiWithLinks, mounted("", &[])).await;
    world.succeeds(Step::Publish(publish(mounted("", &[]), TARGET))).await;
    world.machine.set_dead(TARGET);
    world.succeeds(Step::Publish(publish(mounted("", &[]), TARGET))).await;
    assert_eq!(world.machine.mounts(), [format!("/dev/sdc {STAGING} rw"), format!("/dev/sdc {TARGET} rw")]);
}

#[tokio::test(start_paused = true)]
async fn a_mount_in_use_is_named() {
    let world = staged(Layout::ScsiWithLinks, mounted("", &[])).await;
    world.succeeds(Step::Publish(publish(mounted("", &[]), TARGET))).await;
    world.machine.set_busy(TARGET, true);
    world.fails(Step::Unpublish(TARGET), Code::Internal, &format!("cannot unmount {TARGET}: ")).await;
    world.machine.set_busy(TARGET, false);
    world.succeeds(Step::Unpublish(TARGET)).await;
}
