//! What a deleted cluster leaves: nothing of its own, and all foreign resources.

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::cluster_change::{CLUSTER, OWNER, begin_end, change, end, ids, is_ready, network};
use crate::world::{SUBSCRIPTION, World};

/// A foreign network, and its group.
fn hub(world: &World) -> ResourceId {
    let group = ResourceId::group(SUBSCRIPTION, "hub");
    world.azure.put(&group, json!({ "location": "eastus" })).unwrap();
    let hub = group.resource("Microsoft.Network", "virtualNetworks", "hub");
    let space = json!({ "addressSpace": { "addressPrefixes": ["172.16.0.0/16"] } });
    world.azure.put(&hub, json!({ "location": "eastus", "properties": space })).unwrap();
    hub
}

/// A private cluster whose zone is in a foreign group.
fn with_zone_in_another_group(world: &World) -> ResourceId {
    let group = ResourceId::group(SUBSCRIPTION, "dns");
    world.azure.put(&group, json!({ "location": "eastus" })).unwrap();
    group.resource("Microsoft.Network", "privateDnsZones", "corp.example.com")
}

fn private_spec() -> Value {
    json!({ "networkSpec": {
        "apiServerLB": { "type": "Internal" },
        "privateDNSZoneName": "corp.example.com",
        "privateDNSZoneResourceGroup": "dns",
        "vnet": { "peerings": [{ "remoteVnetName": "hub", "resourceGroup": "hub" }] },
    } })
}

/// CAPZ-058: the cluster's group is deleted as a whole, and the cluster's resources in foreign groups before it: its
/// zone with links and record, and the remote peering.
#[tokio::test(start_paused = true)]
async fn what_was_made_in_groups_of_others_goes_with_the_groups_of_the_cluster() {
    let mut world = World::new();
    let hub = hub(&world);
    let zone = with_zone_in_another_group(&world);
    let before = world.azure.documents();
    world.cluster("my-cluster", private_spec());
    world.start();
    world.until("ready", is_ready).await;
    assert_eq!(world.azure.document(&zone).unwrap()["tags"][OWNER], "owned");
    for link in ["my-cluster-vnet-link", "hub-link"] {
        assert!(world.azure.document(&zone.child("virtualNetworkLinks", link)).is_some(), "{link}");
    }
    assert!(world.azure.document(&zone.child("A", "apiserver")).is_some());
    let back = hub.child("virtualNetworkPeerings", "hub-To-my-cluster-vnet");
    assert!(world.azure.document(&back).is_some());
    end(&world).await;
    assert_eq!(ids(&world.azure.documents()), ids(&before));
}

/// CAPZ-064, Manage DNS Via CAPZ Tool: a zone without our tag stays; links are deleted, and our record if its metadata
/// has the cluster's ID. A zone that a user has tagged is deleted, too.
#[tokio::test(start_paused = true)]
async fn a_zone_that_exists_goes_with_the_cluster_once_it_is_tagged() {
    for (is_tagged, has_id) in [(false, true), (false, false), (true, true), (true, false)] {
        let mut world = World::new();
        hub(&world);
        let zone = with_zone_in_another_group(&world);
        let before = ids(&world.azure.documents());
        world.azure.put(&zone, json!({ "location": "global" })).unwrap();
        let foreign = ids(&world.azure.documents());
        world.cluster("my-cluster", private_spec());
        world.start();
        world.until("ready", is_ready).await;
        let held = world.azure.document(&zone).unwrap();
        assert_eq!(held["tags"][OWNER], Value::Null);
        let record = zone.child("A", "apiserver");
        let made = world.azure.document(&record).unwrap();
        assert!(made["properties"]["metadata"][capz_planner::tags::ID].is_string());
        if !has_id {
            // Created by the established provider, or by an earlier version.
            let forget = |document: &mut Value| document["properties"]["metadata"] = json!({});
            world.azure.edit(&record, forget).unwrap();
        }
        if is_tagged {
            world.azure.edit(&zone, |document| document["tags"] = json!({ OWNER: "owned" })).unwrap();
        }
        end(&world).await;
        let mut after = ids(&world.azure.documents());
        // Only a record without an ID stays in a user's zone.
        after.retain(|id| *id != record.as_str().to_lowercase());
        assert_eq!(after, if is_tagged { before } else { foreign });
        assert_eq!(world.azure.document(&record).is_some(), !is_tagged && !has_id);
    }
}

const CONTROL_PLANES: &str = "control-planes";

/// A subnet for nodes with all dependent resources that a subnet can have, all in the group of the cluster.
fn further_subnet(target: &ResourceId) -> Value {
    json!({
        "role": "node", "name": "more", "cidrBlocks": ["10.7.0.0/16"],
        "securityGroup": { "name": "more-nsg" },
        "routeTable": { "name": "more-routes" },
        "natGateway": { "name": "more-out", "ip": { "name": "more-out-ip" } },
        "privateEndpoints": [{ "name": "files", "privateLinkServiceConnections": [
            { "name": "files", "privateLinkServiceID": target.as_str(), "groupIDs": ["file"] }] }],
    })
}

fn network_spec(subnets: &[Value], peerings: Value) -> Value {
    let mut all = vec![
        json!({ "role": "control-plane", "name": CONTROL_PLANES, "cidrBlocks": ["10.0.0.0/16"] }),
        json!({ "role": "node", "name": "nodes", "cidrBlocks": ["10.1.0.0/16"] }),
    ];
    all.extend_from_slice(subnets);
    json!({ "networkSpec": {
        "apiServerLB": { "type": "Internal" }, "subnets": all, "vnet": { "peerings": peerings },
    } })
}

fn to_hub() -> Value {
    json!([{ "remoteVnetName": "hub", "resourceGroup": "hub" }])
}

/// Removes a subnet and the peerings from the declaration, in a form that admission accepts.
fn shrink(world: &World) {
    let old = world.get(CLUSTER, "my-cluster").unwrap();
    let mut new = old.clone();
    let declared = &mut new["spec"]["networkSpec"];
    declared["subnets"].as_array_mut().unwrap().retain(|subnet| subnet["name"] != "more");
    declared["vnet"]["peerings"] = json!([]);
    let declared = declared.clone();
    capz_api::admission::validate(CLUSTER, &new, Some(&old), &capz_api::Context::default()).unwrap();
    let spec = json!({ "networkSpec": { "subnets": declared["subnets"], "vnet": { "peerings": declared["vnet"]["peerings"] } } });
    change(world, spec);
}

/// A world in which the cluster's group is foreign, with a route table that the further subnet uses and a storage
/// account.
async fn grown(world: &mut World) -> Vec<String> {
    hub(world);
    world.azure.put(&world.group("my-cluster"), json!({ "location": "eastus" })).unwrap();
    let table = network(world, "routeTables", "more-routes");
    world.azure.put(&table, json!({ "location": "eastus", "tags": { "whose": "theirs" } })).unwrap();
    let account = world.group("hub").resource("Microsoft.Storage", "storageAccounts", "files");
    let document = json!({ "location": "eastus", "kind": "StorageV2", "sku": { "name": "Standard_LRS" } });
    world.azure.put(&account, document).unwrap();
    let before = ids(&world.azure.documents());
    world.cluster("my-cluster", network_spec(&[further_subnet(&account)], to_hub()));
    world.start();
    world.until("ready", is_ready).await;
    before
}

fn there(world: &World, ids: &[ResourceId]) -> Vec<bool> {
    ids.iter().map(|id| world.azure.document(id).is_some()).collect()
}

/// CAPZ-059, CAPZ-073: resources that the spec no longer names are deleted: at once if no others can use them, with the
/// cluster otherwise. Foreign resources stay, whether the cluster has used them or not.
#[tokio::test(start_paused = true)]
async fn what_is_declared_no_longer_is_gone_with_the_cluster_at_the_latest() {
    let mut world = World::new();
    let before = grown(&mut world).await;
    let vnet = network(&world, "virtualNetworks", "my-cluster-vnet");
    let hub = world.group("hub").resource("Microsoft.Network", "virtualNetworks", "hub");
    let zone = network(&world, "privateDnsZones", "my-cluster.capz.io");
    let at_once = [
        vnet.child("subnets", "more"),
        network(&world, "natGateways", "more-out"),
        network(&world, "privateEndpoints", "files"),
        vnet.child("virtualNetworkPeerings", "my-cluster-vnet-To-hub"),
        hub.child("virtualNetworkPeerings", "hub-To-my-cluster-vnet"),
        zone.child("virtualNetworkLinks", "hub-link"),
    ];
    let later = [
        network(&world, "networkSecurityGroups", "more-nsg"),
        network(&world, "publicIPAddresses", "more-out-ip"),
    ];
    assert_eq!(there(&world, &at_once), [true; 6]);
    assert_eq!(there(&world, &later), [true; 2]);
    shrink(&world);
    world.until("what goes at once", |world| there(world, &at_once) == [false; 6]).await;
    world
        .until("all is as declared", |world| {
            world.condition(CLUSTER, "my-cluster", "Ready") == Some(("True".into(), String::new()))
        })
        .await;
    for condition in ["VnetPeeringReady", "PrivateEndpointsReady", "NATGatewaysReady"] {
        assert_eq!(
            world.condition(CLUSTER, "my-cluster", condition),
            Some(("True".into(), String::new())),
            "{condition}"
        );
    }
    // Another process knows the rest from the object's annotations.
    world.kill().await;
    world.start();
    tokio::time::sleep(std::time::Duration::from_secs(1200)).await;
    assert_eq!(there(&world, &later), [true; 2]);
    end(&world).await;
    assert_eq!(ids(&world.azure.documents()), before);
}

/// The cluster is deleted before a manager has reconciled the removals from its spec.
async fn shrunk_at_the_end(mut world: World, before: &[String]) {
    world.kill().await;
    shrink(&world);
    begin_end(&world);
    world.start();
    world.until("gone", |world| world.get(CLUSTER, "my-cluster").is_none()).await;
    assert_eq!(ids(&world.azure.documents()), before);
}

/// The same if the cluster is deleted before a manager has reconciled the removals from its spec.
#[tokio::test(start_paused = true)]
async fn what_was_taken_out_just_before_the_end_goes_too() {
    let mut world = World::new();
    let before = grown(&mut world).await;
    shrunk_at_the_end(world, &before).await;
}

/// A peering that is no longer declared has a remote one in a foreign network, which stays when the cluster's group is
/// deleted.
#[tokio::test(start_paused = true)]
async fn the_other_half_of_a_peering_goes_though_the_group_is_ours() {
    let mut world = World::new();
    hub(&world);
    let before = ids(&world.azure.documents());
    world.cluster("my-cluster", network_spec(&[], to_hub()));
    world.start();
    world.until("ready", is_ready).await;
    shrunk_at_the_end(world, &before).await;
}

/// A foreign interface in a subnet of the cluster: Azure's message is reported, and the deletion completes once the
/// interface is gone.
#[tokio::test(start_paused = true)]
async fn a_deletion_that_azure_refuses_is_told_of() {
    let mut world = World::new();
    world.azure.put(&world.group("my-cluster"), json!({ "location": "eastus" })).unwrap();
    let before = ids(&world.azure.documents());
    world.cluster("my-cluster", network_spec(&[], json!([])));
    world.start();
    world.until("ready", is_ready).await;
    let subnet = network(&world, "virtualNetworks", "my-cluster-vnet").child("subnets", "nodes");
    let interface = network(&world, "networkInterfaces", "theirs");
    let configuration = json!({ "name": "ip", "properties": { "subnet": { "id": subnet.as_str() } } });
    let document = json!({ "location": "eastus", "properties": { "ipConfigurations": [configuration] } });
    world.azure.put(&interface, document).unwrap();
    begin_end(&world);
    let event = "ClusterReconcilerDeleteFailed".to_owned();
    world.until("an event", |world| world.events(CLUSTER, "my-cluster").contains(&event)).await;
    let told = Some(("False".to_owned(), "DeletionFailed".to_owned()));
    world
        .until("a condition", |world| {
            world.condition(CLUSTER, "my-cluster", "NetworkInfrastructureReady") == told
        })
        .await;
    let object = world.get(CLUSTER, "my-cluster").unwrap();
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let told = conditions.iter().find(|it| it["type"] == "NetworkInfrastructureReady").unwrap();
    assert_eq!(
        (&told["status"], &told["reason"], &told["severity"]),
        (&json!("False"), &json!("DeletionFailed"), &json!("Warning"))
    );
    assert!(told["message"].as_str().unwrap().contains("theirs"), "{told}");
    assert!(world.azure.document(&interface).is_some());
    world.azure.delete(&interface).unwrap();
    world.until("gone", |world| world.get(CLUSTER, "my-cluster").is_none()).await;
    assert_eq!(ids(&world.azure.documents()), before);
}

/// C9: an AzureMachine that only bears the cluster's label, without an owner and without a finalizer, does not delay
/// the deletion of the cluster: nothing was created for it.
#[tokio::test(start_paused = true)]
async fn what_only_bears_the_label_does_not_hold_up_the_end() {
    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    world.start_with_network().await;
    world.create(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureMachine",
        "metadata": { "name": "stray", "namespace": crate::world::NAMESPACE,
            "labels": { "cluster.x-k8s.io/cluster-name": "my-cluster" } },
        "spec": { "vmSize": "Standard_D2s_v3", "osDisk": { "osType": "Linux", "diskSizeGB": 30 } },
    }));
    end(&world).await;
    assert!(world.get("AzureMachine", "stray").is_some());
}
