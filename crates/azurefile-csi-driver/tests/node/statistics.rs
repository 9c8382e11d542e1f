//! Statistics of volumes.

use std::time::Duration;

use csi::v1::NodeGetVolumeStatsRequest;
use csi::v1::node_server::Node as _;
use tonic::{Code, Request, Status};

use crate::world::{STAGING, TARGET, VOLUME, World, fails, publish, stage};

async fn ask(world: &World, volume: &str, path: &str) -> Result<(), Status> {
    let request = NodeGetVolumeStatsRequest {
        volume_id: volume.to_owned(),
        volume_path: path.to_owned(),
        ..NodeGetVolumeStatsRequest::default()
    };
    let answer = world.service.node_get_volume_stats(Request::new(request)).await?.into_inner();
    assert_eq!(answer.usage.len(), 2);
    Ok(())
}

/// FILE-128. Section 4.7: statistics are kept for ten minutes, for all volumes of the share.
#[tokio::test(start_paused = true)]
async fn statistics_are_read_once_in_ten_minutes() {
    let world = World::new();
    world.stage(stage(&[])).await.unwrap();
    world.publish(publish(&[], TARGET)).await.unwrap();
    // What is kept costs the look at the mount alone.
    let mut costs = Vec::new();
    for (volume, after) in [(VOLUME, 0), (VOLUME, 300), ("other#acc#share#####", 299), (VOLUME, 2)] {
        tokio::time::advance(Duration::from_secs(after)).await;
        let before = world.machine.steps();
        ask(&world, volume, TARGET).await.unwrap();
        costs.push(world.machine.steps() - before);
    }
    assert_eq!(costs[0], costs[1] + 1);
    assert_eq!(costs[1], costs[2]);
    assert_eq!(costs[3], costs[0]);
}

/// Section 6: missing members, and a path where nothing is.
#[tokio::test]
async fn statistics_need_a_mounted_volume() {
    let world = World::new();
    fails(ask(&world, "", TARGET).await, Code::InvalidArgument, "volume ID");
    fails(ask(&world, VOLUME, "").await, Code::InvalidArgument, "volume path");
    fails(ask(&world, VOLUME, "/nowhere").await, Code::NotFound, "does not exist");
    world.stage(stage(&[])).await.unwrap();
    world.unstage().await.unwrap();
    fails(ask(&world, VOLUME, STAGING).await, Code::NotFound, "does not exist");
}
