//! Mounts of a simulated machine.

use std::path::Path;

use super::*;
use crate::simulated::{Contents, Layout, SimulatedMachine};

const DEVICE: &str = "/dev/sdc";
const STAGING: &str = "/var/lib/kubelet/staging";
const TARGET: &str = "/var/lib/kubelet/pods/1/mount";

fn world() -> (SimulatedMachine, Mounts) {
    let machine = SimulatedMachine::new(Layout::ScsiWithLinks);
    machine.attach(0, Contents::file_system("ext4", 1), 8);
    let mounts = Mounts::new(Arc::new(machine.clone()));
    (machine, mounts)
}

async fn stage(mounts: &Mounts, options: &[&str]) {
    assert_eq!(mounts.prepare_folder(Path::new(STAGING)).await.unwrap(), None);
    let options = MountOptions::parse(options.iter().copied()).unwrap();
    mounts.mount(Path::new(DEVICE), Path::new(STAGING), "ext4", &options).await.unwrap();
}

/// A bind for reading is a bind, then a change of its flags, which keeps the others.
#[tokio::test]
async fn a_mount_becomes_read_only_and_keeps_its_flags() {
    let (machine, mounts) = world();
    stage(&mounts, &["noexec", "noatime", "discard"]).await;
    mounts.prepare_folder(Path::new(TARGET)).await.unwrap();
    mounts.bind(Path::new(STAGING), Path::new(TARGET)).await.unwrap();
    let entry = mounts.at(Path::new(TARGET)).await.unwrap().unwrap();
    assert!(!entry.is_read_only());
    mounts.make_read_only(&entry).await.unwrap();
    assert!(mounts.at(Path::new(TARGET)).await.unwrap().unwrap().is_read_only());
    assert!(!mounts.at(Path::new(STAGING)).await.unwrap().unwrap().is_read_only());
    let of_target = format!("{DEVICE} {TARGET} ro,noexec,noatime,discard");
    assert!(machine.mounts().contains(&of_target), "{:?}", machine.mounts());
}

/// Section 3.14, "Mount-point ensure": what does not answer is unmounted.
#[tokio::test]
async fn a_mount_that_does_not_answer_is_taken_away() {
    let (machine, mounts) = world();
    stage(&mounts, &[]).await;
    assert!(mounts.prepare_folder(Path::new(STAGING)).await.unwrap().is_some());
    machine.set_dead(STAGING);
    assert_eq!(mounts.prepare_folder(Path::new(STAGING)).await.unwrap(), None);
    assert_eq!(machine.mounts(), Vec::<String>::new());
}

/// Section 3.14, NodeUnstageVolume: idempotent; mounts over each other are all taken away; contents of a folder stay.
#[tokio::test]
async fn a_path_is_released_however_often_it_was_mounted() {
    let (machine, mounts) = world();
    stage(&mounts, &[]).await;
    mounts.bind(Path::new(STAGING), Path::new(STAGING)).await.unwrap();
    machine.set_dead(STAGING);
    for _ in 0..10 {
        mounts.release(Path::new(STAGING)).await.unwrap();
        assert_eq!(machine.mounts(), Vec::<String>::new());
        assert!(!machine.exists(STAGING));
    }
    machine.put_file("/var/lib/kubelet/other/file", "data");
    let error = mounts.release(Path::new("/var/lib/kubelet/other")).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot remove /var/lib/kubelet/other: "), "{error}");
    assert!(machine.exists("/var/lib/kubelet/other/file"));
}

#[tokio::test]
async fn a_mount_in_use_is_an_error_that_names_its_path() {
    let (machine, mounts) = world();
    stage(&mounts, &[]).await;
    machine.set_busy(STAGING, true);
    let error = mounts.release(Path::new(STAGING)).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot unmount {STAGING}: ")), "{error}");
    assert!(machine.exists(STAGING));
}
