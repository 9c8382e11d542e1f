//! Volumes for pods.

use csi::v1::volume_capability::access_mode::Mode;
use tonic::Code;

use crate::world::{SECOND, STAGING, TARGET, World, capability, fails, publish, stage};

/// FILE-127. Section 4.7: a bind, for reading if the pod only reads; unpublished, the path is gone.
#[tokio::test]
async fn a_staged_volume_is_bound_to_the_pods_path() {
    let world = World::new();
    fails(world.publish(publish(&[], TARGET)).await, Code::FailedPrecondition, "stage the volume first");
    world.stage(stage(&[])).await.unwrap();
    let mut reading = publish(&[], SECOND);
    reading.readonly = true;
    for request in [publish(&[], TARGET), reading] {
        for _ in 0..2 {
            world.publish(request.clone()).await.unwrap();
        }
    }
    assert!(
        world.mounted(TARGET).unwrap().contains(" rw,") && world.mounted(SECOND).unwrap().contains(" ro,")
    );
    assert_eq!(world.machine.mounts().len(), 3);
    for target in [TARGET, SECOND, SECOND] {
        world.unpublish(target).await.unwrap();
    }
    assert!(!world.machine.exists(TARGET) && world.mounted(STAGING).is_some());
}

/// FILE-135. Section 6: SINGLE_NODE_SINGLE_WRITER at a second target is a failed precondition.
#[tokio::test]
async fn a_single_writer_shares_with_no_second_pod() {
    let world = World::new();
    let single = capability(Mode::SingleNodeSingleWriter, &[], "");
    world.stage(stage(&[])).await.unwrap();
    for (target, succeeds) in [(TARGET, true), (TARGET, true), (SECOND, false)] {
        let mut request = publish(&[], target);
        request.volume_capability = Some(single.clone());
        match world.publish(request).await {
            Ok(()) => assert!(succeeds, "{target}"),
            other => fails(other, Code::FailedPrecondition, "allows one pod alone"),
        }
    }
    world.unpublish(TARGET).await.unwrap();
    let mut request = publish(&[], SECOND);
    request.volume_capability = Some(single);
    world.publish(request).await.unwrap();
}

/// FILE-127. Section 4.7: a mount that does not answer is not unmounted when it is published again: a container that starts meanwhile would
/// write to the machine's own disk.
#[tokio::test]
async fn a_mount_that_does_not_answer_stays_while_a_pod_uses_it() {
    let world = World::new();
    world.stage(stage(&[("protocol", "nfs")])).await.unwrap();
    let request = publish(&[("protocol", "nfs")], TARGET);
    world.publish(request.clone()).await.unwrap();
    world.machine.set_dead(TARGET);
    fails(world.publish(request).await, Code::Internal, "does not answer");
    assert!(world.mounted(TARGET).is_some());
}

/// The same for a volume that is mounted at the pod's path itself: the ticket is renewed first, then the mount is looked at.
#[tokio::test]
async fn a_mount_of_a_pods_own_stays_too() {
    let world = World::new();
    world.played.0.lock().place.tenant = "tenant".to_owned();
    let context = [
        ("mountWithWorkloadIdentityToken", "true"),
        ("clientID", "client"),
        ("csi.storage.k8s.io/serviceAccount.tokens", crate::world::TOKENS),
    ];
    world.publish(publish(&context, TARGET)).await.unwrap();
    world.machine.set_dead(TARGET);
    world.machine.take_journal();
    let newer = crate::world::TOKENS.replace("service-account-token", "newer-token");
    let context = [context[0], context[1], ("csi.storage.k8s.io/serviceAccount.tokens", newer.as_str())];
    fails(world.publish(publish(&context, TARGET)).await, Code::Internal, "does not answer");
    assert!(world.mounted(TARGET).is_some());
    assert!(world.machine.take_journal()[0].starts_with("azfilesauthmanager set"));
}
