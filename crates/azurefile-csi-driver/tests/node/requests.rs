//! Requests with something missing, and what the service says of itself.

use csi::v1::node_server::Node as _;
use csi::v1::volume_capability::{AccessType, BlockVolume};
use csi::v1::{
    NodeGetCapabilitiesRequest, NodeGetInfoRequest, NodePublishVolumeRequest, NodeStageVolumeRequest,
};
use tonic::{Code, Request};

use azurefile_csi_driver::node::NodeOptions;

use crate::world::{TARGET, World, fails, publish, stage};

/// FILE-131. Section 6: NodeStage, NodePublish, NodeUnpublish and NodeUnstage with missing members.
#[tokio::test]
async fn missing_members_are_invalid_arguments() {
    let world = World::new();
    let changes: [fn(&mut NodeStageVolumeRequest); 4] = [
        |request| request.volume_id.clear(),
        |request| request.staging_target_path.clear(),
        |request| request.volume_capability = None,
        |request| {
            let capability = request.volume_capability.as_mut().unwrap();
            capability.access_type = Some(AccessType::Block(BlockVolume {}));
        },
    ];
    for change in changes {
        let mut request = stage(&[]);
        change(&mut request);
        fails(world.stage(request).await, Code::InvalidArgument, "");
    }
    let changes: [fn(&mut NodePublishVolumeRequest); 4] = [
        |request| request.volume_id.clear(),
        |request| request.staging_target_path.clear(),
        |request| request.target_path.clear(),
        |request| request.volume_capability = None,
    ];
    for change in changes {
        let mut request = publish(&[], TARGET);
        change(&mut request);
        fails(world.publish(request).await, Code::InvalidArgument, "missing in the request");
    }
    fails(world.unpublish("").await, Code::InvalidArgument, "target path");
}

/// Section 4.1: capabilities by flags.
#[tokio::test]
async fn capabilities_follow_the_flags() {
    for (has_mount_group, has_statistics, count) in [(true, true, 4), (false, true, 3), (false, false, 2)] {
        let world = World::with(NodeOptions { has_mount_group, has_statistics, ..NodeOptions::default() });
        let answer = world.service.node_get_capabilities(Request::new(NodeGetCapabilitiesRequest {})).await;
        assert_eq!(answer.unwrap().into_inner().capabilities.len(), count);
    }
}

/// Section 4.1: no topology, no limit.
#[tokio::test]
async fn a_node_says_its_name() {
    let world = World::new();
    let answer = world.service.node_get_info(Request::new(NodeGetInfoRequest {})).await.unwrap().into_inner();
    assert_eq!((answer.node_id.as_str(), answer.max_volumes_per_node), ("node-1", 0));
    assert!(answer.accessible_topology.is_none());
}
