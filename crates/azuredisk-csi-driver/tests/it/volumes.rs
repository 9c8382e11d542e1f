//! Volumes are created, copied, grown, changed, listed and deleted (sections 3.7, 3.8, 3.13, 3.16 and 3.17).

use csi::v1::controller_server::Controller as _;
use csi::v1::volume_content_source::{SnapshotSource, Type, VolumeSource};
use csi::v1::{
    CapacityRange, ControllerExpandVolumeRequest, ControllerModifyVolumeRequest, CreateSnapshotRequest,
    ListVolumesRequest, ValidateVolumeCapabilitiesRequest, VolumeContentSource,
};
use futures::future::join_all;
use tonic::{Code, Request};

use crate::world::{GIB, World, capability, create, parameters};

/// Section 3.7: a repeated request finds its disk, with one write in all. Section 6: the size that was asked for, and its place.
#[tokio::test(start_paused = true)]
async fn a_repeated_request_finds_its_disk() {
    let world = World::new();
    let driver = world.driver();
    let first = driver.create(create("pvc-1", 10)).await.unwrap();
    let writes = world.writes();
    let again = driver.create(create("pvc-1", 10)).await.unwrap();
    assert_eq!((again.clone(), world.writes()), (first.clone(), writes));
    assert_eq!(first.capacity_bytes, 10 * GIB);
    assert!(first.volume_id.ends_with("/providers/Microsoft.Compute/disks/pvc-1"), "{}", first.volume_id);
    assert_eq!(first.accessible_topology.len(), 1);
    assert_eq!(first.volume_context["requestedsizegib"], "10");

    // A restarted driver finds it, too.
    assert_eq!(world.driver().create(create("pvc-1", 10)).await.unwrap(), first);
}

/// Section 3.7, step 6, FIX: a disk of another size is never grown by a request to create it.
#[tokio::test(start_paused = true)]
async fn another_size_under_the_same_name_is_refused() {
    let world = World::new();
    let driver = world.driver();
    driver.create(create("pvc-1", 10)).await.unwrap();
    let writes = world.writes();
    let refused = driver.create(create("pvc-1", 20)).await.unwrap_err();
    assert_eq!((refused.code(), world.writes()), (Code::AlreadyExists, writes), "{refused:?}");
}

/// Section 3.21: what is wrong with a request, with its code.
#[tokio::test(start_paused = true)]
async fn wrong_requests_have_their_codes() {
    let world = World::new();
    let driver = world.driver();
    let mut nameless = create("", 1);
    nameless.name.clear();
    let mut without = create("a", 1);
    without.volume_capabilities.clear();
    let mut unknown = create("a", 1);
    unknown.parameters = parameters(&[("skuname2", "x")]);
    let mut over = create("a", 10);
    over.capacity_range = Some(CapacityRange { required_bytes: 10 * GIB, limit_bytes: 9 * GIB });
    let content = |kind: Type| VolumeContentSource { r#type: Some(kind) };
    let mut of_missing = create("a", 10);
    of_missing.volume_content_source =
        Some(content(Type::Snapshot(SnapshotSource { snapshot_id: "gone".to_owned() })));
    let mut clone_of_missing = create("a", 10);
    clone_of_missing.volume_content_source =
        Some(content(Type::Volume(VolumeSource { volume_id: "gone".to_owned() })));
    for (request, code) in [
        (nameless, Code::InvalidArgument),
        (without, Code::InvalidArgument),
        (unknown, Code::InvalidArgument),
        (over, Code::OutOfRange),
        (of_missing, Code::NotFound),
        (clone_of_missing, Code::NotFound),
    ] {
        let name = format!("{request:?}");
        assert_eq!(driver.create(request).await.unwrap_err().code(), code, "{name}");
    }
    assert_eq!(world.writes(), 0);
}

/// Section 2.4: a second request of the same name is refused while the first is served.
#[tokio::test(start_paused = true)]
async fn a_name_is_served_once_at_a_time() {
    let world = World::new();
    let driver = world.driver();
    let answers = tokio::join!(driver.create(create("a", 1)), driver.create(create("a", 1)));
    assert!(answers.0.is_ok(), "{answers:?}");
    let refused = answers.1.unwrap_err();
    assert_eq!(refused.code(), Code::Aborted);
    assert_eq!(refused.message(), "An operation with the given Volume ID a already exists");
}

/// Section 3.8, with its FIX: a disk that a machine has is not deleted; one that is not there is.
#[tokio::test(start_paused = true)]
async fn a_disk_is_deleted_once_no_machine_has_it() {
    let world = World::new();
    let driver = world.driver();
    let id = driver.volume("a").await;
    driver.publish(&id, "alone0").await.unwrap();
    let refused = driver.delete(&id).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");
    driver.unpublish(&id, "alone0").await.unwrap();
    driver.delete(&id).await.unwrap();
    driver.delete(&id).await.unwrap();
    driver.delete("no-disk-of-azure").await.unwrap();
    assert_eq!(driver.delete("").await.unwrap_err().code(), Code::InvalidArgument);
}

/// Section 3.16, FIX: the real size is answered; an attached disk grows; a missing one is not found.
#[tokio::test(start_paused = true)]
async fn a_volume_grows() {
    let world = World::new();
    let driver = world.driver();
    let id = driver.volume("a").await;
    driver.publish(&id, "alone0").await.unwrap();
    let expand = |id: &str, gib: i64| {
        let range = (gib > 0).then_some(CapacityRange { required_bytes: gib * GIB, limit_bytes: 0 });
        let request = ControllerExpandVolumeRequest {
            volume_id: id.to_owned(),
            capacity_range: range,
            ..ControllerExpandVolumeRequest::default()
        };
        let driver = &driver;
        async move { driver.controller.controller_expand_volume(Request::new(request)).await }
    };
    let grown = expand(&id, 16).await.unwrap().into_inner();
    assert_eq!((grown.capacity_bytes, grown.node_expansion_required), (16 * GIB, true));
    let writes = world.writes();
    assert_eq!(expand(&id, 12).await.unwrap().into_inner().capacity_bytes, 16 * GIB);
    assert_eq!(world.writes(), writes);
    for (id, gib, code) in [
        ("", 1, Code::InvalidArgument),
        (&*id, 0, Code::InvalidArgument),
        (&id.replace("/a", "/gone"), 1, Code::NotFound),
        (&id, 100_000, Code::OutOfRange),
    ] {
        assert_eq!(expand(id, gib).await.unwrap_err().code(), code, "{id} {gib}");
    }
}

/// Section 3.13, and 3.5 with its FIX: a key that cannot change is refused.
#[tokio::test(start_paused = true)]
async fn attributes_of_a_volume_change() {
    let world = World::new();
    let driver = world.driver();
    let id = driver.volume("a").await;
    let modify = |id: &str, entries: &[(&str, &str)]| {
        let request = ControllerModifyVolumeRequest {
            volume_id: id.to_owned(),
            mutable_parameters: parameters(entries),
            ..ControllerModifyVolumeRequest::default()
        };
        let driver = &driver;
        async move { driver.controller.controller_modify_volume(Request::new(request)).await }
    };
    modify(&id, &[("skuName", "Premium_LRS")]).await.unwrap();
    let writes = world.writes();
    modify(&id, &[("skuName", "Premium_LRS")]).await.unwrap();
    assert_eq!(world.writes(), writes, "nothing is to be changed");
    for (id, entries, code) in [
        ("", &[][..], Code::InvalidArgument),
        (&*id.replace("/a", "/gone"), &[], Code::NotFound),
        (&id, &[("unknown", "1")], Code::InvalidArgument),
        (&id, &[("fsType", "xfs")], Code::InvalidArgument),
        (&id, &[("DiskIOPSReadWrite", "1000")], Code::InvalidArgument),
    ] {
        assert_eq!(modify(id, entries).await.unwrap_err().code(), code, "{id} {entries:?}");
    }
}

/// CSI-077. Section 3.17: volumes are listed with the nodes that have them, in pages.
#[tokio::test(start_paused = true)]
async fn volumes_are_listed_in_pages() {
    let world = World::new();
    let driver = world.driver_alone();
    let ids = join_all(["a", "b", "c"].map(|name| driver.volume(name))).await;
    driver.publish(&ids[1], "alone0").await.unwrap();
    let uniform =
        world.machines().into_iter().map(|(name, _)| name).find(|name| name.starts_with("uniform")).unwrap();
    driver.publish(&ids[2], &uniform).await.unwrap();
    let page = |token: &str, max: i32| {
        let request = ListVolumesRequest { starting_token: token.to_owned(), max_entries: max };
        let driver = &driver;
        async move { driver.controller.list_volumes(Request::new(request)).await }
    };
    let first = page("", 2).await.unwrap().into_inner();
    let rest = page(&first.next_token, 2).await.unwrap().into_inner();
    assert_eq!((first.entries.len(), rest.entries.len(), rest.next_token.as_str()), (2, 1, ""));
    let nodes: Vec<_> = first
        .entries
        .iter()
        .chain(&rest.entries)
        .map(|entry| entry.status.clone().unwrap().published_node_ids)
        .collect();
    assert_eq!(nodes, [vec![], vec!["alone0".to_owned()], vec![uniform]]);
    assert_eq!(page("invalid", 2).await.unwrap_err().code(), Code::Aborted);
}

/// CSI-077. With Kubernetes, its PersistentVolumes say which disks are the driver's, in all their groups.
#[tokio::test(start_paused = true)]
async fn only_volumes_of_kubernetes_are_listed() {
    let world = World::new();
    let driver = world.driver();
    let (a, _not_kubernetes) = (driver.volume("a").await, driver.volume("b").await);
    world.persistent_volume("pv", &a);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let listed = driver.controller.list_volumes(Request::new(ListVolumesRequest::default())).await.unwrap();
    let ids: Vec<_> =
        listed.into_inner().entries.into_iter().map(|entry| entry.volume.unwrap().volume_id).collect();
    assert_eq!(ids, [a]);
}

/// Section 3.7, step 7: a clone, a restore, and the size of each; a single-zone source forces its zone.
#[tokio::test(start_paused = true)]
async fn a_volume_is_copied() {
    let world = World::new();
    let driver = world.driver();
    let id = driver.volume("a").await;
    let snapshot = driver
        .controller
        .create_snapshot(Request::new(CreateSnapshotRequest {
            name: "s".to_owned(),
            source_volume_id: id.clone(),
            ..CreateSnapshotRequest::default()
        }))
        .await
        .unwrap();
    let snapshot_id = snapshot.into_inner().snapshot.unwrap().snapshot_id;
    let content = |kind: Type| Some(VolumeContentSource { r#type: Some(kind) });
    let mut clone = create("clone", 16);
    clone.volume_content_source = content(Type::Volume(VolumeSource { volume_id: id }));
    let clone = driver.create(clone).await.unwrap();
    assert_eq!(clone.capacity_bytes, 16 * GIB);
    assert_eq!(clone.volume_context.get("resizeRequired").map(String::as_str), Some("true"));
    assert!(clone.content_source.is_some());
    // A restore of a larger snapshot has the snapshot's size, and says so (FIX: the real capacity).
    let mut restore = create("restored", 1);
    restore.volume_content_source = content(Type::Snapshot(SnapshotSource { snapshot_id }));
    let restored = driver.create(restore.clone()).await.unwrap();
    assert_eq!(restored.capacity_bytes, 8 * GIB);
    restore.name = "too-small".to_owned();
    restore.capacity_range = Some(CapacityRange { required_bytes: GIB, limit_bytes: 2 * GIB });
    assert_eq!(driver.create(restore).await.unwrap_err().code(), Code::OutOfRange);
}

/// Section 3.1: uses are confirmed, or the answer says which one is not served.
#[tokio::test(start_paused = true)]
async fn uses_of_a_volume_are_confirmed() {
    let world = World::new();
    let driver = world.driver();
    let id = driver.volume("a").await;
    let validate = |id: &str, capabilities| {
        let request = ValidateVolumeCapabilitiesRequest {
            volume_id: id.to_owned(),
            volume_capabilities: capabilities,
            ..ValidateVolumeCapabilitiesRequest::default()
        };
        let driver = &driver;
        async move { driver.controller.validate_volume_capabilities(Request::new(request)).await }
    };
    assert!(validate(&id, vec![capability()]).await.unwrap().into_inner().confirmed.is_some());
    let mut shared = capability();
    shared.access_mode.as_mut().unwrap().mode =
        csi::v1::volume_capability::access_mode::Mode::MultiNodeMultiWriter.into();
    let answer = validate(&id, vec![shared]).await.unwrap().into_inner();
    assert!(answer.confirmed.is_none() && !answer.message.is_empty());
    assert_eq!(validate("", vec![capability()]).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(validate(&id, vec![]).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(validate("gone", vec![capability()]).await.unwrap_err().code(), Code::NotFound);
}
