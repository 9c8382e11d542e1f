//! NodeGetVolumeStats (section 3.14 of the specification of the drivers).

use csi::v1::NodeGetVolumeStatsRequest;
use csi::v1::node_server::Node as _;
use csi::v1::volume_usage::Unit;
use tonic::{Code, Request};
use volumes_node::simulated::{Contents, Layout};

use crate::world::{GIB, Step, TARGET, VOLUME, World, mounted, publish, raw, stage};

fn request(id: &str, path: &str) -> Request<NodeGetVolumeStatsRequest> {
    let (volume_id, volume_path) = (id.to_owned(), path.to_owned());
    Request::new(NodeGetVolumeStatsRequest { volume_id, volume_path, ..NodeGetVolumeStatsRequest::default() })
}

#[tokio::test(start_paused = true)]
async fn a_file_system_has_bytes_and_inodes_and_a_device_its_size() {
    for (access, expected) in [
        (mounted("", &[]), vec![(Unit::Bytes, 8 * GIB, 2 * GIB), (Unit::Inodes, 1_000, 100)]),
        (raw(), vec![(Unit::Bytes, 8 * GIB, 0)]),
    ] {
        let world = World::new(Layout::ScsiWithLinks);
        world.machine.attach(3, Contents::Blank, 8);
        world.succeeds(Step::Stage(stage(access.clone()))).await;
        world.succeeds(Step::Publish(publish(access, TARGET))).await;
        let answer = world.service.node_get_volume_stats(request(VOLUME, TARGET)).await.unwrap().into_inner();
        let usage: Vec<_> = answer.usage.iter().map(|one| (one.unit(), one.total, one.used)).collect();
        assert_eq!(usage, expected);
        world.succeeds(Step::Unpublish(TARGET)).await;
        let status = world.service.node_get_volume_stats(request(VOLUME, TARGET)).await.unwrap_err();
        assert_eq!(status.code(), Code::NotFound);
    }
}

/// csi-sanity: no ID, no path, a missing path. A folder that is no volume would answer with the machine's own disk.
#[tokio::test(start_paused = true)]
async fn what_is_no_volume_has_no_statistics() {
    let world = World::new(Layout::ScsiWithLinks);
    for (id, path, code) in [
        ("", TARGET, Code::InvalidArgument),
        (VOLUME, "", Code::InvalidArgument),
        (VOLUME, TARGET, Code::NotFound),
        (VOLUME, "/dev", Code::NotFound),
    ] {
        let status = world.service.node_get_volume_stats(request(id, path)).await.unwrap_err();
        assert_eq!(status.code(), code, "{id} {path}: {status}");
    }
}
