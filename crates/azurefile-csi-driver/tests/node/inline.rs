//! Volumes in pods' own definitions.

use azurefile_csi_driver::node::{InlineRights, NodeOptions};
use csi::v1::NodePublishVolumeRequest;
use tonic::Code;

use crate::world::{KEY, TARGET, World, fails, publish};

const SECRET: &str = "team/mine";

fn inline(more: &[(&str, &str)]) -> NodePublishVolumeRequest {
    let own = [
        ("csi.storage.k8s.io/ephemeral", "true"),
        ("csi.storage.k8s.io/pod.namespace", "team"),
        ("csi.storage.k8s.io/pod.name", "pod"),
        ("shareName", "share"),
        ("secretName", "mine"),
    ];
    let mut request = publish(&own.iter().chain(more).copied().collect::<Vec<_>>(), TARGET);
    request.volume_id = "csi-0123456789abcdef".to_owned();
    request.staging_target_path.clear();
    request
}

fn world(rights: InlineRights) -> World {
    let world = World::with(NodeOptions { inline_rights: rights, ..NodeOptions::default() });
    world.played.store(SECRET, "acc", KEY);
    world
}

/// FILE-125. Section 4.6: the volume is mounted at the target path with the key of a Secret of the pod's namespace; the account that the
/// author names is not asked for its key.
#[tokio::test]
async fn an_inline_volume_takes_a_secret_of_its_namespace() {
    let world = world(InlineRights::Off);
    let request = inline(&[
        ("secretNamespace", "kube-system"),
        ("mountOptions", "ro,dir_mode=0700"),
        ("storageAccount", "acc"),
    ]);
    world.publish(request.clone()).await.unwrap();
    assert!(world.mounted(TARGET).unwrap().contains(" ro,ro,dir_mode=0700,file_mode=0777"));
    assert_eq!(world.played.take_calls(), [format!("secret {SECRET}")]);
    // Published again by the kubelet, it stays.
    world.machine.take_journal();
    world.publish(request).await.unwrap();
    assert!(world.machine.take_journal().is_empty());

    world.played.0.lock().secrets.clear();
    world.unpublish(TARGET).await.unwrap();
    let other = self::world(InlineRights::Off);
    other.played.0.lock().secrets.clear();
    fails(
        other.publish(inline(&[("storageAccount", "acc")])).await,
        Code::InvalidArgument,
        "Secret team/mine does not exist",
    );
}

/// Section 4.6: refusals are invalid arguments before anything is asked.
#[tokio::test]
async fn what_an_inline_volume_may_not_have_is_refused() {
    for (more, words) in [
        (("protocol", "nfs"), "nfs is not supported"),
        (("mountOptions", "bind"), "mount option \"bind\""),
        (("server", ".."), "server is"),
        (("mountWithManagedIdentity", "true"), "mountWithManagedIdentity cannot"),
        (("SHARENAME", "x"), "sharename twice"),
    ] {
        let world = world(InlineRights::Off);
        fails(world.publish(inline(&[more])).await, Code::InvalidArgument, words);
        assert!(world.played.take_calls().is_empty());
    }
}

/// Section 4.6: `--inline-volume-secret-authz`.
#[tokio::test]
async fn the_pods_service_account_must_be_allowed_to_read_the_secret() {
    for (rights, is_allowed, succeeds) in [
        (InlineRights::Off, false, true),
        (InlineRights::Warn, false, true),
        (InlineRights::Enforce, false, false),
        (InlineRights::Enforce, true, true),
    ] {
        let world = world(rights);
        if is_allowed {
            world.played.0.lock().readers.push("mine".to_owned());
        }
        let result = world.publish(inline(&[])).await;
        if succeeds {
            result.unwrap();
        } else {
            fails(result, Code::PermissionDenied, "system:serviceaccount:team:default may not get it");
            assert!(world.machine.mounts().is_empty());
        }
    }
}

/// Section 4.9: `--allow-inline-volume-key-access-with-identity`.
#[tokio::test]
async fn a_flag_lets_inline_volumes_use_the_clusters_identity() {
    let world = World::with(NodeOptions { lists_keys_for_inline: true, ..NodeOptions::default() });
    world.played.0.lock().secrets.clear();
    world.played.0.lock().keys = vec![(KEY.to_owned(), String::new())];
    world.publish(inline(&[("storageAccount", "acc")])).await.unwrap();
    assert!(world.mounted(TARGET).is_some());
}
