//! Drift of managed clusters is repaired or reported; what Azure changes by itself is not fought.

use std::time::Duration;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::{CONTROL_PLANE, LONG, POOL, aks, in_azure, ready, running_with};
use crate::world::World;

/// The interval between two looks at an object at rest, and the time to repair what is found.
const LOOKED_AT: Duration = Duration::from_secs(720);

async fn rich() -> World {
    running_with(json!({
        "additionalTags": { "team": "a" },
        "sku": { "tier": "Standard" },
        "apiServerAccessProfile": { "authorizedIPRanges": ["12.34.56.78/32"] },
        "addonProfiles": [{ "name": "azurepolicy", "enabled": true }],
        "oidcIssuerProfile": { "enabled": true },
        "autoUpgradeProfile": { "upgradeChannel": "patch" },
        "autoscalerProfile": { "expander": "least-waste" },
        "loadBalancerProfile": { "managedOutboundIPs": 2, "idleTimeoutInMinutes": 10 },
        "securityProfile": { "imageCleaner": { "enabled": true, "intervalHours": 48 } },
        "extensions": [{ "name": "flux", "extensionType": "microsoft.flux", "configurationSettings": { "a": "b" } }],
        "virtualNetwork": { "name": "aks", "subnet": { "name": "aks", "serviceEndpoints": [
            { "service": "Microsoft.Storage", "locations": ["eastus"] }] } },
    }))
    .await
}

/// Sets a member of a resource, as others do, and returns what it was.
fn edit(world: &World, id: &ResourceId, pointer: &str, value: Value) -> Value {
    let mut before = Value::Null;
    world
        .azure
        .edit(id, |document| {
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            let parent = document.pointer_mut(parent).unwrap();
            before = parent[name].clone();
            parent[name] = value;
        })
        .unwrap();
    before
}

/// Everything declared that others change is as declared after the next look, and only that is written.
#[tokio::test(start_paused = true)]
async fn what_others_change_is_repaired() {
    let world = rich().await;
    let cluster = aks(&world, "aks");
    let pool = cluster.child("agentPools", "pool1");
    let flux = cluster.resource("Microsoft.KubernetesConfiguration", "extensions", "flux");
    let network = world.group("aks").resource("Microsoft.Network", "virtualNetworks", "aks");
    let edits = [
        (&cluster, "/tags/team", json!("b")),
        (&cluster, "/sku/tier", json!("Free")),
        (&cluster, "/properties/apiServerAccessProfile/authorizedIPRanges", json!(["0.0.0.0/0"])),
        (&cluster, "/properties/addonProfiles/azurepolicy/enabled", json!(false)),
        (&cluster, "/properties/autoUpgradeProfile/upgradeChannel", json!("none")),
        (&cluster, "/properties/autoScalerProfile/expander", json!("random")),
        (&cluster, "/properties/networkProfile/loadBalancerProfile/managedOutboundIPs/count", json!(1)),
        (&cluster, "/properties/networkProfile/loadBalancerProfile/idleTimeoutInMinutes", json!(30)),
        (&cluster, "/properties/securityProfile/imageCleaner/intervalHours", json!(24)),
        (&pool, "/properties/count", json!(1)),
        (&pool, "/properties/nodeLabels", json!({ "theirs": "1" })),
        (&pool, "/properties/nodeTaints", json!(["a=b:NoSchedule"])),
        (&flux, "/properties/configurationSettings/a", json!("c")),
        (&world.group("aks"), "/tags/team", json!("b")),
        (&network, "/tags/team", json!("b")),
    ];
    let read = |id: &ResourceId, pointer: &str| {
        let value = world.azure.document(id).unwrap().pointer(pointer).cloned().unwrap_or_default();
        // An empty list or map is as good as none.
        let is_empty = value.as_array().is_some_and(Vec::is_empty) || value == json!({});
        if is_empty { Value::Null } else { value }
    };
    tokio::time::sleep(LONG).await;
    let before: Vec<Value> = edits.iter().map(|(id, pointer, _)| read(id, pointer)).collect();
    for (id, pointer, value) in &edits {
        edit(&world, id, pointer, value.clone());
        assert_eq!(read(id, pointer), *value, "{id} {pointer}");
    }
    let sequence = world.sequence();
    tokio::time::sleep(LOOKED_AT).await;
    for ((id, pointer, _), before) in edits.iter().zip(&before) {
        assert_eq!(read(id, pointer), *before, "{id} {pointer}");
    }
    let journal = world.azure.journal_after(sequence);
    // Azure writes what it has made for the nodes itself.
    let writes = journal.entries.iter().filter(|it| it.method == "PUT" && !it.path.contains("/MC_"));
    let writes: Vec<String> =
        writes.map(|it| format!("{} {} {:?}", it.path, it.status, it.changes)).collect();
    assert!(writes.len() <= 6, "{writes:#?}");
}

/// What others delete comes again: an extension, and a pool.
#[tokio::test(start_paused = true)]
async fn what_others_delete_comes_again() {
    let world = rich().await;
    let cluster = aks(&world, "aks");
    let flux = cluster.resource("Microsoft.KubernetesConfiguration", "extensions", "flux");
    world.azure.delete(&flux).unwrap();
    world.azure.delete(&cluster.child("agentPools", "pool1")).unwrap();
    tokio::time::sleep(LOOKED_AT).await;
    assert!(world.azure.document(&flux).is_some());
    assert_eq!(in_azure(&world, "aks", "pool1")["count"], 2);
    assert_eq!(world.get(POOL, "pool1").unwrap()["status"]["replicas"], 2);
}

/// What Azure changes by itself, and what others add, stays, and nothing is written because of it.
#[tokio::test(start_paused = true)]
async fn what_azure_changes_by_itself_is_not_fought() {
    let world = rich().await;
    let cluster = aks(&world, "aks");
    tokio::time::sleep(Duration::from_secs(60)).await;
    edit(&world, &cluster, "/tags/policy", json!("p"));
    edit(&world, &cluster, "/properties/autoUpgradeProfile/nodeOSUpgradeChannel", json!("SecurityPatch"));
    edit(&world, &cluster, "/properties/addonProfiles/omsagent", json!({ "enabled": true }));
    edit(&world, &cluster.child("agentPools", "pool1"), "/properties/tags", json!({ "policy": "p" }));
    edit(
        &world,
        &cluster.child("agentPools", "pool1"),
        "/properties/upgradeSettings",
        json!({ "maxSurge": "33%" }),
    );
    edit(&world, &world.group("aks"), "/tags/policy", json!("p"));
    let before = world.azure.documents();
    let sequence = world.sequence();
    tokio::time::sleep(LONG).await;
    let journal = world.azure.journal_after(sequence);
    let writes = journal.entries.iter().filter(|entry| entry.method == "PUT");
    let writes: Vec<String> = writes.map(|it| format!("{} {:?}", it.path, it.changes)).collect();
    assert!(writes.is_empty(), "{writes:#?}");
    assert_eq!(world.azure.documents(), before);
}

/// A managed cluster that others delete is created again with its pools, and a failed one is repaired.
#[tokio::test(start_paused = true)]
async fn a_deleted_cluster_comes_again() {
    let world = rich().await;
    world.azure.delete(&aks(&world, "aks")).unwrap();
    tokio::time::sleep(LOOKED_AT).await;
    ready(&world, "aks").await;
    for name in ["pool0", "pool1"] {
        assert_eq!(in_azure(&world, "aks", name)["provisioningState"], "Succeeded", "{name}");
    }
    let endpoint = world.azure.document(&aks(&world, "aks")).unwrap()["properties"]["fqdn"].clone();
    world
        .until("its endpoint", |world| {
            world.get(CONTROL_PLANE, "aks").unwrap()["spec"]["controlPlaneEndpoint"]["host"] == endpoint
        })
        .await;
}
