//! CAPZ-211: managed clusters and node pools of Azure Service Operator that users give to Cluster API, beside those that
//! they keep. A stand-in for the operator deletes what it may delete.

use std::collections::BTreeMap;
use std::time::Duration;

use azure_types::ResourceId;
use capz_planner::operator::{OperatorKind, kinds};
use kubernetes_simulator::Fault;
use serde_json::{Value, json};

use crate::operator::{FINALIZER, POLICY, POLICY_BEFORE, SYNC, defined_in, objects, operator, put, writes};
use crate::raw::{credential, nodes};
use crate::world::{NAMESPACE, SUBSCRIPTION, World};

const ADOPT: &str = "sigs.k8s.io/cluster-api-provider-azure-adopt";
const CREDENTIAL: &str = "serviceoperator.azure.com/credential-from";
const OTHER: &str = "elsewhere";
const CLUSTERS: &str = "Microsoft.ContainerService/managedClusters";

/// What adoption makes, by kind and name.
const MADE: [(&str, &str); 5] = [
    ("Cluster", "aks"),
    ("AzureASOManagedCluster", "aks"),
    ("AzureASOManagedControlPlane", "aks"),
    ("MachinePool", "aks-pool0"),
    ("AzureASOManagedMachinePool", "aks-pool0"),
];

fn kind(name: &str) -> &'static OperatorKind {
    kinds().iter().find(|kind| kind.kind == name).unwrap()
}

fn define(world: &World) {
    for (name, version) in [
        ("ResourceGroup", "v1api20200601"),
        ("ManagedCluster", "v1api20240901"),
        ("ManagedClustersAgentPool", "v1api20240901"),
    ] {
        let storage = format!("{version}storage");
        let none = json!({ "strategy": "None" });
        world.create(defined_in(kind(name), &[version, &storage], &storage, none));
    }
}

fn operators(name: &str, api: &str, namespace: &str, object: &str, id: &ResourceId, spec: Value) -> Value {
    json!({
        "apiVersion": format!("{}/{api}", kind(name).group), "kind": name,
        "metadata": { "name": object, "namespace": namespace, "finalizers": [FINALIZER],
            "annotations": { CREDENTIAL: "credential" } },
        "spec": spec,
        "status": { "id": id.as_str(), "conditions": [
            { "type": "Ready", "status": "True", "reason": "Succeeded", "observedGeneration": 1 }] },
    })
}

/// A cluster with a pool in Azure, and the operator's objects that have made it.
fn made_by_operator(world: &World, namespace: &str, name: &str) {
    let group = world.group(name);
    world.azure.put(&group, json!({ "location": "eastus", "tags": { "team": "a" } })).unwrap();
    let cluster = group.resource("Microsoft.ContainerService", "managedClusters", name);
    let pool = json!({ "name": "pool0", "mode": "System", "type": "VirtualMachineScaleSets", "count": 2,
        "vmSize": "Standard_D2s_v3", "orchestratorVersion": "1.33.2" });
    let properties = json!({
        "dnsPrefix": name, "kubernetesVersion": "1.33.2", "servicePrincipalProfile": { "clientId": "msi" },
        "networkProfile": { "networkPlugin": "azure", "serviceCidr": "192.168.0.0/16", "dnsServiceIP": "192.168.0.10" },
    });
    let mut document = properties.clone();
    document["agentPoolProfiles"] = json!([pool]);
    let identity = json!({ "type": "SystemAssigned" });
    world
        .azure
        .put(&cluster, json!({ "location": "eastus", "identity": identity, "properties": document }))
        .unwrap();

    let spec = json!({ "azureName": name, "location": "eastus", "tags": { "team": "a" }, "originalVersion": "v1api20200601" });
    put(world, operators("ResourceGroup", "v1api20200601storage", namespace, name, &group, spec));
    let mut spec = document;
    spec["azureName"] = json!(name);
    spec["location"] = json!("eastus");
    spec["identity"] = identity;
    spec["owner"] = json!({ "name": name });
    spec["originalVersion"] = json!("v1api20240901");
    put(world, operators("ManagedCluster", "v1api20240901storage", namespace, name, &cluster, spec));
    let id = cluster.child("agentPools", "pool0");
    let mut spec = pool;
    spec.as_object_mut().unwrap().remove("name");
    spec["azureName"] = json!("pool0");
    spec["owner"] = json!({ "name": name });
    spec["originalVersion"] = json!("v1api20240901");
    let object = format!("{name}-pool0");
    put(world, operators("ManagedClustersAgentPool", "v1api20240901storage", namespace, &object, &id, spec));
}

fn offer(world: &World, namespace: &str, kind: &str, name: &str) {
    let patch = json!({ "metadata": { "annotations": { ADOPT: "true" } } });
    world.kubernetes.merge(kind, namespace, name, &patch).unwrap();
}

/// A world with a cluster `aks` to be adopted, and one beside it that is kept.
fn world() -> World {
    let world = World::new();
    credential(&world);
    define(&world);
    for name in ["aks", "beside"] {
        made_by_operator(&world, NAMESPACE, name);
    }
    nodes(&world, "pool0", &["n0", "n1"]);
    world
}

fn get(world: &World, namespace: &str, kind: &str, name: &str) -> Option<Value> {
    world.kubernetes.get(kind, namespace, name).map(|object| object.value().clone())
}

/// What the core does with objects that a Cluster or a MachinePool refers to.
fn own(world: &World, namespace: &str, owner: (&str, &str), owned: (&str, &str), cluster: &str) {
    let found = get(world, namespace, owner.0, owner.1).unwrap();
    let patch = json!({ "metadata": {
        "labels": { "cluster.x-k8s.io/cluster-name": cluster },
        "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": owner.0, "name": owner.1,
            "uid": found["metadata"]["uid"], "controller": true }] } });
    world.kubernetes.merge(owned.0, namespace, owned.1, &patch).unwrap();
}

/// Waits until a cluster is adopted, with its pool, and plays the core meanwhile.
async fn adopted(world: &World, namespace: &str, name: &str) {
    let is_there = |world: &World, kind: &str, name: &str| get(world, namespace, kind, name).is_some();
    world.until("the control plane", |world| is_there(world, "AzureASOManagedControlPlane", name)).await;
    for kind in ["AzureASOManagedCluster", "AzureASOManagedControlPlane"] {
        own(world, namespace, ("Cluster", name), (kind, name), name);
    }
    let pool = format!("{name}-pool0");
    world.until("the pool", |world| is_there(world, "AzureASOManagedMachinePool", &pool)).await;
    own(world, namespace, ("MachinePool", &pool), ("AzureASOManagedMachinePool", &pool), name);
    let is_gone = |world: &World| {
        !is_there(world, "ManagedCluster", name) && !is_there(world, "ManagedClustersAgentPool", &pool)
    };
    world.until("the operator's objects are gone", is_gone).await;
}

/// The writes after this one; credentials are asked for with a POST.
fn changes(world: &World, after: u64) -> Vec<String> {
    writes(world, after).into_iter().filter(|call| !call.contains("listCluster")).collect()
}

fn of(all: &BTreeMap<String, Value>, name: &str) -> BTreeMap<String, Value> {
    all.iter().filter(|(key, _)| key.contains(name)).map(|(key, it)| (key.clone(), it.clone())).collect()
}

/// CAPZ-211: offered objects become objects of Cluster API without a write to Azure, in each namespace; what is not offered stays as it
/// is. When the Cluster is deleted later, Azure loses it, and nothing else; and it is not adopted again.
#[tokio::test(start_paused = true)]
async fn offered_clusters_are_adopted_and_no_others() {
    let mut world = world();
    world.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": OTHER } }));
    let mut secret = world.get("Secret", "credential").unwrap();
    secret["metadata"] = json!({ "name": "credential", "namespace": OTHER });
    world.create(secret);
    made_by_operator(&world, OTHER, "second");
    let (before, in_azure, loaded) = (objects(&world.kubernetes), world.azure.documents(), world.sequence());
    let guard = operator(&world);
    world.start();
    tokio::time::sleep(SYNC).await;
    assert_eq!(objects(&world.kubernetes), before, "nothing is offered");

    // A pool whose cluster is not adopted is refused, and tried again.
    offer(&world, NAMESPACE, "ManagedClustersAgentPool", "aks-pool0");
    let refused = |world: &World| {
        world.events("ManagedClustersAgentPool", "aks-pool0").contains(&"NotAdopted".to_owned())
    };
    world.until("the refusal", refused).await;
    assert!(world.get("MachinePool", "aks-pool0").is_none());
    let pool = format!("ManagedClustersAgentPool {NAMESPACE}/aks-pool0");
    assert_eq!(objects(&world.kubernetes)[&pool]["metadata"]["annotations"][POLICY], Value::Null);

    offer(&world, NAMESPACE, "ManagedCluster", "aks");
    offer(&world, OTHER, "ManagedCluster", "second");
    offer(&world, OTHER, "ManagedClustersAgentPool", "second-pool0");
    adopted(&world, NAMESPACE, "aks").await;
    adopted(&world, OTHER, "second").await;
    let is_ready = |world: &World| {
        MADE.iter()
            .filter(|(kind, _)| kind.starts_with("Azure"))
            .all(|(kind, name)| world.is_ready(kind, name))
            && get(world, OTHER, "AzureASOManagedControlPlane", "second")
                .is_some_and(|it| it["status"]["ready"] == true)
    };
    world.until("ready", is_ready).await;
    tokio::time::sleep(2 * SYNC).await;
    assert!(is_ready(&world));
    assert_eq!(changes(&world, loaded), Vec::<String>::new());
    assert_eq!(world.azure.documents(), in_azure);
    let after = objects(&world.kubernetes);
    assert_eq!(of(&after, "beside"), of(&before, "beside"));
    assert!(MADE.iter().all(|(kind, _)| get(&world, NAMESPACE, kind, "beside").is_none()));
    // The group's object stays, without harm: others may refer to it.
    for (namespace, name) in [(NAMESPACE, "aks"), (OTHER, "second")] {
        let left = of(&after, &format!("{namespace}/{name}"));
        assert_eq!(left.keys().collect::<Vec<_>>(), [&format!("ResourceGroup {namespace}/{name}")]);
        let annotations = &left.values().next().unwrap()["metadata"]["annotations"];
        assert_eq!((&annotations[POLICY], &annotations[POLICY_BEFORE]), (&json!("skip"), &json!("")));
    }
    let pool = world.get("MachinePool", "aks-pool0").unwrap();
    assert_eq!((&pool["spec"]["clusterName"], &pool["spec"]["replicas"]), (&json!("aks"), &json!(2)));
    for kind in ["AzureASOManagedControlPlane", "AzureASOManagedMachinePool"] {
        let name = if kind.ends_with("Pool") { "aks-pool0" } else { "aks" };
        assert!(world.events(kind, name).contains(&"TakenOver".to_owned()), "{kind}");
    }

    world.delete_cluster("aks");
    for (kind, name) in MADE.into_iter().rev().filter(|(kind, _)| *kind != "Cluster") {
        world.delete(kind, name);
        world.until("it is gone", |world| get(world, NAMESPACE, kind, name).is_none()).await;
    }
    world.merge("Cluster", "aks", json!({ "metadata": { "finalizers": null } }));
    tokio::time::sleep(2 * SYNC).await;
    assert!(world.azure.document(&world.group("aks")).is_none());
    let left: Vec<Value> = in_azure
        .iter()
        .filter(|it| !it["id"].as_str().unwrap().to_lowercase().contains("/resourcegroups/aks"))
        .filter(|it| !it["id"].as_str().unwrap().to_lowercase().contains("/resourcegroups/mc_aks_aks"))
        .cloned()
        .collect();
    assert_eq!(world.azure.documents(), left);
    assert!(world.get("Cluster", "aks").is_none(), "it is not adopted again");
    drop(guard);
}

/// Without the gate, and while the operator has not brought Azure to what the object declares now, nothing happens.
/// CAPZ-207: its condition Ready is True, and older.
#[tokio::test(start_paused = true)]
async fn nothing_is_adopted_before_its_time() {
    let mut world = world();
    offer(&world, NAMESPACE, "ManagedCluster", "aks");
    offer(&world, NAMESPACE, "ManagedClustersAgentPool", "aks-pool0");
    // The user changes the declaration while the operator does not run.
    world.merge("ManagedCluster", "aks", json!({ "spec": { "tags": { "new": "tag" } } }));
    let (before, loaded) = (objects(&world.kubernetes), world.sequence());
    world.settings.gates.aso_api = false;
    world.start();
    tokio::time::sleep(2 * SYNC).await;
    assert!(world.events("ManagedCluster", "aks").is_empty());
    world.kill().await;
    world.settings.gates.aso_api = true;
    world.start();
    let waits = |world: &World| world.events("ManagedCluster", "aks").contains(&"NotAdopted".to_owned());
    world.until("it waits", waits).await;
    tokio::time::sleep(2 * SYNC).await;
    assert_eq!(objects(&world.kubernetes), before);
    assert!(MADE.iter().all(|(kind, name)| world.get(kind, name).is_none()));
    assert_eq!(changes(&world, loaded), Vec::<String>::new());
    // The operator applies it.
    let cluster = world.azure.documents_of_type(CLUSTERS).into_iter().find(|it| it["name"] == "aks").unwrap();
    let id = ResourceId::parse(cluster["id"].as_str().unwrap()).unwrap();
    world.azure.edit(&id, |cluster| cluster["tags"] = json!({ "new": "tag" })).unwrap();
    tokio::time::sleep(SYNC).await;
    let loaded = world.sequence();
    let generation = world.get("ManagedCluster", "aks").unwrap()["metadata"]["generation"].clone();
    assert_eq!(generation, 2);
    let status = json!({ "status": { "conditions": [
        { "type": "Ready", "status": "True", "reason": "Succeeded", "observedGeneration": generation }] } });
    world.kubernetes.merge_status("ManagedCluster", NAMESPACE, "aks", &status).unwrap();
    adopted(&world, NAMESPACE, "aks").await;
    assert_eq!(changes(&world, loaded), Vec::<String>::new());
}

/// Whatever fails on the way, the operator is silent first, and the adoption ends.
#[tokio::test(start_paused = true)]
async fn an_interrupted_adoption_is_completed() {
    let refused = |verb: &str, resource: &str| Fault::status(500).verb(verb).resource(resource);
    for (verb, resource) in [
        ("create", "clusters"),
        ("create", "azureasomanagedclusters"),
        ("create", "azureasomanagedcontrolplanes"),
        ("create", "machinepools"),
        ("create", "azureasomanagedmachinepools"),
        ("patch", "managedclusters"),
        ("patch", "managedclustersagentpools"),
        ("patch", "resourcegroups"),
        ("list", "managedclusters"),
    ] {
        let mut world = world();
        let (in_azure, loaded) = (world.azure.documents(), world.sequence());
        let before = objects(&world.kubernetes);
        offer(&world, NAMESPACE, "ManagedCluster", "aks");
        offer(&world, NAMESPACE, "ManagedClustersAgentPool", "aks-pool0");
        world.kubernetes.inject(Fault { count: None, ..refused(verb, resource) });
        world.start();
        tokio::time::sleep(Duration::from_secs(90)).await;
        if world.get("AzureASOManagedControlPlane", "aks").is_some() {
            let is_there = |world: &World| world.get("Cluster", "aks").is_some();
            assert!(is_there(&world));
            for kind in ["AzureASOManagedCluster", "AzureASOManagedControlPlane"] {
                own(&world, NAMESPACE, ("Cluster", "aks"), (kind, "aks"), "aks");
            }
            if let Some(cluster) = world.get("ManagedCluster", "aks") {
                assert!(
                    cluster["metadata"]["annotations"][POLICY] == "skip"
                        || (verb, resource) == ("patch", "managedclusters")
                );
            }
        }
        tokio::time::sleep(Duration::from_secs(90)).await;
        world.kill().await;
        world.kubernetes.clear_faults();
        world.start();
        adopted(&world, NAMESPACE, "aks").await;
        assert_eq!(changes(&world, loaded), Vec::<String>::new(), "{verb} {resource}");
        assert_eq!(world.azure.documents(), in_azure, "{verb} {resource}");
        assert_eq!(of(&objects(&world.kubernetes), "beside"), of(&before, "beside"));
    }
}

/// What the operator was not to delete outlives the Cluster that adopts it.
#[tokio::test(start_paused = true)]
async fn an_adopted_cluster_keeps_what_the_operator_was_to_keep() {
    for policy in ["skip", "detach-on-delete"] {
        let mut world = world();
        for (kind, name) in [("ManagedCluster", "aks"), ("ResourceGroup", "aks")] {
            world.merge(kind, name, json!({ "metadata": { "annotations": { POLICY: policy } } }));
        }
        let (in_azure, loaded) = (world.azure.documents(), world.sequence());
        offer(&world, NAMESPACE, "ManagedCluster", "aks");
        offer(&world, NAMESPACE, "ManagedClustersAgentPool", "aks-pool0");
        let guard = operator(&world);
        world.start();
        adopted(&world, NAMESPACE, "aks").await;
        let is_ready = |world: &World| {
            world.is_ready("AzureASOManagedControlPlane", "aks")
                && world.is_ready("AzureASOManagedMachinePool", "aks-pool0")
        };
        world.until("ready", is_ready).await;
        world.delete_cluster("aks");
        for (kind, name) in MADE.into_iter().rev().filter(|(kind, _)| *kind != "Cluster") {
            world.delete(kind, name);
            world.until("it is gone", |world| get(world, NAMESPACE, kind, name).is_none()).await;
        }
        tokio::time::sleep(SYNC).await;
        assert_eq!(changes(&world, loaded), Vec::<String>::new(), "{policy}");
        assert_eq!(world.azure.documents(), in_azure, "{policy}");
        drop(guard);
    }
}

/// Existing objects of these names are left alone: without its own objects an offered one is not adopted, and the operator
/// goes on.
#[tokio::test(start_paused = true)]
async fn existing_objects_are_left_alone() {
    let reference = |kind: &str, name: &str| json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": name });
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": "aks", "namespace": NAMESPACE },
        "spec": { "controlPlaneRef": reference("KubeadmControlPlane", "aks"), "infrastructureRef": reference("AzureCluster", "aks") },
    });
    let control_plane = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureASOManagedControlPlane",
        "metadata": { "name": "aks", "namespace": NAMESPACE }, "spec": { "resources": [] },
    });
    for existing in [cluster, control_plane] {
        let mut world = world();
        let made = world.create(existing.clone()).value().clone();
        offer(&world, NAMESPACE, "ManagedCluster", "aks");
        let (before, loaded) = (objects(&world.kubernetes), world.sequence());
        world.start();
        let refused =
            |world: &World| world.events("ManagedCluster", "aks").contains(&"NotAdopted".to_owned());
        world.until("the refusal", refused).await;
        tokio::time::sleep(SYNC).await;
        assert_eq!(objects(&world.kubernetes), before);
        let kind = existing["kind"].as_str().unwrap();
        assert_eq!(world.get(kind, "aks").unwrap()["spec"], made["spec"]);
        assert!(world.get("AzureASOManagedCluster", "aks").is_none());
        assert_eq!(changes(&world, loaded), Vec::<String>::new());
    }
}

/// The operator's object that comes back beside its owner, from a file, is made harmless and taken over again.
#[tokio::test(start_paused = true)]
async fn an_object_that_comes_back_is_taken_over_again() {
    let mut world = world();
    let again = world.get("ManagedCluster", "aks").unwrap();
    offer(&world, NAMESPACE, "ManagedCluster", "aks");
    offer(&world, NAMESPACE, "ManagedClustersAgentPool", "aks-pool0");
    let guard = operator(&world);
    world.start();
    adopted(&world, NAMESPACE, "aks").await;
    let (in_azure, loaded) = (world.azure.documents(), world.sequence());
    let mut object = again;
    object["metadata"] = json!({ "name": "aks", "namespace": NAMESPACE, "finalizers": [FINALIZER], "annotations": {
        CREDENTIAL: "credential", ADOPT: "true" } });
    put(&world, object);
    world.until("it is gone", |world| world.get("ManagedCluster", "aks").is_none()).await;
    assert_eq!(changes(&world, loaded), Vec::<String>::new());
    assert_eq!(world.azure.documents(), in_azure);
    assert!(world.azure.document(&ResourceId::group(SUBSCRIPTION, "aks")).is_some());
    drop(guard);
}
