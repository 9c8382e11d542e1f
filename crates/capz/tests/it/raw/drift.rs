//! What others change in Azure of what raw resources declare.

use std::time::Duration;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::{POOL, agent_pool, cluster, credential, group, is_up, managed_cluster, nodes, pool};
use crate::world::World;

/// The interval between two looks at an object at rest, and the time to repair what is found.
const LOOKED_AT: Duration = Duration::from_secs(720);

async fn rich() -> World {
    let mut world = World::new();
    credential(&world);
    let mut team = group("aks");
    team["spec"]["tags"] = json!({ "team": "a" });
    let declared = managed_cluster(
        "aks",
        json!({
            "tags": { "team": "a" }, "sku": { "name": "Base", "tier": "Standard" },
            "apiServerAccessProfile": { "authorizedIPRanges": ["12.34.56.78/32"] },
            "autoUpgradeProfile": { "upgradeChannel": "patch" },
            "autoScalerProfile": { "expander": "least-waste" },
            "securityProfile": { "imageCleaner": { "enabled": true, "intervalHours": 48 } },
        }),
    );
    cluster(&world, "aks", &[team], json!({ "version": "v1.33.2", "resources": [declared] }));
    let labelled = json!({ "mode": "User", "nodeLabels": { "team": "a" } });
    pool(&world, "aks", "aks-pool1", agent_pool("aks", "aks-pool1", "pool1", labelled));
    pool(&world, "aks", "aks-pool0", agent_pool("aks", "aks-pool0", "pool0", json!({})));
    nodes(&world, "pool0", &["n0", "n1"]);
    nodes(&world, "pool1", &["n2", "n3"]);
    world.start();
    world.until("up", is_up).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    world
}

fn aks(world: &World) -> ResourceId {
    world.group("aks").resource("Microsoft.ContainerService", "managedClusters", "aks")
}

fn edit(world: &World, id: &ResourceId, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    world.azure.edit(id, |document| document.pointer_mut(parent).unwrap()[name] = value).unwrap();
}

fn writes_after(world: &World, sequence: u64) -> Vec<String> {
    let journal = world.azure.journal_after(sequence);
    let writes = journal.entries.iter().filter(|it| it.method == "PUT" && !it.path.contains("/MC_"));
    writes.map(|it| format!("{} {} {:?}", it.path, it.status, it.changes)).collect()
}

/// Everything declared that others change is as declared after the next look, and what they add stays.
#[tokio::test(start_paused = true)]
async fn what_others_change_is_repaired_and_what_they_add_stays() {
    let world = rich().await;
    let (group, cluster) = (world.group("aks"), aks(&world));
    let pool = cluster.child("agentPools", "pool1");
    let edits = [
        (&group, "/tags/team", json!("b")),
        (&cluster, "/tags/team", json!("b")),
        (&cluster, "/sku/tier", json!("Free")),
        (&cluster, "/properties/apiServerAccessProfile/authorizedIPRanges", json!(["0.0.0.0/0"])),
        (&cluster, "/properties/autoUpgradeProfile/upgradeChannel", json!("none")),
        (&cluster, "/properties/autoScalerProfile/expander", json!("random")),
        (&cluster, "/properties/securityProfile/imageCleaner/intervalHours", json!(24)),
        (&pool, "/properties/count", json!(1)),
        (&pool, "/properties/nodeLabels/team", json!("b")),
    ];
    let read = |id: &ResourceId, pointer: &str| {
        world.azure.document(id).unwrap().pointer(pointer).cloned().unwrap_or_default()
    };
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
    let writes = writes_after(&world, sequence);
    assert!(writes.len() <= 5, "{writes:#?}");

    for (id, pointer, value) in [
        (&cluster, "/tags/policy", json!("p")),
        (&cluster, "/properties/addonProfiles", json!({ "omsagent": { "enabled": true } })),
        (&cluster, "/properties/autoUpgradeProfile/nodeOSUpgradeChannel", json!("SecurityPatch")),
        (&pool, "/properties/tags", json!({ "policy": "p" })),
        (&group, "/tags/policy", json!("p")),
    ] {
        edit(&world, id, pointer, value);
    }
    let (before, sequence) = (world.azure.documents(), world.sequence());
    tokio::time::sleep(2 * LOOKED_AT).await;
    assert_eq!(writes_after(&world, sequence), Vec::<String>::new());
    assert_eq!(world.azure.documents(), before);
}

/// A pool that others delete comes again, and so does the managed cluster, with its pools.
#[tokio::test(start_paused = true)]
async fn what_others_delete_comes_again() {
    let world = rich().await;
    let pools = || ["pool0", "pool1"].map(|name| aks(&world).child("agentPools", name));
    for id in [pools()[1].clone(), aks(&world)] {
        world.azure.delete(&id).unwrap();
        tokio::time::sleep(2 * LOOKED_AT).await;
        world.until("up again", is_up).await;
        for pool in pools() {
            let state = world.azure.document(&pool).unwrap()["properties"]["provisioningState"].clone();
            assert_eq!(state, "Succeeded", "{pool} after the deletion of {id}");
        }
        assert_eq!(world.get(POOL, "aks-pool1").unwrap()["status"]["replicas"], 2);
    }
}
