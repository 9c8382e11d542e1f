//! Disks in shares.

use csi::v1::volume_capability::access_mode::Mode;
use tonic::Code;
use volumes_node::simulated::Contents;

use crate::world::{HOST, STAGING, World, capability, fails, stage};
use azurefile_csi_driver::node::NodeOptions;

const SHARE: &str = "/var/lib/kubelet/plugins/kubernetes.io/csi/file.csi.azure.com/1/proxy-mount";
const CONTEXT: [(&str, &str); 2] = [("fsType", "ext4"), ("diskName", "d.vhd")];

/// FILE-124. Section 4.7: the share beside the staging path, the image over a loop device; both go with the volume.
#[tokio::test]
async fn a_disk_in_a_share_is_mounted_over_its_share() {
    let world = World::new();
    world.machine.put_image(&format!("{SHARE}/d.vhd"), Contents::Blank);
    let mut request = stage(&CONTEXT);
    request.volume_capability = Some(capability(Mode::SingleNodeWriter, &["nodev"], "1000"));
    world.stage(request.clone()).await.unwrap();
    let share = world.mounted(SHARE).unwrap();
    let options =
        "dir_mode=0777,file_mode=0777,cache=strict,actimeo=30,nostrictsync,nosharesock,username=acc";
    assert_eq!(share, format!("//{HOST}/share rw,{options}"));
    let image = world.mounted(STAGING).unwrap();
    assert!(image.starts_with(&format!("{SHARE}/d.vhd ")), "{image}");
    for option in ["loop", "barrier=1", "errors=remount-ro", "noatime", "nodev"] {
        assert!(image.contains(option), "{option} is missing in {image}");
    }
    let journal = world.machine.take_journal();
    assert!(journal.iter().any(|line| line.starts_with("mkfs.ext4")), "{journal:?}");
    assert!(journal.contains(&format!("chgrp 1000 {STAGING} OnRootMismatch")));
    world.stage(request).await.unwrap();
    // The image is in the share, not in the folder below it.
    world.machine.remove_path(&format!("{SHARE}/d.vhd"));
    world.unstage().await.unwrap();
    assert!(world.machine.mounts().is_empty());
}

/// FILE-124. Section 4.7: a link in the place of the disk would lead to a file of the machine.
#[tokio::test]
async fn a_link_is_no_disk() {
    let world = World::new();
    world.machine.put_link(&format!("{SHARE}/d.vhd"), "/dev/sda");
    fails(world.stage(stage(&CONTEXT)).await, Code::InvalidArgument, "is no plain file");
}

/// Section 4.9: `--enable-vhd`.
#[tokio::test]
async fn disks_in_shares_can_be_switched_off() {
    let world = World::with(NodeOptions { has_disks: false, ..NodeOptions::default() });
    fails(world.stage(stage(&CONTEXT)).await, Code::InvalidArgument, "--enable-vhd=false");
}
