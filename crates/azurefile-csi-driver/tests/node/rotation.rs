//! Keys that change while pods use their volume.

use std::time::Duration;

use tonic::Code;

use crate::world::{HOST, KEY, SECOND_KEY, SECRET, STAGING, TARGET, World, fails, publish, stage};

async fn published() -> World {
    let world = World::new();
    world.stage(stage(&[])).await.unwrap();
    world.publish(publish(&[], TARGET)).await.unwrap();
    world.machine.take_journal();
    world
}

fn remounts(world: &World) -> usize {
    let journal = world.machine.take_journal();
    journal.iter().filter(|line| line.contains("-o remount,")).count()
}

/// FILE-126. A key that is revoked is noticed when the kubelet publishes the volume again, which is within about a minute, and the mount
/// gets the new one: nothing is unmounted.
#[tokio::test(start_paused = true)]
async fn a_revoked_key_heals_itself_with_the_next_publish() {
    let world = published().await;
    world.played.store(SECRET, "acc", SECOND_KEY);
    world.machine.change_service(HOST, |service| service.keys = vec![SECOND_KEY.to_owned()]);
    tokio::time::advance(Duration::from_secs(60)).await;
    world.publish(publish(&[], TARGET)).await.unwrap();
    assert_eq!(remounts(&world), 1);
    assert_eq!(world.machine.mounts().len(), 2);
    world.publish(publish(&[], TARGET)).await.unwrap();
    assert_eq!(remounts(&world), 0);
}

/// FILE-126. A key that is changed in its Secret is given to the mount before the old one is revoked.
#[tokio::test(start_paused = true)]
async fn a_changed_key_is_used_before_the_old_one_is_revoked() {
    let world = published().await;
    world.played.store(SECRET, "acc", SECOND_KEY);
    world.machine.change_service(HOST, |service| service.keys = vec![KEY.to_owned(), SECOND_KEY.to_owned()]);
    world.publish(publish(&[], TARGET)).await.unwrap();
    assert_eq!(remounts(&world), 0, "the key of three minutes holds");
    tokio::time::advance(Duration::from_secs(181)).await;
    world.publish(publish(&[], TARGET)).await.unwrap();
    assert_eq!(remounts(&world), 1);
    world.machine.change_service(HOST, |service| service.keys = vec![SECOND_KEY.to_owned()]);
    world.publish(publish(&[], TARGET)).await.unwrap();
    assert_eq!(remounts(&world), 0);
}

/// FILE-126. An old kernel gives a mount no other key: the error says what to do, and the mount stays.
#[tokio::test]
async fn where_the_kernel_cannot_do_it_the_error_says_so() {
    let world = published().await;
    world.machine.keep_passwords();
    world.played.store(SECRET, "acc", SECOND_KEY);
    world.machine.change_service(HOST, |service| service.keys = vec![SECOND_KEY.to_owned()]);
    fails(world.publish(publish(&[], TARGET)).await, Code::Internal, "restart the pods of this node");
    assert_eq!(world.machine.mounts().len(), 2);
}

/// A key that is revoked and not replaced in its Secret: the error names the Secret as the remedy.
#[tokio::test]
async fn a_key_without_a_successor_is_named() {
    let world = published().await;
    world.played.0.lock().keys = vec![(SECOND_KEY.to_owned(), String::new())];
    world.machine.change_service(HOST, |service| service.keys = vec![SECOND_KEY.to_owned()]);
    fails(world.publish(publish(&[], TARGET)).await, Code::PermissionDenied, "the account's key was changed");
    assert!(world.mounted(STAGING).is_some() && world.mounted(TARGET).is_some());
}
