//! Managed clusters next to other clusters in one Azure. None harms or delays another.

use std::time::Duration;

use azure_simulator::{Fault, FaultAction, LatencyProfile};
use azure_types::ResourceId;
use serde_json::{Value, json};

use super::{
    CLUSTERS, CONTROL_PLANE, LONG, aks, ask, begin_end, cluster, cluster_in, end, ids, is_down, is_up,
    message, pool, pool_in, ready, running, says,
};
use crate::world::{NAMESPACE, SUBSCRIPTION, World};

const OTHER: &str = "team-b";

/// Of two managed clusters with one name the second is refused before it writes anything; its deletion deletes nothing;
/// and another one begins once the first is gone.
#[tokio::test(start_paused = true)]
async fn a_second_managed_cluster_of_one_name_is_refused_and_harms_nothing() {
    let mut world = running().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let first = world.azure.documents();
    cluster_in(&world, OTHER, "aks", json!({}));
    pool_in(&world, OTHER, "aks", "system", json!({ "mode": "System" }));
    let refused = |world: &World| says(world, OTHER, "aks").contains("default/aks comes first");
    world.until("the second is refused", refused).await;
    tokio::time::sleep(LONG).await;
    world.kill().await;
    world.start();
    tokio::time::sleep(LONG).await;
    assert_eq!(world.azure.documents(), first);
    assert!(is_up(&world, NAMESPACE, "aks"));
    end(&world, OTHER, "aks").await;
    tokio::time::sleep(LONG).await;
    assert_eq!(world.azure.documents(), first);

    cluster_in(&world, "team-c", "aks", json!({}));
    pool_in(&world, "team-c", "aks", "system", json!({ "mode": "System" }));
    world.until("the third waits", |world| says(world, "team-c", "aks").contains("comes first")).await;
    end(&world, NAMESPACE, "aks").await;
    let took = world.until("it begins", |world| is_up(world, "team-c", "aks")).await;
    assert!(took < Duration::from_secs(120), "{took:?}");
}

/// The same between a managed and a self-managed cluster, whichever comes first.
#[tokio::test(start_paused = true)]
async fn a_cluster_of_the_other_kind_with_one_name_is_refused() {
    let mut world = World::new();
    world.cluster("aks", json!({}));
    world.start();
    world.until("self-managed", |world| world.is_ready("AzureCluster", "aks")).await;
    let before = ids(&world);
    cluster_in(&world, OTHER, "aks", json!({}));
    pool_in(&world, OTHER, "aks", "system", json!({ "mode": "System" }));
    world
        .until("refused", |world| says(world, OTHER, "aks").contains("AzureCluster default/aks comes first"))
        .await;
    tokio::time::sleep(LONG).await;
    assert_eq!(ids(&world), before);
    end(&world, OTHER, "aks").await;
    assert_eq!(ids(&world), before);

    let world = running().await;
    let before = ids(&world);
    crate::neighbours::cluster_in(&world, OTHER, "aks", json!({}));
    let says = |world: &World| message(world, "AzureCluster", OTHER, "aks", "NetworkInfrastructureReady");
    world
        .until("refused", |world| says(world).contains("AzureManagedControlPlane default/aks comes first"))
        .await;
    tokio::time::sleep(LONG).await;
    assert_eq!(ids(&world), before);
    crate::neighbours::delete_in(&world, OTHER, "aks");
    world.until("gone", |world| world.kubernetes.get("AzureCluster", OTHER, "aks").is_none()).await;
    assert_eq!(ids(&world), before);
}

/// What another management cluster has created is never taken, written, or deleted.
#[tokio::test(start_paused = true)]
async fn what_another_management_cluster_owns_is_never_taken() {
    let one = running().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let before = one.azure.documents();
    let mut other = World::with(LatencyProfile::instant(), 2);
    other.azure = one.azure.clone();
    ask(&other, json!({}));
    other.start();
    other
        .until("refused", |world| says(world, NAMESPACE, "aks").contains("belongs to another cluster"))
        .await;
    tokio::time::sleep(LONG).await;
    assert_eq!(one.azure.documents(), before);
    end(&other, NAMESPACE, "aks").await;
    tokio::time::sleep(LONG).await;
    assert_eq!(one.azure.documents(), before);
}

/// A managed cluster that others have made without Cluster API is taken over by objects with its name, as users of the
/// established provider expect: it is neither created again nor are its nodes; and it is deleted with them. An event
/// names what Azure cannot change. Its group and its network stay.
#[tokio::test(start_paused = true)]
async fn a_managed_cluster_made_by_hand_is_taken_over() {
    let mut world = World::new();
    world.azure.put(&world.group("aks"), json!({ "location": "eastus" })).unwrap();
    let network = world.group("aks").resource("Microsoft.Network", "virtualNetworks", "aks");
    let subnets = json!([{ "name": "aks", "properties": { "addressPrefix": "10.240.0.0/16" } }]);
    let space = json!({ "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] }, "subnets": subnets });
    world.azure.put(&network, json!({ "location": "eastus", "properties": space })).unwrap();
    let around = ids(&world);
    let subnet = network.child("subnets", "aks");
    let pool = |name: &str, mode: &str| {
        json!({ "name": name, "mode": mode, "count": 2, "vmSize": "Standard_D2s_v3", "vnetSubnetID": subnet.as_str(),
            "type": "VirtualMachineScaleSets" })
    };
    let network =
        json!({ "networkPlugin": "azure", "serviceCidr": "192.168.0.0/16", "dnsServiceIP": "192.168.0.10" });
    let theirs = json!({ "location": "eastus", "identity": { "type": "SystemAssigned" }, "tags": { "theirs": "1" },
        "properties": { "dnsPrefix": "theirs", "kubernetesVersion": "1.33.2", "networkProfile": network,
            "agentPoolProfiles": [pool("pool0", "System"), pool("pool1", "User")] } });
    world.azure.put(&aks(&world, "aks"), theirs).unwrap();
    let before = ids(&world);
    ask(&world, json!({}));
    world.start();
    ready(&world, "aks").await;
    assert_eq!(ids(&world), before);
    let tags = world.azure.document(&aks(&world, "aks")).unwrap()["tags"].clone();
    assert_eq!(tags["theirs"], "1");
    let events = world.kubernetes.list("Event");
    let event = events.iter().find(|event| event["reason"] == "ChangedByOthers").unwrap().value().to_string();
    assert!(event.contains("dnsPrefix"), "{event}");
    end(&world, NAMESPACE, "aks").await;
    assert_eq!(ids(&world), around);
}

/// Two managed clusters in one resource group, one of which uses the network of the other: the deletion of each leaves
/// the other's, and the group goes with the last one.
#[tokio::test(start_paused = true)]
async fn clusters_in_one_group_go_one_by_one() {
    let mut world = World::new();
    for name in ["one", "two"] {
        let vnet = json!({ "name": format!("{name}-vnet") });
        cluster(&world, name, json!({ "resourceGroupName": "team", "virtualNetwork": vnet }));
        pool(&world, name, &format!("{name}0"), json!({ "mode": "System" }));
        if name == "one" {
            world.start();
            ready(&world, "one").await;
        }
    }
    ready(&world, "two").await;
    let group = ResourceId::group(SUBSCRIPTION, "team");
    let of = |world: &World, name: &str| -> Vec<Value> {
        let documents = world.azure.documents();
        let is_its = |it: &Value| {
            let id = it["id"].as_str().unwrap().to_lowercase();
            id.contains(&format!("/{name}")) || id.contains(&format!("mc_team_{name}_"))
        };
        documents.into_iter().filter(is_its).collect()
    };
    let second = of(&world, "two");
    assert!(second.len() > 5, "{second:#?}");
    end(&world, NAMESPACE, "one").await;
    assert_eq!(of(&world, "one"), Vec::<Value>::new());
    assert_eq!(of(&world, "two"), second);
    assert!(world.events(CONTROL_PLANE, "one").contains(&"ResourcesLeft".to_owned()));
    tokio::time::sleep(LONG).await;
    assert!(is_up(&world, NAMESPACE, "two"));
    end(&world, NAMESPACE, "two").await;
    let left = ids(&world);
    assert!(left.is_empty() || left == [group.as_str().to_lowercase()], "{left:?}");
}

/// A foreign resource in the group makes the group stay, and an event names it.
#[tokio::test(start_paused = true)]
async fn a_group_with_a_foreign_resource_stays() {
    let world = running().await;
    let volume = world.group("aks").resource("Microsoft.Compute", "disks", "pvc-1");
    let disk = json!({ "location": "eastus", "sku": { "name": "Premium_LRS" },
        "properties": { "creationData": { "createOption": "Empty" }, "diskSizeGB": 4 } });
    world.azure.put(&volume, disk).unwrap();
    end(&world, NAMESPACE, "aks").await;
    let mut left = vec![world.group("aks").as_str().to_lowercase(), volume.as_str().to_lowercase()];
    left.sort();
    assert_eq!(ids(&world), left);
    let events = world.kubernetes.list("Event");
    let event = events.iter().find(|event| event["reason"] == "ResourcesLeft").unwrap().value().to_string();
    assert!(event.contains("pvc-1"), "{event}");
}

/// A cluster whose identity is missing, one whose size Azure refuses, and one whose subscription is throttled do not
/// delay another one.
#[tokio::test(start_paused = true)]
async fn bad_clusters_do_not_delay_a_good_one() {
    let mut world = World::with(azure_simulator::typical_latency(), 1);
    let throttled = "00000000-0000-0000-0000-000000000999";
    world.azure.add_subscription(throttled);
    let refused = FaultAction::Fail {
        status: 400,
        code: "BadRequest".into(),
        message: "The VM size of Standard_Nothing is not allowed in your subscription.".into(),
    };
    world.azure.inject(Fault::new(FaultAction::Throttle { retry_after: Some(30) }).on_resource("slow"));
    world.azure.inject(Fault::new(refused).on_method("PUT").on_resource("size").on_type(CLUSTERS));
    let missing = json!({ "kind": "AzureClusterIdentity", "name": "missing", "namespace": NAMESPACE });
    cluster(&world, "nobody", json!({ "identityRef": missing }));
    cluster(&world, "size", json!({}));
    cluster(&world, "slow", json!({ "subscriptionID": throttled }));
    for (cluster, size) in
        [("nobody", "Standard_D2s_v3"), ("size", "Standard_Nothing"), ("slow", "Standard_D2s_v3")]
    {
        pool(&world, cluster, &format!("{cluster}0"), json!({ "mode": "System", "sku": size }));
    }
    world.start();
    tokio::time::sleep(Duration::from_secs(600)).await;
    ask(&world, json!({}));
    let took = world.until("the good one", |world| is_up(world, NAMESPACE, "aks")).await;
    assert!(took < Duration::from_secs(330), "{took:?}");
    for (name, words) in [("nobody", "missing"), ("size", "Standard_Nothing")] {
        let words_of = says(&world, NAMESPACE, name);
        assert!(words_of.contains(words), "{name}: {words_of}");
        assert!(!world.is_ready(CONTROL_PLANE, name));
    }
    assert_eq!(world.azure.documents_of_type(CLUSTERS).len(), 1);
    // Each of them can be deleted.
    for name in ["size", "slow"] {
        begin_end(&world, NAMESPACE, name);
    }
    world.azure.clear_faults();
    for name in ["size", "slow"] {
        world.until(name, |world| is_down(world, NAMESPACE, name)).await;
    }
    assert!(is_up(&world, NAMESPACE, "aks"));
}
