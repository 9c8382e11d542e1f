//! The driver is killed after each of its calls to Azure: the next one comes to the same end.

use azuredisk_csi_driver::controller::ControllerOptions;
use csi::v1::controller_server::Controller as _;
use csi::v1::{CapacityRange, ControllerExpandVolumeRequest, CreateSnapshotRequest};
use serde_json::Value;
use testkit::KillSwitch;
use tonic::Request;

use crate::world::{Driver, GIB, World, create};

/// A story: what a side-car asks, one call after the other, each until it succeeds.
const STEPS: [&str; 9] = [
    "create",
    "publish",
    "expand",
    "snapshot",
    "unpublish",
    "publish elsewhere",
    "unpublish elsewhere",
    "delete",
    "create other",
];

async fn step(driver: &Driver, step: &str, id: &mut String) -> bool {
    let outcome = match step {
        "create" => driver.create(create("a", 8)).await.map(|volume| *id = volume.volume_id),
        "publish" => driver.publish(id, "alone0").await.map(drop),
        "expand" => {
            let request = ControllerExpandVolumeRequest {
                volume_id: id.clone(),
                capacity_range: Some(CapacityRange { required_bytes: 9 * GIB, limit_bytes: 0 }),
                ..ControllerExpandVolumeRequest::default()
            };
            driver.controller.controller_expand_volume(Request::new(request)).await.map(drop)
        }
        "snapshot" => {
            let request = CreateSnapshotRequest {
                name: "s".to_owned(),
                source_volume_id: id.clone(),
                ..CreateSnapshotRequest::default()
            };
            driver.controller.create_snapshot(Request::new(request)).await.map(drop)
        }
        "unpublish" => driver.unpublish(id, "alone0").await,
        "publish elsewhere" => driver.publish(id, "alone1").await.map(drop),
        "unpublish elsewhere" => driver.unpublish(id, "alone1").await,
        "delete" => driver.delete(id).await,
        _ => driver.create(create("b", 8)).await.map(drop),
    };
    outcome.is_ok()
}

/// Everything in Azure but what differs from run to run: times, and versions.
fn end_state(world: &World) -> Vec<Value> {
    let mut documents = world.azure.documents();
    for document in &mut documents {
        scrub(document);
    }
    documents
}

fn scrub(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|key, _| {
                ![
                    "etag",
                    "uniqueId",
                    "timeCreated",
                    "LastOwnershipUpdateTime",
                    "lastOwnershipUpdateTime",
                    "createdAt",
                    "lastModifiedAt",
                    "changedTime",
                    "createdTime",
                    "vmId",
                    "resourceGuid",
                ]
                .contains(&key.as_str())
            });
            members.values_mut().for_each(scrub);
        }
        Value::Array(entries) => entries.iter_mut().for_each(scrub),
        _ => {}
    }
}

/// Plays the story with a driver that dies after this call, and with another one from then on.
async fn play(fatal: Option<usize>) -> (Vec<Value>, usize) {
    let world = World::new();
    let switch = fatal.map_or_else(KillSwitch::never, KillSwitch::after_call);
    let mut driver = world.driver_with(&switch, ControllerOptions::default());
    let mut id = String::new();
    for name in STEPS {
        let mut tries = 0;
        loop {
            tries += 1;
            assert!(tries < 20, "{name} does not succeed after call {fatal:?}");
            let done = tokio::select! {
                done = step(&driver, name, &mut id) => done,
                () = switch.tripped(), if fatal.is_some() && tries == 1 => false,
            };
            if done {
                break;
            }
            driver = world.driver();
            tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        }
    }
    // Operations that a dead driver has begun end.
    tokio::time::sleep(std::time::Duration::from_secs(120)).await;
    (end_state(&world), switch.calls())
}

/// CSI-070. Killed after every call to Azure: the same end.
#[tokio::test(start_paused = true)]
async fn a_driver_that_is_killed_after_any_call_leaves_nothing_undone() {
    let (expected, calls) = play(None).await;
    assert!(calls > 20, "{calls} calls");
    for fatal in 0..calls {
        let (end, _) = play(Some(fatal)).await;
        assert_eq!(end, expected, "killed after call {fatal}");
    }
}
