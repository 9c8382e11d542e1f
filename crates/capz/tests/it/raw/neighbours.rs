//! Two clusters that declare the same resources: none harms the other.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    CLUSTER, CONTROL_PLANE, agent_pool, annotated, cluster, cluster_in, credential, flavor, group,
    managed_cluster, pool, running,
};
use crate::world::{SUBSCRIPTION, World};

const OTHER: &str = "team-b";
const LONG: Duration = Duration::from_secs(1300);

fn namespace(world: &World) {
    use base64::Engine as _;
    let encoded = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    world.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": OTHER } }));
    world.create(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "credential", "namespace": OTHER },
        "data": { "AZURE_SUBSCRIPTION_ID": encoded(SUBSCRIPTION), "AZURE_TENANT_ID": encoded("t"), "AZURE_CLIENT_ID": encoded("c"),
            "AZURE_CLIENT_SECRET": encoded("other") },
    }));
}

/// The same declaration in another namespace; the user has consented to take what exists.
fn second(world: &World) {
    const ADOPT: &str = "sigs.k8s.io/cluster-api-provider-azure-adopt";
    let group = annotated(group("aks"), ADOPT, "true");
    let cluster = annotated(managed_cluster("aks", json!({ "tags": { "theirs": "no" } })), ADOPT, "true");
    cluster_in(world, OTHER, "aks", &[group], json!({ "version": "v1.33.2", "resources": [cluster] }));
}

fn other(world: &World, kind: &str) -> Option<Value> {
    world.kubernetes.get(kind, OTHER, "aks").map(|object| object.value().clone())
}

fn words(world: &World, kind: &str) -> String {
    other(world, kind).map(|it| it["status"]["conditions"].to_string()).unwrap_or_default()
}

async fn end(world: &World) {
    world
        .kubernetes
        .merge(
            "Cluster",
            OTHER,
            "aks",
            &json!({ "metadata": { "finalizers": ["cluster.cluster.x-k8s.io"] } }),
        )
        .unwrap();
    world.kubernetes.delete("Cluster", OTHER, "aks").unwrap();
    for kind in [CONTROL_PLANE, CLUSTER] {
        world.kubernetes.delete(kind, OTHER, "aks").unwrap();
        world.until("it is gone", |world| other(world, kind).is_none()).await;
    }
}

/// The second of two objects that declare one resource is refused by name, also after a restart, and its deletion touches
/// nothing.
#[tokio::test(start_paused = true)]
async fn the_second_of_two_clusters_is_refused_and_harms_nothing() {
    let mut world = running().await;
    namespace(&world);
    let first = world.azure.documents();
    second(&world);
    let refused = |world: &World| words(world, CLUSTER).contains("AzureASOManagedCluster default/aks");
    world.until("the refusal", refused).await;
    world.kill().await;
    world.start();
    tokio::time::sleep(LONG).await;
    assert!(refused(&world));
    assert_eq!(world.azure.documents(), first);
    end(&world).await;
    tokio::time::sleep(LONG).await;
    assert_eq!(world.azure.documents(), first);
    assert!(world.is_ready(CONTROL_PLANE, "aks"));
}

/// Two that begin at the same moment: one of them gets the resources, and the deletion of the other deletes nothing.
#[tokio::test(start_paused = true)]
async fn of_two_that_begin_together_one_is_refused() {
    let mut world = World::new();
    namespace(&world);
    flavor(&world);
    second(&world);
    credential(&world);
    world.start();
    let is_up = |world: &World| {
        let is_ready =
            |object: Option<Value>| object.is_some_and(|it| it["status"]["resources"][0]["ready"] == true);
        is_ready(world.get(CLUSTER, "aks")) ^ is_ready(other(world, CLUSTER))
    };
    world.until("one of them", is_up).await;
    tokio::time::sleep(LONG).await;
    assert!(is_up(&world));
    let group = world.azure.document(&world.group("aks")).unwrap();
    let is_second = other(&world, CLUSTER).unwrap()["status"]["resources"][0]["ready"] == true;
    let (namespace, kept) = if is_second { ("default", OTHER) } else { (OTHER, "default") };
    // The loser goes.
    world
        .kubernetes
        .merge("Cluster", namespace, "aks", &json!({ "metadata": { "finalizers": ["x/y"] } }))
        .unwrap();
    world.kubernetes.delete("Cluster", namespace, "aks").unwrap();
    for kind in [CONTROL_PLANE, CLUSTER] {
        world.kubernetes.delete(kind, namespace, "aks").unwrap();
        world
            .until("the loser is gone", |world| world.kubernetes.get(kind, namespace, "aks").is_none())
            .await;
    }
    assert_eq!(world.azure.document(&world.group("aks")), Some(group), "{kept}");
}

/// Two clusters of a namespace give one name to an object: each one's references lead to its own.
#[tokio::test(start_paused = true)]
async fn a_name_stands_for_the_object_of_the_own_cluster() {
    let mut world = running().await;
    let mut group = group("aks");
    group["spec"]["azureName"] = json!("bks");
    let mut control_plane = managed_cluster("bks", json!({}));
    control_plane["spec"]["owner"]["name"] = json!("aks");
    cluster(&world, "bks", &[group], json!({ "version": "v1.33.2", "resources": [control_plane] }));
    pool(&world, "bks", "bks-pool0", agent_pool("bks", "bks-pool0", "pool0", json!({})));
    world.until("it is ready", |world| world.is_ready(CONTROL_PLANE, "bks")).await;
    tokio::time::sleep(LONG).await;
    let clusters = world.azure.documents_of_type("Microsoft.ContainerService/managedClusters");
    let ids: Vec<&str> = clusters.iter().filter_map(|it| it["id"].as_str()).collect();
    let is_in =
        |group: &str| ids.iter().filter(|id| id.contains(&format!("/resourcegroups/{group}/"))).count();
    assert_eq!((is_in("aks"), is_in("bks"), ids.len()), (1, 1, 2), "{ids:?}");
    world.kill().await;
}

/// A cluster of the other generation of kinds with the same place in Azure: whichever comes first keeps it, and the
/// deletion of the other touches nothing.
#[tokio::test(start_paused = true)]
async fn a_cluster_of_the_other_generation_is_refused() {
    use crate::managed;
    let mut world = running().await;
    let first = world.azure.documents();
    managed::cluster_in(&world, OTHER, "aks", json!({}));
    managed::pool_in(&world, OTHER, "aks", "system", json!({ "mode": "System" }));
    let says = |world: &World| managed::says(world, OTHER, "aks");
    let refused = |world: &World| says(world).contains("AzureASOManagedControlPlane default/aks comes first");
    world.until("the refusal", refused).await;
    world.kill().await;
    world.start();
    tokio::time::sleep(LONG).await;
    assert!(refused(&world), "{}", says(&world));
    assert_eq!(world.azure.documents(), first);
    managed::end(&world, OTHER, "aks").await;
    assert_eq!(world.azure.documents(), first);

    let world = managed::running().await;
    namespace(&world);
    credential(&world);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (first, clusters) = (world.azure.documents(), world.azure.documents_of_type(super::CLUSTERS));
    second(&world);
    let refused = |world: &World| {
        words(world, CONTROL_PLANE).contains("belongs to AzureManagedControlPlane default/aks")
    };
    world.until("the refusal", refused).await;
    tokio::time::sleep(LONG).await;
    assert_eq!(world.azure.documents_of_type(super::CLUSTERS), clusters);
    end(&world).await;
    tokio::time::sleep(LONG).await;
    assert_eq!(world.azure.documents(), first);
}
