//! Shares over NFS.

use csi::v1::volume_capability::access_mode::Mode;
use tonic::Code;

use crate::world::{HOST, STAGING, World, capability, fails, stage};
use azurefile_csi_driver::node::NodeOptions;

const OPTIONS: &str = "vers=4,minorversion=1,sec=sys,noresvport,actimeo=30";

/// FILE-123. Section 4.7: the source, the options, no key, and the permissions of the root.
#[tokio::test]
async fn a_share_over_nfs_needs_no_key() {
    let world = World::new();
    world.stage(stage(&[("protocol", "nfs"), ("mountPermissions", "0750")])).await.unwrap();
    assert_eq!(world.mounted(STAGING).unwrap(), format!("{HOST}:/acc/share rw,{OPTIONS}"));
    assert!(world.played.take_calls().is_empty());
    assert_eq!(world.machine.take_journal().last().unwrap(), &format!("chmod 750 {STAGING}"));
}

/// Section 4.3: permissions of 0 leave the root as it is, and those that it has are not set again.
#[tokio::test]
async fn permissions_may_be_left() {
    for (permissions, changes) in [("0", false), ("0755", false), ("0777", true)] {
        let world = World::new();
        world.stage(stage(&[("protocol", "nfs"), ("mountPermissions", permissions)])).await.unwrap();
        let changed = world.machine.take_journal().iter().any(|line| line.starts_with("chmod"));
        assert_eq!(changed, changes, "{permissions}");
    }
}

/// Section 4.7: the pod's group, by policy.
#[tokio::test]
async fn the_pods_group_owns_the_files_by_policy() {
    for (policy, line) in [
        ("", Some("chgrp 1000 STAGING OnRootMismatch")),
        ("Always", Some("chgrp 1000 STAGING Always")),
        ("None", None),
    ] {
        let world = World::new();
        let mut request = stage(&[("protocol", "nfs"), ("fsGroupChangePolicy", policy)]);
        request.volume_capability = Some(capability(Mode::MultiNodeMultiWriter, &[], "1000"));
        world.stage(request).await.unwrap();
        let journal = world.machine.take_journal();
        let own = journal.iter().find(|line| line.starts_with("chgrp"));
        assert_eq!(own.cloned(), line.map(|line| line.replace("STAGING", STAGING)), "{policy}");
    }
}

/// FILE-132. Section 4.7: encryption in transit goes through the proxy; without one it is an invalid argument.
#[tokio::test]
async fn encryption_in_transit_needs_the_proxy() {
    let context = [("protocol", "nfs"), ("encryptInTransit", "true")];
    let world = World::new();
    world.stage(stage(&context)).await.unwrap();
    assert_eq!(world.played.take_calls(), [format!("aznfs {HOST}:/acc/share {STAGING} {OPTIONS}")]);
    world.played.0.lock().refuses_mounts = Some("mount failed: exit status 32".to_owned());
    fails(world.stage(stage(&context)).await, Code::Internal, "the proxy cannot mount");

    let mut world = World::new();
    let outside = azurefile_csi_driver::node::Outside::default();
    let machine = std::sync::Arc::new(world.machine.clone());
    world.service = azurefile_csi_driver::node::NodeService::new(NodeOptions::default(), machine, outside);
    fails(world.stage(stage(&context)).await, Code::InvalidArgument, "need the proxy on the node");
}

/// Section 4.7: `--use-aznfs-for-nfs-mounts` without encryption.
#[tokio::test]
async fn all_mounts_may_go_through_the_proxy() {
    let world = World::with(NodeOptions { always_by_proxy: true, ..NodeOptions::default() });
    world.stage(stage(&[("protocol", "nfs")])).await.unwrap();
    assert!(world.played.take_calls()[0].ends_with(",notls"));
}
