//! What is declared counts: what is dropped goes, what others change is repaired, and what is not known stays away.

use std::time::Duration;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::{
    CLUSTER, CLUSTERS, CONTROL_PLANE, annotated, cluster, credential, group, managed_cluster, resource,
    running, said,
};
use crate::world::World;

fn address(name: &str) -> Value {
    let spec = json!({ "location": "eastus", "owner": { "name": "aks" }, "sku": { "name": "Standard" }, "publicIPAllocationMethod": "Static" });
    resource("network.azure.com/v1api20240301", "PublicIPAddress", name, spec)
}

fn id_of(world: &World, name: &str) -> ResourceId {
    world.group("aks").resource("Microsoft.Network", "publicIPAddresses", name)
}

/// CAPZ-205: resources of a new kind are recorded before any of them is made. CAPZ-206: a resource that is dropped is
/// deleted, and a foreign one of its kind stays.
#[tokio::test(start_paused = true)]
async fn a_resource_that_is_dropped_is_deleted_and_no_other() {
    let world = running().await;
    world.azure.put(&id_of(&world, "foreign"), json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": { "publicIPAllocationMethod": "Static" } })).unwrap();
    let before = world.sequence();
    world.merge(CLUSTER, "aks", json!({ "spec": { "resources": [group("aks"), address("egress")] } }));
    world.until("the address", |world| world.azure.document(&id_of(world, "egress")).is_some()).await;
    world.until("it is ready", |world| world.is_ready(CLUSTER, "aks")).await;
    let kinds = world.get(CLUSTER, "aks").unwrap()["metadata"]["annotations"]["sigs.k8s.io/cluster-api-provider-azure-owned-aso-kinds"].clone();
    assert_eq!(
        kinds,
        "PublicIPAddress.v1api20240301.network.azure.com;ResourceGroup.v1api20200601.resources.azure.com"
    );
    let puts = world.calls_after(before).into_iter().filter(|call| call.starts_with("PUT")).count();
    assert_eq!(puts, 1);
    world.merge(CLUSTER, "aks", json!({ "spec": { "resources": [group("aks")] } }));
    world.until("the address is gone", |world| world.azure.document(&id_of(world, "egress")).is_none()).await;
    assert!(world.azure.document(&id_of(&world, "foreign")).is_some());
    let listed =
        |world: &World| world.get(CLUSTER, "aks").unwrap()["status"]["resources"].as_array().unwrap().len();
    world.until("it is listed no longer", |world| listed(world) == 1).await;
}

/// A prefix, and an address from it: each shows the other in Azure. Dropped together, the address goes first, and what
/// another has put beside them stays.
#[tokio::test(start_paused = true)]
async fn an_address_is_dropped_before_its_prefix() {
    let world = running().await;
    let prefix = resource(
        "network.azure.com/v1api20240301",
        "PublicIPPrefix",
        "range",
        json!({ "location": "eastus", "owner": { "name": "aks" }, "sku": { "name": "Standard" }, "prefixLength": 30 }),
    );
    let mut egress = address("egress");
    egress["spec"]["publicIPPrefix"] =
        json!({ "reference": { "group": "network.azure.com", "kind": "PublicIPPrefix", "name": "range" } });
    let theirs =
        json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": { "prefixLength": 30 } });
    let range = |world: &World, name: &str| {
        world.group("aks").resource("Microsoft.Network", "publicIPPrefixes", name)
    };
    world.azure.put(&range(&world, "theirs"), theirs).unwrap();
    world.merge(CLUSTER, "aks", json!({ "spec": { "resources": [group("aks"), egress, prefix] } }));
    world.until("the address", |world| world.azure.document(&id_of(world, "egress")).is_some()).await;
    world.until("it is ready", |world| world.is_ready(CLUSTER, "aks")).await;
    let held = world.azure.document(&range(&world, "range")).unwrap();
    assert_eq!(held["properties"]["publicIPAddresses"].as_array().map(Vec::len), Some(1), "{held}");
    let begin = world.sequence();
    world.merge(CLUSTER, "aks", json!({ "spec": { "resources": [group("aks")] } }));
    world.until("the prefix is gone", |world| world.azure.document(&range(world, "range")).is_none()).await;
    let deletions: Vec<String> =
        world.calls_after(begin).into_iter().filter(|call| call.starts_with("DELETE")).collect();
    assert_eq!(deletions.len(), 2, "{deletions:#?}");
    assert!(deletions[0].contains("publicIPAddresses/egress"), "{deletions:#?}");
    assert!(world.azure.document(&range(&world, "theirs")).is_some());
    world.until("it is ready", |world| world.is_ready(CLUSTER, "aks")).await;
}

/// CAPZ-207: a declaration that Azure does not have yet is not reported as ready: the conditions name the generation that is
/// reconciled, and the resource is not ready meanwhile.
#[tokio::test(start_paused = true)]
async fn a_changed_declaration_is_not_ready_before_azure_has_it() {
    let mut world = running().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let observed = |world: &World| {
        let object = world.get(CONTROL_PLANE, "aks").unwrap();
        let conditions = object["status"]["v1beta2"]["conditions"].as_array().unwrap().clone();
        let ready = conditions.into_iter().find(|it| it["type"] == "Ready").unwrap();
        let is_current = ready["observedGeneration"] == object["metadata"]["generation"];
        let is_resource_ready = object["status"]["resources"][0]["ready"] == true;
        (is_current, ready["status"] == "True", is_resource_ready)
    };
    let is_written = |world: &World| world.azure.documents_of_type(CLUSTERS).remove(0)["tags"]["team"] == "a";
    assert_eq!(observed(&world), (true, true, true));
    // While no manager runs, Ready is True, and older.
    world.kill().await;
    let tagged = managed_cluster("aks", json!({ "tags": { "team": "a" } }));
    world.merge(CONTROL_PLANE, "aks", json!({ "spec": { "resources": [tagged] } }));
    assert_eq!(observed(&world), (false, true, true));
    world.start();
    let mut seen = std::collections::BTreeSet::new();
    while !is_written(&world) {
        let (is_current, is_ready, is_resource_ready) = observed(&world);
        assert!(!is_current || !is_ready && !is_resource_ready);
        seen.insert(is_current);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(seen.contains(&false));
    world.until("it is ready", |world| observed(world) == (true, true, true)).await;
}

/// A tag that is declared no longer is removed, one of another writer stays, and the cluster is written once.
#[tokio::test(start_paused = true)]
async fn what_is_declared_no_longer_is_removed() {
    let world = running().await;
    let tagged =
        |tags: Value| json!({ "spec": { "resources": [managed_cluster("aks", json!({ "tags": tags }))] } });
    world.merge(CONTROL_PLANE, "aks", tagged(json!({ "team": "a", "cost": "1" })));
    let tags = |world: &World| world.azure.documents_of_type(CLUSTERS).remove(0)["tags"].clone();
    world.until("the tags", |world| tags(world)["cost"] == "1" && world.is_ready(CONTROL_PLANE, "aks")).await;
    let mut document = world.azure.documents_of_type(CLUSTERS).remove(0);
    let id = ResourceId::parse(document["id"].as_str().unwrap()).unwrap();
    document["tags"]["policy"] = json!("theirs");
    world.azure.put(&id, document).unwrap();
    tokio::time::sleep(Duration::from_secs(1300)).await;
    let begin = world.sequence();
    world.merge(CONTROL_PLANE, "aks", tagged(json!({ "team": "a" })));
    world.until("the tag is gone", |world| tags(world)["cost"].is_null()).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(tags(&world), json!({ "team": "a", "policy": "theirs" }));
    // Azure writes what it has made for the nodes itself.
    let is_ours = |it: &String| it.starts_with("PUT") && !it.contains("/MC_");
    let writes: Vec<String> = world.calls_after(begin).into_iter().filter(is_ours).collect();
    assert_eq!(writes.len(), 1, "{writes:#?}");
}

/// What another program changes is repaired.
#[tokio::test(start_paused = true)]
async fn foreign_edits_are_repaired() {
    let world = running().await;
    let tagged = managed_cluster("aks", json!({ "tags": { "team": "a" } }));
    world.merge(CONTROL_PLANE, "aks", json!({ "spec": { "resources": [tagged] } }));
    let team = |world: &World| world.azure.documents_of_type(CLUSTERS).remove(0)["tags"]["team"] == "a";
    world.until("the tag", |world| team(world) && world.is_ready(CONTROL_PLANE, "aks")).await;
    let mut document = world.azure.documents_of_type(CLUSTERS).remove(0);
    let id = ResourceId::parse(document["id"].as_str().unwrap()).unwrap();
    document["tags"]["team"] = json!("b");
    world.azure.put(&id, document).unwrap();
    assert!(!team(&world));
    world.until("the repair", team).await;
}

/// A resource that exists already is taken only with the annotation, and is deleted with its object only then.
#[tokio::test(start_paused = true)]
async fn what_exists_already_is_not_taken_without_consent() {
    let mut world = World::new();
    credential(&world);
    world
        .azure
        .put(&world.group("aks"), json!({ "location": "eastus", "tags": { "theirs": "yes" } }))
        .unwrap();
    cluster(&world, "aks", &[group("aks")], json!({ "resources": [managed_cluster("aks", json!({}))] }));
    world.start();
    let refused = |world: &World| {
        said(world, CLUSTER, "aks")
            .iter()
            .any(|it| it.contains("exists already") && it.contains("cluster-api-provider-azure-adopt"))
    };
    world.until("the refusal", refused).await;
    world.kill().await;
    world.start();
    tokio::time::sleep(Duration::from_secs(1300)).await;
    assert!(world.get(CLUSTER, "aks").unwrap()["status"]["resources"].as_array().is_none_or(Vec::is_empty));
    let adopted = annotated(group("aks"), "sigs.k8s.io/cluster-api-provider-azure-adopt", "true");
    world.merge(CLUSTER, "aks", json!({ "spec": { "resources": [adopted] } }));
    let taken = |world: &World| world.get(CLUSTER, "aks").unwrap()["status"]["resources"][0]["ready"] == true;
    world.until("the group is taken", taken).await;
    assert_eq!(world.azure.document(&world.group("aks")).unwrap()["tags"]["theirs"], "yes");
}

/// Policies: what is skipped is not written, and what is detached stays.
#[tokio::test(start_paused = true)]
async fn policies_keep_resources() {
    for policy in ["skip", "detach-on-delete"] {
        let mut world = World::new();
        credential(&world);
        let document = json!({ "location": "eastus", "tags": { "theirs": "yes" } });
        world.azure.put(&world.group("aks"), document).unwrap();
        let mut kept = annotated(group("aks"), "serviceoperator.azure.com/reconcile-policy", policy);
        kept["spec"]["tags"] = json!({ "ours": "yes" });
        cluster(&world, "aks", &[kept], json!({ "resources": [managed_cluster("aks", json!({}))] }));
        world.start();
        let taken =
            |world: &World| world.get(CLUSTER, "aks").unwrap()["status"]["resources"][0]["ready"] == true;
        world.until("the group is used", taken).await;
        let tags = world.azure.document(&world.group("aks")).unwrap()["tags"].clone();
        assert_eq!((&tags["theirs"], tags["ours"] == "yes"), (&json!("yes"), policy == "detach-on-delete"));
        world.delete_cluster("aks");
        world.delete(CONTROL_PLANE, "aks");
        world.until("the control plane is gone", |world| world.get(CONTROL_PLANE, "aks").is_none()).await;
        world.delete(CLUSTER, "aks");
        world.until("the cluster is gone", |world| world.get(CLUSTER, "aks").is_none()).await;
        assert!(world.azure.document(&world.group("aks")).is_some(), "{policy}");
    }
}

/// A foreign resource in the group makes it stay, with words.
#[tokio::test(start_paused = true)]
async fn a_group_with_a_foreign_resource_stays() {
    let world = running().await;
    world.azure.put(&id_of(&world, "foreign"), json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": { "publicIPAllocationMethod": "Static" } })).unwrap();
    world.delete_cluster("aks");
    for name in ["aks-pool0", "aks-pool1"] {
        world.delete(super::POOL, name);
    }
    world.delete(CONTROL_PLANE, "aks");
    world.until("the control plane is gone", |world| world.get(CONTROL_PLANE, "aks").is_none()).await;
    world.delete(CLUSTER, "aks");
    world.until("the cluster is gone", |world| world.get(CLUSTER, "aks").is_none()).await;
    assert!(world.azure.document(&id_of(&world, "foreign")).is_some());
    assert!(world.azure.documents_of_type(CLUSTERS).is_empty());
    let words = said(&world, CLUSTER, "aks");
    assert!(
        words.iter().any(|it| it.starts_with("ResourcesLeft") && it.contains("publicIPAddresses/foreign")),
        "{words:#?}"
    );
}

/// CAPZ-202: terminal, and not retried.
#[tokio::test(start_paused = true)]
async fn resources_without_a_cluster_are_refused_and_not_retried() {
    let mut world = World::new();
    credential(&world);
    cluster(&world, "aks", &[group("aks")], json!({ "resources": [group("other")] }));
    world.start();
    let refused = |world: &World| {
        said(world, CONTROL_PLANE, "aks").iter().any(|it| it.contains("has no ManagedCluster"))
    };
    world.until("the refusal", refused).await;
    let begin = world.sequence();
    tokio::time::sleep(Duration::from_secs(500)).await;
    assert_eq!(world.calls_after(begin), Vec::<String>::new());
    assert!(world.azure.document(&world.group("other")).is_none());
}
