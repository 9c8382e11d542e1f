//! Clusters that change, private clusters, and clusters that use foreign resources.

use std::time::Duration;

use azure_simulator::{Actor, ActorAction, Fault, FaultAction};
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::world::{SUBSCRIPTION, World};

pub const CLUSTER: &str = "AzureCluster";
pub const OWNER: &str = "sigs.k8s.io_cluster-api-provider-azure_cluster_my-cluster";

pub fn is_ready(world: &World) -> bool {
    world.get(CLUSTER, "my-cluster").is_some_and(|it| it["status"]["ready"] == true)
}

pub fn network(world: &World, kind: &str, name: &str) -> ResourceId {
    world.group("my-cluster").resource("Microsoft.Network", kind, name)
}

pub async fn made(spec: Value) -> World {
    let mut world = World::new();
    world.cluster("my-cluster", spec);
    world.start();
    world.until("ready", is_ready).await;
    world
}

pub fn change(world: &World, spec: Value) {
    world.merge(CLUSTER, "my-cluster", json!({ "spec": spec }));
}

/// Begins the deletion of the Cluster and its AzureCluster.
pub fn begin_end(world: &World) {
    world.delete_cluster("my-cluster");
    world.delete(CLUSTER, "my-cluster");
}

/// Deletes the Cluster and its AzureCluster, and waits until they are gone.
pub async fn end(world: &World) {
    begin_end(world);
    world.until("gone", |world| world.get(CLUSTER, "my-cluster").is_none()).await;
}

pub fn ids(documents: &[Value]) -> Vec<String> {
    documents.iter().map(|it| it["id"].as_str().unwrap().to_lowercase()).collect()
}

/// CAPZ-052, CAPZ-063, CAPZ-064: a private cluster has its name in a zone of its own, which is deleted with it.
#[tokio::test(start_paused = true)]
async fn a_private_cluster_has_a_name_of_its_own() {
    let mut world = World::new();
    let remote = ResourceId::group(SUBSCRIPTION, "hub");
    world.azure.put(&remote, json!({ "location": "eastus" })).unwrap();
    let hub = remote.resource("Microsoft.Network", "virtualNetworks", "hub");
    let space = json!({ "location": "eastus", "properties": { "addressSpace": { "addressPrefixes": ["172.16.0.0/16"] } } });
    world.azure.put(&hub, space).unwrap();
    let before = world.azure.documents();
    let spec = json!({ "networkSpec": {
        "apiServerLB": { "type": "Internal" },
        "vnet": { "peerings": [{ "remoteVnetName": "hub", "resourceGroup": "hub" }] },
    } });
    world.cluster("my-cluster", spec);
    world.start();
    world.until("ready", is_ready).await;
    let object = world.get(CLUSTER, "my-cluster").unwrap();
    let endpoint = &object["spec"]["controlPlaneEndpoint"];
    assert_eq!(*endpoint, json!({ "host": "apiserver.my-cluster.capz.io", "port": 6443 }));
    let zone = network(&world, "privateDnsZones", "my-cluster.capz.io");
    let record = world.azure.document(&zone.child("A", "apiserver")).unwrap();
    assert_eq!(record["properties"]["aRecords"], json!([{ "ipv4Address": "10.0.0.100" }]));
    for (id, state) in [
        (network(&world, "virtualNetworks", "my-cluster-vnet"), "my-cluster-vnet-To-hub"),
        (hub.clone(), "hub-To-my-cluster-vnet"),
    ] {
        let peering = world.azure.document(&id.child("virtualNetworkPeerings", state)).unwrap();
        assert_eq!(peering["properties"]["peeringState"], "Connected");
    }
    end(&world).await;
    assert_eq!(ids(&world.azure.documents()), ids(&before));
    assert!(world.azure.document(&hub.child("virtualNetworkPeerings", "hub-To-my-cluster-vnet")).is_none());
}

/// CAPZ-056, CAPZ-067, CAPZ-073: items that are no longer declared are deleted, foreign ones stay.
#[tokio::test(start_paused = true)]
async fn what_is_declared_no_longer_goes_and_what_others_added_stays() {
    let world = made(json!({ "additionalTags": { "a": "b", "c": "d" } })).await;
    // Tags of the group.
    let group = world.group("my-cluster");
    world.azure.edit(&group, |document| document["tags"]["policy"] = json!("p")).unwrap();
    change(&world, json!({ "additionalTags": { "a": "c", "c": null } }));
    let tags = |world: &World| world.azure.document(&group).unwrap()["tags"].clone();
    world.until("tags", |world| tags(world)["a"] == "c" && tags(world)["c"].is_null()).await;
    assert_eq!((&tags(&world)["policy"], &tags(&world)[OWNER]), (&json!("p"), &json!("owned")));

    // A rule of the control plane, beside one from the portal.
    let id = network(&world, "networkSecurityGroups", "my-cluster-controlplane-nsg");
    let rule = |name: &str, priority: i32| {
        json!({ "name": name, "description": name, "protocol": "Tcp", "direction": "Inbound", "priority": priority,
            "source": "*", "sourcePorts": "*", "destination": "*", "destinationPorts": "8080" })
    };
    let subnets =
        |world: &World| world.get(CLUSTER, "my-cluster").unwrap()["spec"]["networkSpec"]["subnets"].clone();
    let with_rules = |world: &World, edit: &dyn Fn(&mut Vec<Value>)| {
        let mut subnets = subnets(world);
        let control_plane =
            subnets.as_array_mut().unwrap().iter_mut().find(|it| it["role"] == "control-plane").unwrap();
        edit(control_plane["securityGroup"]["securityRules"].as_array_mut().unwrap());
        change(world, json!({ "networkSpec": { "subnets": subnets } }));
    };
    let names = |world: &World| -> Vec<String> {
        let document = world.azure.document(&id).unwrap();
        let rules = document["properties"]["securityRules"].as_array().unwrap().clone();
        let mut names: Vec<String> = rules.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    with_rules(&world, &|rules| rules.push(rule("mine", 2300)));
    world.until("the rule", |world| names(world) == ["allow_apiserver", "allow_ssh", "mine"]).await;
    let portal = json!({ "properties": { "protocol": "Tcp", "direction": "Inbound", "priority": 3000, "access": "Allow",
        "sourceAddressPrefix": "*", "sourcePortRange": "*", "destinationAddressPrefix": "*", "destinationPortRange": "9090" } });
    world.azure.put(&id.child("securityRules", "portal"), portal).unwrap();
    with_rules(&world, &|rules| rules.retain(|it| it["name"] != "mine"));
    world.until("the rule goes", |world| names(world) == ["allow_apiserver", "allow_ssh", "portal"]).await;

    // A further subnet is added and removed.
    let more = network(&world, "virtualNetworks", "my-cluster-vnet").child("subnets", "more");
    let mut declared = subnets(&world);
    declared.as_array_mut().unwrap().push(json!({ "role": "node", "name": "more", "cidrBlocks": ["10.7.0.0/16"],
        "securityGroup": { "name": "my-cluster-node-nsg" }, "routeTable": { "name": "my-cluster-node-routetable" } }));
    change(&world, json!({ "networkSpec": { "subnets": declared } }));
    world.until("a subnet", |world| world.azure.document(&more).is_some()).await;
    world.until("its id", |world| subnets(world)[2]["id"].is_string()).await;
    let mut declared = subnets(&world);
    declared.as_array_mut().unwrap().retain(|it| it["name"] != "more");
    change(&world, json!({ "networkSpec": { "subnets": declared } }));
    world.until("the subnet goes", |world| world.azure.document(&more).is_none()).await;
    assert_eq!(world.condition(CLUSTER, "my-cluster", "Ready"), Some(("True".into(), String::new())));
}

/// CAPZ-061, CAPZ-062, CAPZ-071: foreign rules and rules of machines stay when ours is restored, and one more is added.
#[tokio::test(start_paused = true)]
async fn our_rule_is_brought_back_and_others_stay() {
    let world = made(json!({})).await;
    world.provisioned("my-cluster");
    world.machine("my-cluster", "cp-0", json!({ "cluster.x-k8s.io/control-plane": "" }), json!({}));
    world
        .until("a machine", |world| world.get("AzureMachine", "cp-0").unwrap()["status"]["ready"] == true)
        .await;
    let id = network(&world, "loadBalancers", "my-cluster-public-lb");
    world
        .azure
        .edit(&id, |document| {
            let rules = document["properties"]["loadBalancingRules"].as_array_mut().unwrap();
            rules[0]["properties"]["frontendPort"] = json!(7000);
            let mut foreign = rules[0].clone();
            foreign["name"] = json!("foreign");
            foreign["id"] = json!(id.child("loadBalancingRules", "foreign"));
            foreign["properties"]["frontendPort"] = json!(7001);
            foreign["properties"]["backendPort"] = json!(7001);
            rules.push(foreign);
        })
        .unwrap();
    change(
        &world,
        json!({ "networkSpec": { "additionalAPIServerLBPorts": [{ "name": "rke2", "port": 9345 }] } }),
    );
    let ports = |world: &World, list: &str| -> Vec<(String, i64)> {
        let document = world.azure.document(&id).unwrap();
        let all = document["properties"][list].as_array().unwrap().clone();
        let mut all: Vec<(String, i64)> = all
            .iter()
            .map(|it| {
                (it["name"].as_str().unwrap().to_owned(), it["properties"]["frontendPort"].as_i64().unwrap())
            })
            .collect();
        all.sort();
        all
    };
    let wanted = [("LBRuleHTTPS".to_owned(), 6443), ("foreign".to_owned(), 7001), ("rke2".to_owned(), 9345)];
    world.until("the rules", |world| ports(world, "loadBalancingRules") == wanted).await;
    assert_eq!(ports(&world, "inboundNatRules"), [("cp-0".to_owned(), 22)]);
}

/// CAPZ-057, CAPZ-060: a foreign network and a foreign address are used, and are unchanged after the cluster's
/// deletion.
#[tokio::test(start_paused = true)]
async fn what_is_somebody_elses_is_used_and_left() {
    let mut world = World::new();
    let group = ResourceId::group(SUBSCRIPTION, "shared");
    world.azure.put(&group, json!({ "location": "eastus" })).unwrap();
    let vnet = group.resource("Microsoft.Network", "virtualNetworks", "shared");
    let subnet =
        |name: &str, prefix: &str| json!({ "name": name, "properties": { "addressPrefix": prefix } });
    let properties = json!({ "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] },
        "subnets": [subnet("cp", "10.0.0.0/16"), subnet("nodes", "10.1.0.0/16")] });
    world.azure.put(&vnet, json!({ "location": "eastus", "properties": properties })).unwrap();
    world.azure.put(&world.group("my-cluster"), json!({ "location": "eastus" })).unwrap();
    let address = network(&world, "publicIPAddresses", "mine");
    let static_address = json!({ "location": "eastus", "sku": { "name": "Standard" }, "zones": ["1", "2", "3"],
        "properties": { "publicIPAllocationMethod": "Static", "dnsSettings": { "domainNameLabel": "mine" } } });
    world.azure.put(&address, static_address).unwrap();
    let before = world.azure.documents();
    let subnets = json!([
        { "role": "control-plane", "name": "cp" },
        { "role": "node", "name": "nodes", "id": vnet.child("subnets", "nodes").as_str() },
    ]);
    let name = "mine.eastus.cloudapp.azure.com";
    world.cluster(
        "my-cluster",
        json!({ "networkSpec": {
        "vnet": { "name": "shared", "resourceGroup": "shared" },
        "subnets": subnets,
        "apiServerLB": { "frontendIPs": [{ "name": "f", "publicIP": { "name": "mine", "dnsName": name } }] },
    } }),
    );
    world.start();
    world.until("ready", is_ready).await;
    let object = world.get(CLUSTER, "my-cluster").unwrap();
    assert_eq!(object["spec"]["controlPlaneEndpoint"]["host"], name);
    assert_eq!(object["spec"]["networkSpec"]["vnet"]["id"], vnet.as_str());
    let held = world.azure.document(&vnet).unwrap();
    assert_eq!(held["tags"], Value::Null);
    world.provisioned("my-cluster");
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world
        .until("a machine", |world| world.get("AzureMachine", "worker").unwrap()["status"]["ready"] == true)
        .await;
    world.delete("AzureMachine", "worker");
    world.until("the machine goes", |world| world.get("AzureMachine", "worker").is_none()).await;
    end(&world).await;
    assert_eq!(ids(&world.azure.documents()), ids(&before));
}

/// CAPZ-058: where the group is deleted with the cluster, machines need no calls of their own: the reads are the proof
/// that the whole group is the cluster's.
#[tokio::test(start_paused = true)]
async fn machines_go_with_their_group() {
    let mut world = World::new();
    let before = world.azure.documents();
    world.cluster("my-cluster", json!({}));
    world.start_with_network().await;
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world
        .until("a machine", |world| world.get("AzureMachine", "worker").unwrap()["status"]["ready"] == true)
        .await;
    world.delete_cluster("my-cluster");
    let sequence = world.sequence();
    world.delete("AzureMachine", "worker");
    let waited = world.until("the machine goes", |world| world.get("AzureMachine", "worker").is_none()).await;
    assert!(waited < Duration::from_secs(15), "{waited:?}");
    assert_eq!(world.machine_calls_after(sequence), Vec::<String>::new());
    let calls = world.calls_after(sequence);
    assert!(calls.iter().all(|call| call.starts_with("GET ")), "{calls:?}");
    let proofs = calls.iter().filter(|call| *call == "GET /resourceGroups/my-cluster/resources");
    assert_eq!(proofs.count(), 1, "one list shows that all of the group is the cluster's: {calls:?}");
    let vm = world.group("my-cluster").resource("Microsoft.Compute", "virtualMachines", "worker");
    assert!(world.azure.document(&vm).is_some());
    world.delete(CLUSTER, "my-cluster");
    world.until("gone", |world| world.get(CLUSTER, "my-cluster").is_none()).await;
    assert_eq!(ids(&world.azure.documents()), ids(&before));
}

/// A machine that has lost its identity is reported, and given up: nothing restores the identity.
#[tokio::test(start_paused = true)]
async fn a_machine_without_its_identity_is_given_up() {
    let world = made(json!({})).await;
    world.provisioned("my-cluster");
    let group = ResourceId::group(SUBSCRIPTION, "identities");
    world.azure.put(&group, json!({ "location": "eastus" })).unwrap();
    let id = group.resource("Microsoft.ManagedIdentity", "userAssignedIdentities", "nodes");
    world.azure.put(&id, json!({ "location": "eastus" })).unwrap();
    let identities = json!([{ "providerID": format!("azure://{id}") }]);
    let spec = json!({ "identity": "UserAssigned", "userAssignedIdentities": identities });
    world.machine("my-cluster", "worker", json!({}), spec);
    world
        .until("a machine", |world| world.get("AzureMachine", "worker").unwrap()["status"]["ready"] == true)
        .await;
    let vm = world.group("my-cluster").resource("Microsoft.Compute", "virtualMachines", "worker");
    world.azure.edit(&vm, |document| document["identity"] = json!({ "type": "None" })).unwrap();
    world
        .until("reported", |world| {
            world.get("AzureMachine", "worker").unwrap()["status"]["failureReason"] == "UnsupportedChange"
        })
        .await;
    assert_eq!(
        world.condition("AzureMachine", "worker", "VMIdentitiesReady"),
        Some(("False".into(), "UserAssignedIdentityMissing".into()))
    );
    world
        .until("an event", |world| {
            world.events("AzureMachine", "worker").contains(&"UserAssignedIdentityMissing".to_owned())
        })
        .await;
}

/// Lists that omit the group for a moment cause no new creation: what the cluster's cloud controller manager has
/// written into shared resources stays.
#[tokio::test(start_paused = true)]
async fn what_lists_lack_for_a_moment_is_not_replaced() {
    let world = made(json!({})).await;
    let balancer = network(&world, "loadBalancers", "my-cluster-public-lb");
    let group = network(&world, "networkSecurityGroups", "my-cluster-node-nsg");
    let table = network(&world, "routeTables", "my-cluster-node-routetable");
    let rule = json!({ "properties": { "protocol": "Tcp", "direction": "Inbound", "priority": 500, "access": "Allow",
        "sourceAddressPrefix": "*", "sourcePortRange": "*", "destinationAddressPrefix": "*", "destinationPortRange": "80" } });
    world.azure.put(&group.child("securityRules", "service"), rule).unwrap();
    let route = json!({ "properties": { "addressPrefix": "10.244.0.0/24", "nextHopType": "VirtualAppliance",
        "nextHopIpAddress": "10.1.0.4" } });
    world.azure.put(&table.child("routes", "node"), route).unwrap();
    world
        .azure
        .edit(&balancer, |document| {
            let probes = document["properties"]["probes"].as_array_mut().unwrap();
            let mut service = probes[0].clone();
            service["name"] = json!("service");
            service["id"] = json!(balancer.child("probes", "service"));
            probes.push(service);
        })
        .unwrap();
    let ids = [
        group.child("securityRules", "service"),
        table.child("routes", "node"),
        balancer.child("probes", "service"),
    ];
    let are_there = |world: &World| ids.iter().all(|id| world.azure.document(id).is_some());
    assert!(are_there(&world));
    let kinds = ["loadBalancers", "networkSecurityGroups", "routeTables"];
    for kind in kinds {
        let action =
            FaultAction::Fail { status: 404, code: "ResourceGroupNotFound".into(), message: String::new() };
        let fault = Fault::new(action).on_method("GET").on_type(&format!("Microsoft.Network/{kind}"));
        world.azure.inject(fault.on_resource("").times(1));
    }
    let sequence = world.sequence();
    change(&world, json!({ "additionalTags": { "a": "b" } }));
    let tags = |world: &World| world.azure.document(&world.group("my-cluster")).unwrap()["tags"]["a"].clone();
    world.until("tags", |world| tags(world) == "b").await;
    world
        .until("ready", |world| {
            world.condition(CLUSTER, "my-cluster", "Ready") == Some(("True".into(), String::new()))
        })
        .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let journal = world.azure.journal_after(sequence);
    let is_list = |path: &str| kinds.iter().any(|kind| path.ends_with(&format!("/{kind}")));
    let lost = journal.entries.iter().filter(|entry| entry.status == 404 && is_list(&entry.path));
    assert_eq!(lost.count(), 3);
    assert!(are_there(&world));
}

/// A policy changes documents in the very write. That is reported, with the difference, and written again ever more
/// rarely; it ends once the policy is removed.
#[tokio::test(start_paused = true)]
async fn a_difference_that_comes_back_is_told_and_seldom_written() {
    let world = made(json!({})).await;
    let action = ActorAction::Tag {
        tags: [("env".to_owned(), "Production".to_owned())].into(),
        replace: true,
        after_ms: None,
    };
    world.azure.set_actor(Actor::new("policy", action).on_type("Microsoft.Resources/resourceGroups"));
    let sequence = world.sequence();
    change(&world, json!({ "additionalTags": { "env": "prod" } }));
    world
        .until("reported", |world| {
            world.condition(CLUSTER, "my-cluster", "ResourceGroupReady")
                == Some(("False".into(), "Failed".into()))
        })
        .await;
    let object = world.get(CLUSTER, "my-cluster").unwrap();
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let told = conditions.iter().find(|it| it["type"] == "ResourceGroupReady").unwrap();
    let words = "does not keep what is written to it (tags.env: Production becomes prod)";
    assert!(told["message"].as_str().unwrap().contains(words), "{told}");
    let reason = "ClusterReconcilerNormalFailed".to_owned();
    world.until("an event", |world| world.events(CLUSTER, "my-cluster").contains(&reason)).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let journal = world.azure.journal_after(sequence);
    let group = |path: &str| path.ends_with("/resourceGroups/my-cluster");
    let writes = journal.entries.iter().filter(|it| it.method == "PUT" && group(&it.path)).count();
    let all = journal.entries.len();
    assert!((3..=8).contains(&writes) && all < 400, "{writes} writes of {all} requests within an hour");
    world.azure.remove_actor("policy");
    world
        .until("ready", |world| {
            world.condition(CLUSTER, "my-cluster", "Ready") == Some(("True".into(), String::new()))
        })
        .await;
    assert_eq!(world.azure.document(&world.group("my-cluster")).unwrap()["tags"]["env"], "prod");
}
