//! Events of the kernel.

use std::fs;
use std::process::Command;

use volumes_node::system::{Kernel, System as _};

/// Section 3.14, FIX: a link that appears in a folder is an event, and nothing that happens after the subscription is missed.
#[tokio::test]
async fn a_new_link_is_an_event() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none");
    let mut changes = Kernel.changes(&[missing, folder.path().to_owned()]).await.unwrap();
    fs::write(folder.path().join("lun0"), "").unwrap();
    changes.next().await.unwrap();
}

/// Section 3.14, FIX: a device that appears or changes is an event of the kernel itself.
#[tokio::test]
async fn a_new_device_is_an_event() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("disk");
    fs::File::create(&file).unwrap().set_len(1024 * 1024).unwrap();
    let mut changes = Kernel.changes(&[]).await.unwrap();
    let attached = Command::new("losetup").args(["--find", "--show"]).arg(&file).output();
    let Some(attached) = attached.ok().filter(|output| output.status.success()) else {
        eprintln!("skipped: this process may not have loop devices");
        return;
    };
    changes.next().await.unwrap();
    let device = String::from_utf8(attached.stdout).unwrap();
    Command::new("losetup").args(["-d", device.trim()]).status().unwrap();
}
