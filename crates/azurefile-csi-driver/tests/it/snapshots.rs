//! Snapshots are taken, found and deleted.

use tonic::Code;

use crate::world::{GIB, World};

/// FILE-032. Section 4.8: a name is one snapshot of one share, however often and by whom it is asked for.
#[tokio::test(start_paused = true)]
async fn a_name_is_one_snapshot() {
    let world = World::new();
    let driver = world.driver();
    let (a, b) = (driver.volume("pvc-1").await, driver.volume("pvc-2").await);
    let taken = driver.snapshot("s", &a).await.unwrap();
    assert!(taken.ready_to_use && taken.size_bytes == 8 * GIB && taken.creation_time.is_some());
    assert!(taken.snapshot_id.starts_with(&a) && taken.snapshot_id.ends_with(&world.shape.subscription));
    let reads = world.calls("GET", "/shares");
    assert_eq!(world.driver().snapshot("s", &a).await.unwrap(), taken);
    assert_eq!(world.calls("GET", "/shares") - reads, 1, "one list answers");
    assert_eq!(driver.snapshot("s", &b).await.unwrap_err().code(), Code::AlreadyExists);
    assert_eq!(
        driver.snapshot("t", &a.replace("#pvc-1#", "#absent#")).await.unwrap_err().code(),
        Code::NotFound
    );

    let (one, other) = (world.driver(), world.driver());
    let (first, second) = tokio::join!(one.snapshot("r", &a), other.snapshot("r", &a));
    assert_eq!(first.unwrap().snapshot_id, second.unwrap().snapshot_id);
}

/// FILE-033. Section 4.8: a snapshot that is gone is deleted, and a share with snapshots stays.
#[tokio::test(start_paused = true)]
async fn a_share_with_snapshots_stays() {
    let world = World::new();
    let driver = world.driver();
    let a = driver.volume("pvc-1").await;
    let taken = driver.snapshot("s", &a).await.unwrap();
    let status = driver.delete(&a).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
    driver.delete_snapshot(&taken.snapshot_id).await.unwrap();
    driver.delete_snapshot(&taken.snapshot_id).await.unwrap();
    driver.delete_snapshot("fake-snapshot-id").await.unwrap();
    assert_eq!(driver.delete_snapshot("").await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(world.shares().len(), 1, "the share itself stays");
    driver.delete(&a).await.unwrap();
    assert_eq!(world.shares().len(), 0);
}
