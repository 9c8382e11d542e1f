//! What a cluster leaves when it goes: nothing of its own, and everything of others.

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::cluster_change::{OWNER, end, ids, is_ready};
use crate::world::{SUBSCRIPTION, World};

/// A network of somebody else's, and the group in which it is.
fn hub(world: &World) -> ResourceId {
    let group = ResourceId::group(SUBSCRIPTION, "hub");
    world.azure.put(&group, json!({ "location": "eastus" })).unwrap();
    let hub = group.resource("Microsoft.Network", "virtualNetworks", "hub");
    let space = json!({ "addressSpace": { "addressPrefixes": ["172.16.0.0/16"] } });
    world.azure.put(&hub, json!({ "location": "eastus", "properties": space })).unwrap();
    hub
}

/// A private cluster whose zone is in somebody else's group.
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

/// CAPZ-058: the cluster's group goes as a whole, and what the cluster has made in groups of others goes before: its zone
/// with links and record, and the other half of a peering.
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

/// CAPZ-064, Manage DNS Via CAPZ Tool: a zone without our tag stays, and so does our record in it; links go. A zone that somebody
/// has tagged goes, too.
#[tokio::test(start_paused = true)]
async fn a_zone_that_exists_goes_with_the_cluster_once_it_is_tagged() {
    for is_tagged in [false, true] {
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
        assert!(world.azure.document(&record).is_some());
        if is_tagged {
            world.azure.edit(&zone, |document| document["tags"] = json!({ OWNER: "owned" })).unwrap();
        }
        end(&world).await;
        let mut after = ids(&world.azure.documents());
        // The record stays in a zone of somebody else's, and it alone.
        after.retain(|id| *id != record.as_str().to_lowercase());
        assert_eq!(after, if is_tagged { before } else { foreign });
        assert_eq!(world.azure.document(&record).is_some(), !is_tagged);
    }
}
