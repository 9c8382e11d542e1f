//! The process dies, or a step fails, at each step of a volume's life: a new process that repeats the call comes to the same end.

use csi::v1::NodePublishVolumeRequest;
use volumes_node::simulated::{Contents, Fault, Layout};

use crate::world::{STAGING, Step, TARGET, World, mounted, publish, raw, stage};

/// More repetitions than a kubelet needs.
const ATTEMPTS: usize = 4;

/// The step before which the disk has grown in Azure.
const EXPANSION: usize = 2;

/// A volume's life.
fn life(is_block: bool) -> Vec<Step> {
    let access = || if is_block { raw() } else { mounted("xfs", &["noatime"]) };
    vec![
        Step::Stage(stage(access())),
        Step::Publish(NodePublishVolumeRequest { readonly: true, ..publish(access(), TARGET) }),
        Step::Expand(TARGET, 16),
        Step::Unpublish(TARGET),
        Step::Unstage,
    ]
}

/// What can be seen of a machine.
fn seen(world: &World) -> (Contents, u64, Vec<String>, bool, bool) {
    let machine = &world.machine;
    let mut mounts = machine.mounts();
    mounts.sort();
    (machine.contents(3), machine.file_system_gib(3), mounts, machine.exists(STAGING), machine.exists(TARGET))
}

async fn world_before(layout: Layout, is_block: bool, step: usize) -> World {
    let world = World::new(layout);
    world.machine.attach(3, Contents::Blank, 8);
    for (number, done) in life(is_block).into_iter().take(step).enumerate() {
        if number == EXPANSION {
            world.machine.grow(3, 16);
        }
        world.succeeds(done).await;
    }
    if step == EXPANSION {
        world.machine.grow(3, 16);
    }
    world
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_at_a_step_the_end_is_the_same() {
    let mut tried = 0;
    for is_block in [false, true] {
        for layout in [Layout::ScsiWithLinks, Layout::Nvme] {
            for (number, step) in life(is_block).into_iter().enumerate() {
                let world = world_before(layout, is_block, number).await;
                let before = world.machine.steps();
                world.succeeds(step.clone()).await;
                let (expected, steps) = (seen(&world), world.machine.steps() - before);
                for at in 0..steps {
                    for fault in [Fault::Fail, Fault::FailAfter, Fault::DieBefore, Fault::DieAfter] {
                        let mut world = world_before(layout, is_block, number).await;
                        world.machine.plan(at, fault);
                        let mut ended = None;
                        for _ in 0..ATTEMPTS {
                            let answer = tokio::select! {
                                answer = world.call(step.clone()) => Some(answer),
                                () = world.machine.death() => None,
                            };
                            world.restart();
                            if matches!(answer, Some(Ok(()))) {
                                ended = Some(());
                                break;
                            }
                        }
                        let place = format!("{fault:?} at {at} of {step:?} ({layout:?})");
                        assert!(ended.is_some(), "{place}: no success");
                        assert_eq!(seen(&world), expected, "{place}");
                        tried += 1;
                    }
                }
            }
        }
    }
    assert!(tried > 500, "{tried}: correct this test");
}
