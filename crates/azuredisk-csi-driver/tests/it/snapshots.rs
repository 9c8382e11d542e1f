//! Snapshots (section 3.17).

use csi::v1::controller_server::Controller as _;
use csi::v1::{CreateSnapshotRequest, DeleteSnapshotRequest, ListSnapshotsRequest, Snapshot};
use tonic::{Code, Request, Status};

use crate::world::{Driver, GIB, World, parameters};

impl Driver {
    pub async fn snapshot(
        &self,
        name: &str,
        source: &str,
        entries: &[(&str, &str)],
    ) -> Result<Snapshot, Status> {
        let request = CreateSnapshotRequest {
            name: name.to_owned(),
            source_volume_id: source.to_owned(),
            parameters: parameters(entries),
            ..CreateSnapshotRequest::default()
        };
        Ok(self.controller.create_snapshot(Request::new(request)).await?.into_inner().snapshot.unwrap())
    }

    async fn snapshots(
        &self,
        id: &str,
        source: &str,
        token: &str,
        max: i32,
    ) -> Result<(Vec<String>, String), Status> {
        let request = ListSnapshotsRequest {
            snapshot_id: id.to_owned(),
            source_volume_id: source.to_owned(),
            starting_token: token.to_owned(),
            max_entries: max,
            ..ListSnapshotsRequest::default()
        };
        let page = self.controller.list_snapshots(Request::new(request)).await?.into_inner();
        Ok((
            page.entries.into_iter().map(|entry| entry.snapshot.unwrap().snapshot_id).collect(),
            page.next_token,
        ))
    }
}

/// A repeated request finds its snapshot; a name that another volume's snapshot has is taken.
#[tokio::test(start_paused = true)]
async fn a_snapshot_is_made_once() {
    let world = World::new();
    let driver = world.driver();
    let (a, b) = (driver.volume("a").await, driver.volume("b").await);
    let first = driver.snapshot("s", &a, &[]).await.unwrap();
    assert_eq!((first.size_bytes, first.source_volume_id.as_str()), (8 * GIB, a.as_str()));
    assert!(first.creation_time.is_some());
    let writes = world.writes();
    assert_eq!(driver.snapshot("s", &a, &[]).await.unwrap().snapshot_id, first.snapshot_id);
    assert_eq!(world.writes(), writes);
    assert_eq!(driver.snapshot("s", &b, &[]).await.unwrap_err().code(), Code::AlreadyExists);
    assert_eq!(driver.snapshot("", &a, &[]).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(driver.snapshot("t", "", &[]).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(driver.snapshot("t", "gone", &[]).await.unwrap_err().code(), Code::NotFound);
    // Section 3.6, FIX: an unknown key is the caller's mistake.
    assert_eq!(driver.snapshot("t", &a, &[("odd", "1")]).await.unwrap_err().code(), Code::InvalidArgument);
    let long = "n".repeat(128);
    let one = driver.snapshot(&long, &a, &[]).await.unwrap();
    assert_eq!(driver.snapshot(&long, &a, &[]).await.unwrap().snapshot_id, one.snapshot_id);
}

/// FIX: the last page has no token.
#[tokio::test(start_paused = true)]
async fn snapshots_are_listed_in_pages() {
    let world = World::new();
    let driver = world.driver();
    let (a, b) = (driver.volume("a").await, driver.volume("b").await);
    let mut ids = Vec::new();
    for (name, source) in [("s1", &a), ("s2", &a), ("s3", &b)] {
        ids.push(driver.snapshot(name, source, &[]).await.unwrap().snapshot_id);
    }
    assert_eq!(driver.snapshots("", "", "", 0).await.unwrap(), (ids.clone(), String::new()));
    let (first, token) = driver.snapshots("", "", "", 2).await.unwrap();
    assert_eq!(first, ids[..2]);
    assert_eq!(driver.snapshots("", "", &token, 2).await.unwrap(), (ids[2..].to_vec(), String::new()));
    assert_eq!(driver.snapshots(&ids[1], "", "", 0).await.unwrap().0, ids[1..2]);
    assert_eq!(driver.snapshots("", &b, "", 0).await.unwrap().0, ids[2..]);
    assert_eq!(driver.snapshots("gone", "", "", 0).await.unwrap().0, Vec::<String>::new());
    assert_eq!(driver.snapshots("", "gone", "", 0).await.unwrap().0, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_deleted() {
    let world = World::new();
    let driver = world.driver();
    let a = driver.volume("a").await;
    let id = driver.snapshot("s", &a, &[]).await.unwrap().snapshot_id;
    for (id, code) in [("", Some(Code::InvalidArgument)), (&*id, None), (&*id, None), ("gone", None)] {
        let request =
            DeleteSnapshotRequest { snapshot_id: id.to_owned(), ..DeleteSnapshotRequest::default() };
        let answer = driver.controller.delete_snapshot(Request::new(request)).await;
        assert_eq!(answer.err().map(|status| status.code()), code, "{id}");
    }
    assert_eq!(world.azure.documents_of_type("Microsoft.Compute/snapshots").len(), 0);
}

/// A snapshot for another region: a local one, its copy under the final name, and the end of the local one; each call goes on where the
/// last one ended.
#[tokio::test(start_paused = true)]
async fn a_snapshot_goes_to_another_region() {
    let world = World::new();
    let driver = world.driver();
    let a = driver.volume("a").await;
    let mut tries = 0;
    let ready = loop {
        tries += 1;
        assert!(tries < 50, "it never becomes ready");
        // Each time another replica serves the call.
        let snapshot = world.driver().snapshot("s", &a, &[("location", "northeurope")]).await.unwrap();
        if snapshot.ready_to_use {
            break snapshot;
        }
        tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    };
    assert_eq!(ready.source_volume_id, a);
    let left = world.azure.documents_of_type("Microsoft.Compute/snapshots");
    assert_eq!((left.len(), left[0]["location"].as_str()), (1, Some("northeurope")), "{left:?}");
}
