//! Managed clusters that change: versions, extensions, fleets, headers.

use std::time::Duration;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::recorded::{record, writes};
use super::{
    CONTROL_PLANE, INFRASTRUCTURE, LONG, POOL, aks, ask, change, end, in_azure, ready, running, running_with,
    upgrade_pool,
};
use crate::world::{NAMESPACE, SUBSCRIPTION, World};

fn properties(world: &World) -> Value {
    world.azure.document(&aks(world, "aks")).unwrap()["properties"].clone()
}

fn version_of(world: &World, pool: &str) -> Value {
    in_azure(world, "aks", pool)["currentOrchestratorVersion"].clone()
}

/// The control plane is upgraded, and then its pools, each by its MachinePool.
#[tokio::test(start_paused = true)]
async fn a_cluster_is_upgraded_before_its_pools() {
    let world = running().await;
    change(&world, CONTROL_PLANE, "aks", json!({ "version": "v1.34.1" }));
    world
        .until("upgraded", |world| world.get(CONTROL_PLANE, "aks").unwrap()["status"]["version"] == "v1.34.1")
        .await;
    assert_eq!(properties(&world)["currentKubernetesVersion"], "1.34.1");
    for pool in ["pool0", "pool1"] {
        assert_eq!(version_of(&world, pool), "1.33.2", "a pool waits for its MachinePool");
        upgrade_pool(&world, pool, "v1.34.1");
        world.until(pool, |world| version_of(world, pool) == "1.34.1" && world.is_ready(POOL, pool)).await;
    }
    assert!(world.is_ready(CONTROL_PLANE, "aks"));
}

/// Control plane and pools that are upgraded by one `kubectl apply`: the pools follow soon after the control plane, and
/// are ready all the while.
#[tokio::test(start_paused = true)]
async fn pools_that_are_upgraded_too_early_follow_their_cluster() {
    let mut world = World::with(azure_simulator::typical_latency(), 1);
    ask(&world, json!({}));
    world.start();
    ready(&world, "aks").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    for pool in ["pool0", "pool1"] {
        upgrade_pool(&world, pool, "v1.34.1");
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    change(&world, CONTROL_PLANE, "aks", json!({ "version": "v1.34.1" }));
    let control = world
        .until("upgraded", |world| world.get(CONTROL_PLANE, "aks").unwrap()["status"]["version"] == "v1.34.1")
        .await;
    let pools = world
        .until("the pools", |world| {
            ["pool0", "pool1"]
                .iter()
                .all(|pool| version_of(world, pool) == "1.34.1" && world.is_ready(POOL, pool))
        })
        .await;
    // Each takes Azure 90 s, one after the other at worst.
    assert!(pools < Duration::from_secs(2 * 110), "{control:?} {pools:?}");
}

/// CAPZ-185: what Azure has upgraded by itself is not rolled back, and the pools follow.
#[tokio::test(start_paused = true)]
async fn automatic_upgrades_are_not_rolled_back() {
    let mut world = World::new();
    let sent = record(&mut world);
    ask(&world, json!({ "autoUpgradeProfile": { "upgradeChannel": "patch" } }));
    world.start();
    ready(&world, "aks").await;
    world
        .azure
        .edit(&aks(&world, "aks"), |cluster| cluster["properties"]["kubernetesVersion"] = json!("1.33.3"))
        .unwrap();
    world
        .until("reported", |world| {
            let status = world.get(CONTROL_PLANE, "aks").unwrap()["status"].clone();
            status["autoUpgradeVersion"] == "v1.33.3" && status["version"] == "v1.33.3"
        })
        .await;
    assert!(writes(&sent, "/managedClusters/aks").len() == 1, "nothing is rolled back");
    world
        .until("the pools", |world| ["pool0", "pool1"].iter().all(|it| version_of(world, it) == "1.33.3"))
        .await;
    change(&world, CONTROL_PLANE, "aks", json!({ "additionalTags": { "a": "b" } }));
    world.until("a write", |_| writes(&sent, "/managedClusters/aks").len() == 2).await;
    assert_eq!(writes(&sent, "/managedClusters/aks")[1].body["properties"]["kubernetesVersion"], "1.33.3");
    tokio::time::sleep(LONG).await;
    for pool in ["pool0", "pool1"] {
        assert_eq!(version_of(&world, pool), "1.33.3");
        let asked: Vec<Value> = writes(&sent, &format!("/agentPools/{pool}"))
            .iter()
            .map(|sent| sent.body["properties"]["orchestratorVersion"].clone())
            .collect();
        assert_eq!(asked, ["1.33.3"]);
    }
    assert_eq!(world.get(CONTROL_PLANE, "aks").unwrap()["spec"]["version"], "v1.33.2");
}

/// An extension and the membership in a fleet are added to a running cluster, and dropped again; those of others stay.
#[tokio::test(start_paused = true)]
async fn extensions_and_the_fleet_are_as_declared() {
    let world = running().await;
    let fleets = ResourceId::group(SUBSCRIPTION, "fleets");
    world.azure.put(&fleets, json!({ "location": "eastus" })).unwrap();
    let fleet = fleets.resource("Microsoft.ContainerService", "fleets", "all");
    world.azure.put(&fleet, json!({ "location": "eastus" })).unwrap();
    let cluster = aks(&world, "aks");
    let extension = |name: &str| cluster.resource("Microsoft.KubernetesConfiguration", "extensions", name);
    let theirs = json!({ "properties": { "extensionType": "microsoft.dapr" } });
    world.azure.put(&extension("theirs"), theirs).unwrap();
    let flux =
        json!({ "name": "flux", "extensionType": "microsoft.flux", "configurationSettings": { "a": "b" } });
    let member =
        json!({ "name": "blue", "group": "prod", "managerName": "all", "managerResourceGroup": "fleets" });
    change(&world, CONTROL_PLANE, "aks", json!({ "extensions": [flux], "fleetsMember": member }));
    let member = fleet.child("members", "blue");
    let exist = |world: &World| {
        (world.azure.document(&extension("flux")).is_some(), world.azure.document(&member).is_some())
    };
    world.until("both", |world| exist(world) == (true, true)).await;
    let document = world.azure.document(&member).unwrap();
    assert_eq!(document["properties"]["group"], "prod");
    let of = document["properties"]["clusterResourceId"].as_str().unwrap().to_lowercase();
    assert_eq!(of, cluster.as_str().to_lowercase());
    for condition in ["FleetReady", "AKSExtensionsReady"] {
        world
            .until(condition, |world| {
                world.condition(CONTROL_PLANE, "aks", condition) == Some(("True".to_owned(), String::new()))
            })
            .await;
    }
    // A setting that is declared later.
    let flux =
        json!({ "name": "flux", "extensionType": "microsoft.flux", "configurationSettings": { "a": "c" } });
    change(&world, CONTROL_PLANE, "aks", json!({ "extensions": [flux] }));
    world
        .until("the setting", |world| {
            let held = world.azure.document(&extension("flux")).unwrap();
            held["properties"]["configurationSettings"]["a"] == "c"
        })
        .await;
    change(&world, CONTROL_PLANE, "aks", json!({ "extensions": null, "fleetsMember": null }));
    world.until("neither", |world| exist(world) == (false, false)).await;
    assert!(world.azure.document(&extension("theirs")).is_some());
    assert!(world.azure.document(&fleet).is_some());
    end(&world, NAMESPACE, "aks").await;
    assert_eq!(super::ids(&world).len(), 2, "the fleet and its group: {:?}", super::ids(&world));
}

/// A member of a fleet is deleted with its cluster, and the fleet stays.
#[tokio::test(start_paused = true)]
async fn the_membership_ends_with_the_cluster() {
    let mut world = World::new();
    let fleets = ResourceId::group(SUBSCRIPTION, "fleets");
    world.azure.put(&fleets, json!({ "location": "eastus" })).unwrap();
    let fleet = fleets.resource("Microsoft.ContainerService", "fleets", "all");
    world.azure.put(&fleet, json!({ "location": "eastus" })).unwrap();
    let before = super::ids(&world);
    let member =
        json!({ "name": "blue", "group": "prod", "managerName": "all", "managerResourceGroup": "fleets" });
    ask(&world, json!({ "fleetsMember": member }));
    world.start();
    ready(&world, "aks").await;
    assert!(world.azure.document(&fleet.child("members", "blue")).is_some());
    end(&world, NAMESPACE, "aks").await;
    assert_eq!(super::ids(&world), before);
}

/// CAPZ-200: headers of annotations are part of the writes; an annotation that is added or changed later leads to one
/// write more.
#[tokio::test(start_paused = true)]
async fn custom_headers_are_sent_once() {
    const HEADER: &str = "infrastructure.cluster.x-k8s.io/custom-header-UseGPUDedicatedVHD";
    let mut world = World::new();
    let sent = record(&mut world);
    ask(&world, json!({}));
    let annotate = |world: &World, kind: &str, name: &str, value: Value| {
        world.merge(kind, name, json!({ "metadata": { "annotations": { (HEADER): value } } }));
    };
    annotate(&world, INFRASTRUCTURE, "aks", json!("cluster"));
    world.start();
    ready(&world, "aks").await;
    let headers = |end: &str| -> Vec<String> {
        let text = |sent: &super::recorded::Sent| {
            let value = sent.headers.get("UseGPUDedicatedVHD");
            value.map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
        };
        writes(&sent, end).iter().map(text).collect()
    };
    assert_eq!(headers("/managedClusters/aks"), ["cluster"]);
    let mut expected: Vec<&str> = Vec::new();
    for (value, header) in [(json!("true"), "true"), (json!("false"), "false"), (Value::Null, "")] {
        annotate(&world, POOL, "pool1", value);
        expected.push(header);
        world.until(header, |_| headers("/agentPools/pool1").len() == expected.len()).await;
        tokio::time::sleep(LONG).await;
        assert_eq!(headers("/agentPools/pool1"), expected);
    }
    assert_eq!(headers("/agentPools/pool0"), [""; 0]);
    // In Azure nothing of it is left.
    assert!(!in_azure(&world, "aks", "pool1")["tags"].to_string().contains("custom-headers"));
    annotate(&world, INFRASTRUCTURE, "aks", json!("other"));
    world.until("the cluster again", |_| headers("/managedClusters/aks").len() == 2).await;
    tokio::time::sleep(LONG).await;
    assert_eq!(headers("/managedClusters/aks"), ["cluster", "other"]);
}

/// Members that may change reach Azure, and are withdrawn.
#[tokio::test(start_paused = true)]
async fn what_may_change_reaches_azure() {
    let world = running_with(json!({
        "apiServerAccessProfile": { "authorizedIPRanges": ["12.34.56.78/32"] },
        "addonProfiles": [{ "name": "azurepolicy", "enabled": true }],
        "additionalTags": { "gone": "1", "kept": "1" },
    }))
    .await;
    let held = properties(&world);
    assert_eq!(held["apiServerAccessProfile"]["authorizedIPRanges"], json!(["12.34.56.78/32"]));
    assert_eq!(held["addonProfiles"]["azurepolicy"]["enabled"], true);
    change(
        &world,
        CONTROL_PLANE,
        "aks",
        json!({
            "sku": { "tier": "Standard" },
            "apiServerAccessProfile": { "authorizedIPRanges": [] },
            "addonProfiles": [{ "name": "azurepolicy", "enabled": false }],
            "additionalTags": { "gone": null, "new": "1" },
            "autoscalerProfile": { "expander": "least-waste" },
            "loadBalancerProfile": { "managedOutboundIPs": 2 },
        }),
    );
    let document = |world: &World| world.azure.document(&aks(world, "aks")).unwrap();
    let reached = |world: &World| {
        let held = document(world);
        let properties = &held["properties"];
        held["sku"]["tier"] == "Standard"
            && properties["apiServerAccessProfile"]["authorizedIPRanges"].as_array().is_none_or(Vec::is_empty)
            && properties["addonProfiles"]["azurepolicy"]["enabled"] == false
            && (held["tags"]["gone"].is_null() && held["tags"]["new"] == "1" && held["tags"]["kept"] == "1")
            && properties["autoScalerProfile"]["expander"] == "least-waste"
            && properties["networkProfile"]["loadBalancerProfile"]["managedOutboundIPs"]["count"] == 2
    };
    world.until("reached", reached).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let sequence = world.sequence();
    tokio::time::sleep(LONG).await;
    let writes = world.calls_after(sequence).into_iter().filter(|call| call.starts_with("PUT"));
    assert_eq!(writes.collect::<Vec<_>>(), [""; 0]);
}
