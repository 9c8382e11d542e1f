//! The role `deploy/rights/azure/csi-azuredisk-controller` is enough for all that the driver does, and each of its actions is
//! needed (section 3.22).

use std::collections::BTreeSet;
use std::path::Path;

use azure_types::ResourceId;
use csi::v1::ControllerExpandVolumeRequest;
use csi::v1::controller_server::Controller as _;
use csi::v1::volume_content_source::{SnapshotSource, Type};
use csi::v1::{
    CapacityRange, CreateSnapshotRequest, DeleteSnapshotRequest, ListVolumesRequest, VolumeContentSource,
};
use serde_json::{Value, json};
use tonic::{Request, Status};

use crate::world::{GIB, World, create, parameters};

const ROLE: &str = "cccccccc-0000-4000-8000-000000000001";

/// The actions of the role.
fn shipped() -> BTreeSet<String> {
    let file = "../../deploy/rights/azure/csi-azuredisk-controller/all.json";
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let role: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(role["Actions"].clone()).unwrap()
}

/// A world with a set of keys and a disk access, whose Azure allows the driver only these actions.
fn world(actions: &BTreeSet<String>) -> World {
    let world = World::new();
    let group = ResourceId::group(&world.shape.subscription, &world.shape.resource_group);
    let compute = |kind: &str, properties: Value| {
        let document = json!({"location": world.shape.region, "properties": properties,
            "identity": {"type": "SystemAssigned"}});
        world.azure.put(&group.resource("Microsoft.Compute", kind, "own"), document).unwrap();
    };
    compute(
        "diskEncryptionSets",
        json!({"activeKey": {"keyUrl": "https://keys.vault.azure.net/keys/disks/1"}}),
    );
    compute("diskAccesses", json!({}));
    let subscription = ResourceId::subscription(&world.shape.subscription);
    let role = subscription.resource("Microsoft.Authorization", "roleDefinitions", ROLE);
    let body = json!({"properties": {"roleName": "volumes", "assignableScopes": [subscription],
        "permissions": [{"actions": actions}]}});
    world.azure.put(&role, body).unwrap();
    world.azure.assign_role(&subscription, ROLE, &world.shape.object_id).unwrap();
    world.azure.enforce_authorization(true);
    world
}

/// The actions that Azure refused, in lower case.
fn refused(world: &World) -> BTreeSet<String> {
    let journal = world.azure.journal();
    let refused = journal.entries.iter().filter(|entry| entry.status == 403);
    let quoted = |message: &str| {
        let after =
            message.split("perform action(s) '").nth(1).or_else(|| message.split("perform action '").nth(1));
        after.and_then(|rest| rest.split('\'').next()).unwrap_or_default().to_ascii_lowercase()
    };
    refused.map(|entry| quoted(entry.message.as_deref().unwrap_or_default())).collect()
}

/// Everything that the driver does in Azure, on a machine of each kind. What fails is no reason to end.
async fn live(world: &World) -> Vec<Status> {
    let driver = world.driver();
    let mut failures = Vec::new();
    macro_rules! done {
        ($call:expr) => {
            match $call {
                Ok(value) => Some(value),
                Err(status) => {
                    failures.push(status);
                    None
                }
            }
        };
    }
    let group = format!(
        "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Compute",
        world.shape.subscription, world.shape.resource_group
    );
    let own = |kind: &str| format!("{group}/{kind}/own");
    let mut secret = create("secret", 8);
    secret.parameters = parameters(&[
        ("diskEncryptionSetID", &own("diskEncryptionSets")),
        ("networkAccessPolicy", "AllowPrivate"),
        ("diskAccessID", &own("diskAccesses")),
    ]);
    let mut volumes: Vec<String> =
        done!(driver.create(secret).await).into_iter().map(|it| it.volume_id).collect();
    for name in ["first", "second"] {
        volumes.extend(done!(driver.create(create(name, 8)).await).map(|volume| volume.volume_id));
    }
    let kinds = [
        world.machines().into_iter().find(|(_, id)| id.to_string().contains("/virtualMachineScaleSets/")),
        world.machines().into_iter().find(|(name, _)| name.starts_with("flexible")),
        world.machines().into_iter().find(|(name, _)| name == "alone0"),
    ];
    // Its machine is searched, because the node does not name it yet.
    let young = &kinds[0].as_ref().unwrap().0;
    world.kubernetes.delete("Node", "", young).unwrap();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": young}});
    world.kubernetes.create(node).unwrap();
    let nodes: Vec<String> = kinds.into_iter().map(|found| found.unwrap().0).collect();
    for (volume, node) in volumes.iter().zip(&nodes) {
        done!(driver.publish(volume, node).await);
        done!(driver.unpublish(volume, node).await);
    }
    if let Some(source) = volumes.last() {
        let request = CreateSnapshotRequest {
            name: "taken".to_owned(),
            source_volume_id: source.clone(),
            ..CreateSnapshotRequest::default()
        };
        let answer = done!(driver.controller.create_snapshot(Request::new(request)).await);
        if let Some(snapshot) = answer.and_then(|answer| answer.into_inner().snapshot) {
            let mut restored = create("restored", 8);
            let from = SnapshotSource { snapshot_id: snapshot.snapshot_id.clone() };
            restored.volume_content_source = Some(VolumeContentSource { r#type: Some(Type::Snapshot(from)) });
            volumes.extend(done!(driver.create(restored).await).map(|volume| volume.volume_id));
            let snapshot_id = snapshot.snapshot_id;
            let request = DeleteSnapshotRequest { snapshot_id, ..DeleteSnapshotRequest::default() };
            done!(driver.controller.delete_snapshot(Request::new(request)).await);
        }
        let request = ControllerExpandVolumeRequest {
            volume_id: volumes[0].clone(),
            capacity_range: Some(CapacityRange { required_bytes: 16 * GIB, limit_bytes: 0 }),
            ..ControllerExpandVolumeRequest::default()
        };
        done!(driver.controller.controller_expand_volume(Request::new(request)).await);
    }
    done!(driver.controller.list_volumes(Request::new(ListVolumesRequest::default())).await);
    for volume in &volumes {
        done!(driver.delete(volume).await);
    }
    failures
}

/// CSI-090: everything happens with the role, and nothing is refused.
#[tokio::test(start_paused = true)]
async fn the_role_is_enough() {
    let world = world(&shipped());
    let failures = live(&world).await;
    assert!(failures.is_empty(), "{failures:#?}");
    assert_eq!(refused(&world), BTreeSet::new());
}

/// Actions that this story does not show to be needed, and why the role has them.
const ELSEWHERE: [(&str, &str); 1] =
    [("Microsoft.Compute/diskAccesses/read", "it is not known whether Azure checks it; reading is harmless")];

/// CSI-090: without one of its actions, Azure refuses this action.
#[tokio::test(start_paused = true)]
async fn each_action_of_the_role_is_needed() {
    let mut unneeded = BTreeSet::new();
    for action in shipped() {
        let mut actions = shipped();
        actions.remove(&action);
        let world = world(&actions);
        live(&world).await;
        let refused = refused(&world);
        if refused.is_empty() {
            unneeded.insert(action);
        } else {
            assert_eq!(refused, BTreeSet::from([action.to_ascii_lowercase()]), "without {action}");
        }
    }
    assert_eq!(unneeded, ELSEWHERE.map(|(action, _)| action.to_owned()).into());
}
