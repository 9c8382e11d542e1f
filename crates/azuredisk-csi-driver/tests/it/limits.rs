//! How many data disks a node's machine takes (section 3.12 of the specification of the drivers).

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::world::World;

const ANNOTATION: &str = "disk.csi.azure.com/max-data-disks";

/// What a node's annotation says, and how often the node was written.
fn published(world: &World, node: &str) -> (Option<String>, String) {
    let node = world.kubernetes.get("Node", "", node).unwrap();
    let says = node["metadata"]["annotations"][ANNOTATION].as_str().map(ToOwned::to_owned);
    (says, node["metadata"]["resourceVersion"].as_str().unwrap().to_owned())
}

/// A node of this size takes the place of the former one of its name.
fn node_of_size(world: &World, name: &str, provider_id: &str, size: &str) {
    if world.kubernetes.get("Node", "", name).is_some() {
        world.kubernetes.delete("Node", "", name).unwrap();
    }
    let labels = json!({ "node.kubernetes.io/instance-type": size });
    world
        .kubernetes
        .create(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels },
            "spec": { "providerID": provider_id },
        }))
        .unwrap();
}

/// CSI-091. Section 3.12, trap 5, FIX: at its start and daily, the controller reads what Azure publishes of sizes, and writes it to nodes:
/// only where it differs, only to nodes of Azure, and also when two replicas do so.
#[tokio::test(start_paused = true)]
async fn nodes_hear_what_azure_publishes_of_their_size() {
    let world = World::new();
    let machine = world.machine("alone0");
    let of_azure = format!("azure://{machine}");
    node_of_size(&world, "alone0", &of_azure, "Standard_D4s_v3");
    node_of_size(&world, "elsewhere", "kind://docker/kind/x", "Standard_D4s_v3");
    node_of_size(&world, "unknown", &of_azure, "Standard_Unpublished_v9");
    let first = world.driver();
    sleep(Duration::from_secs(120)).await;
    let (says, version) = published(&world, "alone0");
    assert_eq!(says.as_deref(), Some("8"));
    assert_eq!((published(&world, "elsewhere").0, published(&world, "unknown").0), (None, None));

    // Another replica, a restart, and a day with a further list write nothing.
    let second = world.driver();
    drop(first);
    sleep(Duration::from_secs(25 * 3600)).await;
    assert_eq!(published(&world, "alone0").1, version);

    // A new node has its number soon; what was changed by hand is Azure's number again.
    node_of_size(&world, "alone1", &format!("azure://{}", world.machine("alone1")), "Standard_D8s_v3");
    world.annotate("Node", "alone0", "max-data-disks", "64").await;
    sleep(Duration::from_secs(120)).await;
    assert_eq!(published(&world, "alone1").0.as_deref(), Some("16"));
    assert_eq!(published(&world, "alone0").0.as_deref(), Some("8"));
    let lists = world.azure.journal().entries.iter().filter(|entry| entry.path.ends_with("/skus")).count();
    assert_eq!(lists, 3, "one at each start, and one after a day");
    drop(second);
}
