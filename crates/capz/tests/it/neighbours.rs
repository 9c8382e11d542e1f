//! Clusters next to each other in one Azure: with one name, in one group, with one zone. None harms another.

use std::time::Duration;

use azure_simulator::LatencyProfile;
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::cluster_change::{CLUSTER, begin_end, end, ids, is_ready};
use crate::pool_world;
use crate::world::{NAMESPACE, SUBSCRIPTION, World};

const ID: &str = "sigs.k8s.io_cluster-api-provider-azure_cluster-id";
const CLUSTER_ID: &str = "sigs.k8s.io/cluster-api-provider-azure-cluster-id";
const OTHER: &str = "team-b";
/// Longer than any interval between two attempts.
const LONG: Duration = Duration::from_secs(1300);

fn in_namespace(world: &World, kind: &str, namespace: &str, name: &str) -> Option<Value> {
    world.kubernetes.get(kind, namespace, name).map(|object| object.value().clone())
}

/// Creates a namespace, if it does not exist yet.
fn namespace(world: &World, name: &str) {
    if world.kubernetes.get("Namespace", "", name).is_none() {
        world.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }));
    }
}

/// A Cluster with its AzureCluster in another namespace, with the identity of the first one.
pub fn cluster_in(world: &World, namespace: &str, name: &str, spec: Value) {
    self::namespace(world, namespace);
    let cluster = world.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": CLUSTER, "name": name } },
    }));
    let mut spec = spec;
    spec["location"] = json!("eastus");
    spec["identityRef"] =
        json!({ "kind": "AzureClusterIdentity", "name": "identity", "namespace": NAMESPACE });
    world.admit(
        CLUSTER,
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": CLUSTER,
            "metadata": {
                "name": name, "namespace": namespace,
                "labels": { "cluster.x-k8s.io/cluster-name": name },
                "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": name,
                    "uid": cluster["metadata"]["uid"] }],
            },
            "spec": spec,
        }),
    );
}

/// A Machine with its AzureMachine in another namespace.
fn machine_in(world: &World, namespace: &str, cluster: &str, name: &str, spec: Value) {
    world.create(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": format!("{name}-data"), "namespace": namespace },
        "data": { "value": "I2Nsb3VkLWNvbmZpZw==" },
    }));
    let labels = json!({ "cluster.x-k8s.io/cluster-name": cluster });
    let machine = world.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": { "name": name, "namespace": namespace, "labels": labels },
        "spec": { "clusterName": cluster, "version": "v1.33.0", "bootstrap": { "dataSecretName": format!("{name}-data") },
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureMachine", "name": name } },
    }));
    let mut all = json!({ "vmSize": "Standard_D2s_v3", "osDisk": { "osType": "Linux", "diskSizeGB": 30 },
        "sshPublicKey": crate::world::SSH_KEY });
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    world.admit(
        "AzureMachine",
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureMachine",
            "metadata": { "name": name, "namespace": namespace, "labels": labels,
                "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": name,
                    "uid": machine["metadata"]["uid"] }] },
            "spec": all,
        }),
    );
}

fn network_ready(world: &World, namespace: &str, name: &str) -> String {
    let object = in_namespace(world, CLUSTER, namespace, name).unwrap();
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|it| it["type"] == "NetworkInfrastructureReady");
    found.map(|it| format!("{} {}", it["status"].as_str().unwrap(), it["message"])).unwrap_or_default()
}

fn provisioned_in(world: &World, namespace: &str, name: &str) {
    let status = json!({ "status": { "initialization": { "infrastructureProvisioned": true } } });
    world.kubernetes.merge_status("Cluster", namespace, name, &status).unwrap();
}

pub fn delete_in(world: &World, namespace: &str, name: &str) {
    let held = json!({ "metadata": { "finalizers": ["cluster.cluster.x-k8s.io"] } });
    world.kubernetes.merge("Cluster", namespace, name, &held).unwrap();
    world.kubernetes.delete("Cluster", namespace, name).unwrap();
    world.kubernetes.delete(CLUSTER, namespace, name).unwrap();
}

async fn first_with_machine(world: &mut World) {
    world.cluster("my-cluster", json!({}));
    world.start_with_network().await;
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world.until("the machine", |world| world.is_ready("AzureMachine", "worker")).await;
}

/// S1: of two clusters with one name in one management cluster the second is refused before it writes anything,
/// whatever is restarted or deleted; its machines do nothing, its deletion deletes nothing; and it begins once the
/// first one is gone.
#[tokio::test(start_paused = true)]
async fn a_second_cluster_of_one_name_is_refused_and_harms_nothing() {
    let mut world = World::new();
    let nothing = world.azure.documents();
    first_with_machine(&mut world).await;
    let first = world.azure.documents();
    let id = world.get(CLUSTER, "my-cluster").unwrap()["metadata"]["annotations"][CLUSTER_ID].clone();
    assert_eq!(id, world.get(CLUSTER, "my-cluster").unwrap()["metadata"]["uid"]);
    assert_eq!(world.azure.document(&world.group("my-cluster")).unwrap()["tags"][ID], id);

    cluster_in(&world, OTHER, "my-cluster", json!({}));
    let refused = |world: &World| {
        let words = network_ready(world, OTHER, "my-cluster");
        words.starts_with("False") && words.contains("AzureCluster default/my-cluster comes first")
    };
    world.until("the second is refused", refused).await;
    assert!(world.events(CLUSTER, "my-cluster").contains(&"ClusterReconcilerNormalFailed".to_owned()));
    // Even if the core sees infrastructure, its machines do nothing.
    provisioned_in(&world, OTHER, "my-cluster");
    machine_in(&world, OTHER, "my-cluster", "worker", json!({}));
    tokio::time::sleep(LONG).await;
    world.kill().await;
    world.start();
    tokio::time::sleep(LONG).await;
    assert_eq!(world.azure.documents(), first);
    assert!(is_ready(&world));

    // Its machine and the cluster are deleted; nothing of the first one is.
    world.kubernetes.delete("AzureMachine", OTHER, "worker").unwrap();
    world
        .until("its machine has gone", |world| in_namespace(world, "AzureMachine", OTHER, "worker").is_none())
        .await;
    delete_in(&world, OTHER, "my-cluster");
    world.until("it has gone", |world| in_namespace(world, CLUSTER, OTHER, "my-cluster").is_none()).await;
    tokio::time::sleep(LONG).await;
    assert_eq!(world.azure.documents(), first);

    // Another one waits, and begins once the first one is gone.
    cluster_in(&world, "team-c", "my-cluster", json!({}));
    let waits = |world: &World| network_ready(world, "team-c", "my-cluster").contains("comes first");
    world.until("it waits", waits).await;
    world.delete("AzureMachine", "worker");
    end(&world).await;
    let begins = |world: &World| {
        in_namespace(world, CLUSTER, "team-c", "my-cluster").unwrap()["status"]["ready"] == true
    };
    world.until("it begins", begins).await;
    assert_ne!(world.azure.document(&world.group("my-cluster")).unwrap()["tags"][ID], id);
    delete_in(&world, "team-c", "my-cluster");
    world.until("the end", |world| in_namespace(world, CLUSTER, "team-c", "my-cluster").is_none()).await;
    assert_eq!(world.azure.documents(), nothing);
}

/// S1: the same between two management clusters, whose managers share only Azure: also if the first cluster was created
/// before clusters had IDs, so that only its name is on it. To take it over its resources are given the ID.
#[tokio::test(start_paused = true)]
async fn what_another_management_cluster_owns_is_never_taken() {
    for has_id in [true, false] {
        let mut one = World::new();
        first_with_machine(&mut one).await;
        if !has_id {
            one.kill().await;
            for document in one.azure.documents() {
                let resource = ResourceId::parse(document["id"].as_str().unwrap()).unwrap();
                if document["tags"][ID].is_string() {
                    one.azure
                        .edit(&resource, |document| {
                            document["tags"].as_object_mut().unwrap().remove(ID);
                        })
                        .unwrap();
                }
            }
        }
        let before = one.azure.documents();
        let mut other = World::with(LatencyProfile::instant(), 2);
        other.azure = one.azure.clone();
        other.cluster("my-cluster", json!({}));
        other.start();
        let expected = if has_id { "belongs to another cluster" } else { "may belong to another" };
        other
            .until("refused", |world| network_ready(world, NAMESPACE, "my-cluster").contains(expected))
            .await;
        other.kill().await;
        other.start();
        tokio::time::sleep(LONG).await;
        assert!(!is_ready(&other));
        assert_eq!(one.azure.documents(), before, "{has_id}");
        begin_end(&other);
        other.until("gone", |world| world.get(CLUSTER, "my-cluster").is_none()).await;
        tokio::time::sleep(LONG).await;
        assert_eq!(one.azure.documents(), before, "{has_id}");
        if has_id {
            continue;
        }
        // An earlier manager: it knows its resources from its records.
        one.start();
        tokio::time::sleep(LONG).await;
        assert!(is_ready(&one));
        one.delete("AzureMachine", "worker");
        end(&one).await;
        assert!(one.azure.document(&one.group("my-cluster")).is_none());
    }
}

/// S1: `clusterctl move`: the objects are new, with everything but their status; the cluster is the same. A copy of
/// them in another namespace is not.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_has_moved_is_the_same_and_a_copy_is_not() {
    let mut one = World::new();
    let nothing = one.azure.documents();
    one.cluster("my-cluster", json!({}));
    one.start_with_network().await;
    one.kill().await;
    let before = one.azure.documents();
    let moved = one.get(CLUSTER, "my-cluster").unwrap();
    let copy = |world: &World, namespace: &str| {
        self::namespace(world, namespace);
        let cluster = world.create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": { "name": "my-cluster", "namespace": namespace },
            "spec": { "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": CLUSTER, "name": "my-cluster" } },
        }));
        let mut object = moved.clone();
        object.as_object_mut().unwrap().remove("status");
        object["metadata"] = json!({
            "name": "my-cluster", "namespace": namespace, "labels": moved["metadata"]["labels"],
            "annotations": moved["metadata"]["annotations"], "finalizers": moved["metadata"]["finalizers"],
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "my-cluster",
                "uid": cluster["metadata"]["uid"] }],
        });
        object["spec"]["identityRef"]["namespace"] = json!(NAMESPACE);
        world.create(object);
    };
    let mut other = World::with(LatencyProfile::instant(), 2);
    other.azure = one.azure.clone();
    copy(&other, NAMESPACE);
    let sequence = one.sequence();
    other.start();
    other.until("it is the same", is_ready).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    copy(&other, OTHER);
    let refused = |world: &World| network_ready(world, OTHER, "my-cluster").contains("comes first");
    other.until("the copy is refused", refused).await;
    assert_eq!(one.requests_after(sequence).1, 0);
    delete_in(&other, OTHER, "my-cluster");
    other
        .until("the copy has gone", |world| in_namespace(world, CLUSTER, OTHER, "my-cluster").is_none())
        .await;
    assert_eq!(ids(&one.azure.documents()), ids(&before));
    end(&other).await;
    assert_eq!(one.azure.documents(), nothing);
}

/// S1, CAPZ-058 otherwise: a group with the cluster's name in its tag is not taken over by a cluster that has not
/// recorded it, for it may be another cluster's. With the cluster's ID it is its own.
#[tokio::test(start_paused = true)]
async fn a_group_that_bears_the_name_is_taken_with_the_id_alone() {
    let mut world = World::new();
    let group = world.group("my-cluster");
    let tags = json!({ crate::cluster_change::OWNER: "owned" });
    world.azure.put(&group, json!({ "location": "eastus", "tags": tags })).unwrap();
    world.cluster("my-cluster", json!({}));
    world.start();
    let uid = world.get(CLUSTER, "my-cluster").unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
    let says = format!("give the resource the tag {ID}={uid}");
    world.until("refused", |world| network_ready(world, NAMESPACE, "my-cluster").contains(&says)).await;
    assert_eq!(world.azure.documents().len(), 1);
    world.azure.edit(&group, |document| document["tags"][ID] = json!(uid)).unwrap();
    world.until("taken", is_ready).await;
    end(&world).await;
    assert!(world.azure.document(&group).is_none());
}

/// S2: a group of the first cluster that also contains another cluster and a user's volume: the first one's resources
/// are deleted one by one; those that are not proven stay, with the group, and are named.
#[tokio::test(start_paused = true)]
async fn a_group_goes_whole_only_if_all_in_it_is_proven() {
    let mut world = World::new();
    let own = json!({ "resourceGroup": "teamgroup" });
    world.cluster("my-cluster", own);
    world.start_with_network().await;
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world.until("the machine", |world| world.is_ready("AzureMachine", "worker")).await;
    let first = ids(&world.azure.documents());
    world.cluster(
        "second",
        json!({ "resourceGroup": "teamgroup", "networkSpec": { "vnet": { "cidrBlocks": ["10.0.0.0/8"] } } }),
    );
    world.until("the second", |world| world.is_ready(CLUSTER, "second")).await;
    let group = ResourceId::group(SUBSCRIPTION, "teamgroup");
    let volume = group.resource("Microsoft.Compute", "disks", "pvc-1");
    let disk = json!({ "location": "eastus", "sku": { "name": "Premium_LRS" },
        "properties": { "creationData": { "createOption": "Empty" }, "diskSizeGB": 4 } });
    world.azure.put(&volume, disk).unwrap();
    let second: Vec<String> = ids(&world.azure.documents())
        .into_iter()
        .filter(|id| !first.contains(id) || *id == group.as_str().to_lowercase())
        .collect();

    begin_end(&world);
    world.delete("AzureMachine", "worker");
    world.until("the first has gone", |world| world.get(CLUSTER, "my-cluster").is_none()).await;
    assert_eq!(ids(&world.azure.documents()), second);
    assert!(world.is_ready(CLUSTER, "second"));
    assert!(world.events(CLUSTER, "my-cluster").contains(&"ResourcesLeft".to_owned()));
    let event = world
        .kubernetes
        .list("Event")
        .iter()
        .map(|it| it.value().to_string())
        .find(|it| it.contains("ResourcesLeft"));
    let event = event.unwrap();
    assert!(event.contains("teamgroup") && event.contains("pvc-1"), "{event}");

    world.delete_cluster("second");
    world.delete(CLUSTER, "second");
    world.until("the second has gone", |world| world.get(CLUSTER, "second").is_none()).await;
    let mut left = vec![group.as_str().to_lowercase(), volume.as_str().to_lowercase()];
    left.sort();
    assert_eq!(ids(&world.azure.documents()), left);
}

/// S5: a namespace that may not use an identity gets nothing with it: no cluster, no machine, and no Secret with its
/// credential.
#[tokio::test(start_paused = true)]
async fn an_identity_serves_allowed_namespaces_alone_for_every_kind() {
    let mut world = World::new();
    world.put_secret("proof", &[("clientSecret", "s3cret")]);
    world.merge(
        "AzureClusterIdentity",
        "identity",
        json!({ "spec": { "type": "ServicePrincipal", "clientSecret": { "name": "proof", "namespace": NAMESPACE },
            "allowedNamespaces": { "list": [NAMESPACE] } } }),
    );
    cluster_in(&world, OTHER, "theirs", json!({}));
    provisioned_in(&world, OTHER, "theirs");
    world.start();
    machine_in(&world, OTHER, "theirs", "worker", json!({}));
    let owner = in_namespace(&world, "Cluster", OTHER, "theirs").unwrap()["metadata"]["uid"].clone();
    world.admit(
        "AzureMachineTemplate",
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureMachineTemplate",
            "metadata": { "name": "md", "namespace": OTHER, "labels": { "cluster.x-k8s.io/cluster-name": "theirs" },
                "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "theirs", "uid": owner }] },
            "spec": { "template": { "spec": { "vmSize": "Standard_D2s_v3", "osDisk": { "osType": "Linux", "diskSizeGB": 30 },
                "sshPublicKey": crate::world::SSH_KEY } } },
        }),
    );
    let refused = |world: &World| network_ready(world, OTHER, "theirs").contains("does not allow");
    world.until("refused", refused).await;
    tokio::time::sleep(LONG).await;
    assert_eq!(world.azure.documents(), Vec::<Value>::new());
    let secrets: Vec<String> = world
        .kubernetes
        .list("Secret")
        .iter()
        .map(|it| it.value().clone())
        .filter(|it| it["metadata"]["namespace"] == OTHER)
        .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(secrets, ["worker-data"]);
    assert_eq!(world.azure.journal().entries.len(), 0, "Azure was never asked with this identity");
}

/// S5: a provider ID that a user has written is no proof: the machine of another cluster in the same group stays.
#[tokio::test(start_paused = true)]
async fn a_provider_id_that_a_user_has_written_deletes_nothing() {
    let mut world = World::new();
    first_with_machine(&mut world).await;
    cluster_in(&world, OTHER, "theirs", json!({ "resourceGroup": "my-cluster" }));
    let ready =
        |world: &World| in_namespace(world, CLUSTER, OTHER, "theirs").unwrap()["status"]["ready"] == true;
    world.until("the other cluster", ready).await;
    provisioned_in(&world, OTHER, "theirs");
    let before = world.azure.documents();
    let victim = world.get("AzureMachine", "worker").unwrap()["spec"]["providerID"].clone();
    machine_in(&world, OTHER, "theirs", "thief", json!({ "providerID": victim }));
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.kubernetes.delete("AzureMachine", OTHER, "thief").unwrap();
    tokio::time::sleep(LONG).await;
    assert_eq!(world.azure.documents(), before);
    let thief = in_namespace(&world, "AzureMachine", OTHER, "thief").unwrap();
    assert!(
        thief["status"]["conditions"].to_string().contains("not proven to be this cluster's"),
        "{thief:#}"
    );
}

fn private(address: &str) -> Value {
    json!({ "networkSpec": {
        "apiServerLB": { "type": "Internal", "frontendIPs": [{ "name": "f", "privateIP": address }] },
        "privateDNSZoneName": "corp.example.com", "privateDNSZoneResourceGroup": "dns",
    } })
}

fn shared_zone(world: &World) -> ResourceId {
    let group = ResourceId::group(SUBSCRIPTION, "dns");
    world.azure.put(&group, json!({ "location": "eastus" })).unwrap();
    let zone = group.resource("Microsoft.Network", "privateDnsZones", "corp.example.com");
    world.azure.put(&zone, json!({ "location": "global" })).unwrap();
    zone
}

/// S7: two clusters share a private zone: the name of the API server belongs to the first one, and the second is
/// refused before it writes.
#[tokio::test(start_paused = true)]
async fn a_record_in_a_shared_zone_stays_the_first_ones() {
    let mut world = World::new();
    let zone = shared_zone(&world);
    world.cluster("my-cluster", private("10.0.0.50"));
    world.start();
    world.until("ready", is_ready).await;
    let before = world.azure.documents();
    world.cluster("second", private("10.0.0.51"));
    let refused = |world: &World| {
        network_ready(world, NAMESPACE, "second")
            .contains("DNS record corp.example.com/apiserver belongs to another cluster")
    };
    world.until("refused", refused).await;
    tokio::time::sleep(LONG).await;
    assert_eq!(world.azure.documents(), before);
    let record = world.azure.document(&zone.child("A", "apiserver")).unwrap();
    assert_eq!(record["properties"]["aRecords"], json!([{ "ipv4Address": "10.0.0.50" }]));
    assert!(is_ready(&world));
    world.delete_cluster("second");
    world.delete(CLUSTER, "second");
    world.until("it has gone", |world| world.get(CLUSTER, "second").is_none()).await;
    assert_eq!(world.azure.documents(), before);
}

/// D11: a zone that is linked to the network already, under another name, is used as it is; the link stays when the
/// cluster is deleted.
#[tokio::test(start_paused = true)]
async fn a_zone_that_is_linked_under_another_name_serves() {
    let mut world = World::new();
    let zone = shared_zone(&world);
    let group = ResourceId::group(SUBSCRIPTION, "net");
    world.azure.put(&group, json!({ "location": "eastus" })).unwrap();
    let network = group.resource("Microsoft.Network", "virtualNetworks", "corp");
    let subnet = |name: &str, range: &str| json!({ "name": name, "properties": { "addressPrefix": range } });
    world
        .azure
        .put(
            &network,
            json!({ "location": "eastus", "properties": { "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] },
                "subnets": [subnet("cps", "10.0.0.0/16"), subnet("nodes", "10.1.0.0/16")] } }),
        )
        .unwrap();
    let link = zone.child("virtualNetworkLinks", "theirs");
    let document = json!({ "location": "global",
        "properties": { "virtualNetwork": { "id": network.as_str() }, "registrationEnabled": false } });
    world.azure.put(&link, document).unwrap();
    let mut spec = private("10.0.0.50");
    spec["networkSpec"]["vnet"] = json!({ "name": "corp", "resourceGroup": "net" });
    spec["networkSpec"]["subnets"] = json!([
        { "name": "cps", "role": "control-plane", "cidrBlocks": ["10.0.0.0/16"] },
        { "name": "nodes", "role": "node", "cidrBlocks": ["10.1.0.0/16"] },
    ]);
    world.cluster("my-cluster", spec);
    world.start();
    let took = world.until("ready", is_ready).await;
    assert!(took < Duration::from_secs(30), "{took:?}");
    end(&world).await;
    assert!(world.azure.document(&link).is_some());
}

/// S6: a change that admission missed stops the cluster with a message: nothing of the network is deleted.
#[tokio::test(start_paused = true)]
async fn another_name_of_the_network_takes_nothing_away() {
    let mut world = World::new();
    world.cluster("my-cluster", private_alone());
    world.start();
    world.until("ready", is_ready).await;
    let before = world.azure.documents();
    let spec = world.get(CLUSTER, "my-cluster").unwrap()["spec"].clone();
    for (change, words) in [
        (json!({ "networkSpec": { "vnet": { "name": "other-vnet" } } }), "vnet.name back to my-cluster-vnet"),
        (
            json!({ "networkSpec": { "vnet": { "name": "other-vnet", "id": null } } }),
            "vnet.name back to my-cluster-vnet",
        ),
        (
            json!({ "resourceGroup": "other", "networkSpec": { "vnet": { "resourceGroup": "my-cluster" } } }),
            "set spec.resourceGroup back",
        ),
    ] {
        world.merge(CLUSTER, "my-cluster", json!({ "spec": change }));
        world.until("refused", |world| network_ready(world, NAMESPACE, "my-cluster").contains(words)).await;
        tokio::time::sleep(LONG).await;
        assert_eq!(world.azure.documents(), before, "{change}");
        world.merge(CLUSTER, "my-cluster", json!({ "spec": spec }));
        world
            .until("as before", |world| network_ready(world, NAMESPACE, "my-cluster").starts_with("True"))
            .await;
    }
    end(&world).await;
    assert_eq!(world.azure.documents(), Vec::<Value>::new());
}

fn private_alone() -> Value {
    json!({ "networkSpec": { "apiServerLB": { "type": "Internal" } } })
}

/// S11: infrastructure that an external tool manages is never ours, whatever the tags of its group say: machines are
/// deleted one by one.
#[tokio::test(start_paused = true)]
async fn machines_in_infrastructure_of_others_are_deleted_one_by_one() {
    let mut world = World::new();
    first_with_machine(&mut world).await;
    world.kill().await;
    world.merge(
        CLUSTER,
        "my-cluster",
        json!({ "metadata": { "annotations": { "cluster.x-k8s.io/managed-by": "terraform" } } }),
    );
    world.start();
    world.delete_cluster("my-cluster");
    world.delete("AzureMachine", "worker");
    world.until("the machine object has gone", |world| world.get("AzureMachine", "worker").is_none()).await;
    assert_eq!(world.azure.documents_of_type("Microsoft.Compute/virtualMachines"), Vec::<Value>::new());
    assert_eq!(world.azure.documents_of_type("Microsoft.Compute/disks"), Vec::<Value>::new());
    assert!(world.azure.document(&world.group("my-cluster")).is_some());
}

/// S1: a security group or a load balancer that a cluster of another name owns is not used by a second one that names
/// it, and the second is refused before it writes anything. The network of the first in the same group is its own, too.
#[tokio::test(start_paused = true)]
async fn what_a_cluster_of_another_name_owns_is_not_used() {
    for spec in [
        json!({ "networkSpec": { "apiServerLB": { "name": "common" } } }),
        json!({ "networkSpec": { "vnet": { "name": "common" } } }),
        json!({ "networkSpec": { "subnets": [
            { "role": "control-plane", "name": "control-planes", "securityGroup": { "name": "common" } },
            { "role": "node", "name": "nodes" },
        ] } }),
    ] {
        let mut world = World::new();
        let with_group = |spec: &Value| {
            let mut spec = spec.clone();
            spec["resourceGroup"] = json!("team");
            spec
        };
        world.cluster("my-cluster", with_group(&spec));
        world.start_with_network().await;
        let before = ids(&world.azure.documents());
        cluster_in(&world, OTHER, "other", with_group(&spec));
        let refused = |world: &World| {
            let words = network_ready(world, OTHER, "other");
            words.contains("belongs to cluster my-cluster") && words.contains("common")
        };
        world.until("refused", refused).await;
        tokio::time::sleep(LONG).await;
        assert!(refused(&world));
        assert_eq!(ids(&world.azure.documents()), before, "{spec}");
        delete_in(&world, OTHER, "other");
        world.until("gone", |world| in_namespace(world, CLUSTER, OTHER, "other").is_none()).await;
        assert_eq!(ids(&world.azure.documents()), before, "{spec}");
    }
}

/// S1: a scale set of another cluster with the name of a pool is not the pool's: its machines get no objects, and the
/// pool is deleted although the set stays.
#[tokio::test(start_paused = true)]
async fn machines_of_another_clusters_scale_set_are_not_a_pools() {
    let has_pool = |world: &World| world.get("AzureMachinePool", "my-pool").is_some();
    let sets = |world: &World| world.azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets");
    let mut before = World::new();
    before.cluster("my-cluster", json!({}));
    before.start_with_network().await;
    pool_world::ask_for(&before, "my-pool", 1, json!({}));
    before.until("there", |world| !sets(world).is_empty()).await;
    let set = sets(&before).remove(0);
    let id: ResourceId = set["id"].as_str().unwrap().parse().unwrap();
    drop(before);

    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    world.start_with_network().await;
    let mut theirs = set;
    theirs["tags"] =
        json!({ "sigs.k8s.io_cluster-api-provider-azure_cluster_theirs": "owned", ID: "theirs" });
    world.azure.put(&id, theirs).unwrap();
    pool_world::ask_for(&world, "my-pool", 3, json!({}));
    let words = |world: &World| world.get("AzureMachinePool", "my-pool").unwrap()["status"].to_string();
    world.until("refused", |world| words(world).contains("is not this cluster's")).await;
    tokio::time::sleep(LONG).await;
    let pool = world.get("AzureMachinePool", "my-pool").unwrap();
    assert_eq!((&pool["spec"]["providerID"], &pool["spec"]["providerIDList"]), (&Value::Null, &Value::Null));
    assert_eq!(world.kubernetes.list("AzureMachinePoolMachine").len(), 0);
    world.delete("AzureMachinePool", "my-pool");
    world.until("gone", |world| !has_pool(world)).await;
    assert!(world.azure.document(&id).is_some());
}

/// A foreign resource in a subnet delays the deletion of the cluster, and a condition names it.
#[tokio::test(start_paused = true)]
async fn an_interface_in_a_subnet_that_is_not_the_clusters_is_waited_for() {
    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    world.start_with_network().await;
    let group = world.group("my-cluster");
    let subnet = world.azure.documents_of_type("Microsoft.Network/virtualNetworks/subnets").remove(0);
    let theirs = group.resource("Microsoft.Network", "networkInterfaces", "theirs");
    let configuration = json!({ "name": "ip", "properties": { "subnet": { "id": subnet["id"] } } });
    let document = json!({ "location": "eastus", "properties": { "ipConfigurations": [configuration] } });
    world.azure.put(&theirs, document).unwrap();
    begin_end(&world);
    let is_named = |world: &World| network_ready(world, NAMESPACE, "my-cluster").contains(theirs.as_str());
    world.until("named", is_named).await;
    tokio::time::sleep(LONG).await;
    assert!(is_named(&world));
    world.azure.delete(&theirs).unwrap();
    world.until("gone", |world| world.get(CLUSTER, "my-cluster").is_none()).await;
}
