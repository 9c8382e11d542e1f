//! Clusters that Azure manages, as whole objects of Azure Service Operator: from `spec.resources` to Azure and back,
//! without that operator.

mod access;
mod declaration;
mod drift;
mod kill;
mod neighbours;
mod pace;
mod pools;
mod rest;

use serde_json::{Value, json};

use crate::world::{NAMESPACE, SUBSCRIPTION, World};

const CLUSTER: &str = "AzureASOManagedCluster";
const CONTROL_PLANE: &str = "AzureASOManagedControlPlane";
const POOL: &str = "AzureASOManagedMachinePool";
const CLUSTERS: &str = "Microsoft.ContainerService/managedClusters";
const POOLS: &str = "Microsoft.ContainerService/managedClusters/agentPools";
const GROUP: &str = "infrastructure.cluster.x-k8s.io/v1beta1";

fn owned(kind: &str, name: &str, cluster: &str, owner: &Value, spec: Value) -> Value {
    let namespace = &owner["metadata"]["namespace"];
    json!({
        "apiVersion": GROUP, "kind": kind,
        "metadata": {
            "name": name, "namespace": namespace, "labels": { "cluster.x-k8s.io/cluster-name": cluster },
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": owner["kind"],
                "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"] }],
        },
        "spec": spec,
    })
}

pub fn resource(api: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": api, "kind": kind,
        "metadata": { "name": name, "annotations": { "serviceoperator.azure.com/credential-from": "credential" } },
        "spec": spec,
    })
}

pub fn group(name: &str) -> Value {
    resource("resources.azure.com/v1api20200601", "ResourceGroup", name, json!({ "location": "eastus" }))
}

pub fn managed_cluster(name: &str, more: Value) -> Value {
    let mut spec = json!({
        "location": "eastus", "owner": { "name": name }, "dnsPrefix": name, "identity": { "type": "SystemAssigned" },
        "networkProfile": { "networkPlugin": "azure", "dnsServiceIP": "192.168.0.10" }, "servicePrincipalProfile": { "clientId": "msi" },
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    resource("containerservice.azure.com/v1api20240901", "ManagedCluster", name, spec)
}

pub fn agent_pool(cluster: &str, name: &str, azure_name: &str, more: Value) -> Value {
    let mut spec = json!({
        "azureName": azure_name, "owner": { "name": cluster }, "mode": "System", "type": "VirtualMachineScaleSets",
        "vmSize": "Standard_D2s_v3",
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    resource("containerservice.azure.com/v1api20240901", "ManagedClustersAgentPool", name, spec)
}

/// A resource with another annotation of the operator's or of ours.
pub fn annotated(mut resource: Value, key: &str, value: &str) -> Value {
    resource["metadata"]["annotations"][key] = json!(value);
    resource
}

/// The events about an object, as reason and message.
fn said(world: &World, kind: &str, name: &str) -> Vec<String> {
    let all = world.kubernetes.list("Event");
    let either = |event: &Value, one: &str, other: &str| match &event[one] {
        Value::Null => event[other].clone(),
        found => found.clone(),
    };
    let about = |event: &&Value| {
        let object = either(event, "regarding", "involvedObject");
        object["kind"] == kind && object["name"] == name
    };
    let text = |event: &Value| {
        let message = either(event, "note", "message");
        format!("{} {}", event["reason"].as_str().unwrap(), message.as_str().unwrap_or_default())
    };
    all.iter().map(|event| event.value()).filter(about).map(text).collect()
}

pub fn credential(world: &World) {
    named_credential(world, "credential");
}

/// The operator's credential in a Secret with this name.
pub fn named_credential(world: &World, name: &str) {
    world.put_secret(
        name,
        &[
            ("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION),
            ("AZURE_TENANT_ID", "t"),
            ("AZURE_CLIENT_ID", "c"),
            ("AZURE_CLIENT_SECRET", "s"),
        ],
    );
}

/// A cluster of the flavor aks-aso, without pools.
pub fn cluster(world: &World, name: &str, resources: &[Value], control: Value) {
    cluster_in(world, NAMESPACE, name, resources, control);
}

fn cluster_in(world: &World, namespace: &str, name: &str, resources: &[Value], control: Value) {
    let reference =
        |kind: &str| json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": name });
    let cluster = world.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "clusterNetwork": { "services": { "cidrBlocks": ["192.168.0.0/16"] } },
            "controlPlaneRef": reference(CONTROL_PLANE), "infrastructureRef": reference(CLUSTER),
        },
    }));
    world.admit(CLUSTER, owned(CLUSTER, name, name, cluster.value(), json!({ "resources": resources })));
    world.admit(CONTROL_PLANE, owned(CONTROL_PLANE, name, name, cluster.value(), control));
}

/// A node pool with its MachinePool.
pub fn pool(world: &World, cluster: &str, name: &str, resource: Value) {
    let owner = world.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": { "cluster.x-k8s.io/cluster-name": cluster } },
        "spec": { "clusterName": cluster, "replicas": 2, "template": { "spec": {
            "clusterName": cluster, "version": "v1.33.2", "bootstrap": { "dataSecretName": "" },
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": POOL, "name": name } } } },
    }));
    world.admit(POOL, owned(POOL, name, cluster, owner.value(), json!({ "resources": [resource] })));
}

/// Nodes as AKS registers them, in the API server that stands for the managed cluster.
pub fn nodes(world: &World, pool: &str, names: &[&str]) {
    for name in names {
        world.create(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "labels": { "kubernetes.azure.com/agentpool": pool, "kubernetes.azure.com/cluster": "MC_aks_aks_eastus" } },
            "spec": { "providerID": format!("azure:///subscriptions/{SUBSCRIPTION}/x/{name}") },
        }));
    }
}

/// The cluster of the flavor, with two pools.
fn flavor(world: &World) {
    credential(world);
    let control = json!({ "version": "v1.33.2", "resources": [managed_cluster("aks", json!({}))] });
    cluster(world, "aks", &[group("aks")], control);
    pool(world, "aks", "aks-pool1", agent_pool("aks", "aks-pool1", "pool1", json!({ "mode": "User" })));
    pool(world, "aks", "aks-pool0", agent_pool("aks", "aks-pool0", "pool0", json!({})));
    nodes(world, "pool0", &["n0", "n1"]);
    nodes(world, "pool1", &["n2", "n3"]);
}

pub fn is_up(world: &World) -> bool {
    world.is_ready(CLUSTER, "aks")
        && world.is_ready(CONTROL_PLANE, "aks")
        && world.kubernetes.list(POOL).iter().all(|pool| pool["status"]["ready"] == true)
}

/// Begins the deletion of the Cluster and of its pools.
fn begin_end(world: &World) {
    world.delete_cluster("aks");
    for pool in world.kubernetes.list(POOL) {
        world.delete(POOL, pool["metadata"]["name"].as_str().unwrap());
    }
}

/// Deletes the other objects in the order in which the core does. Returns whether they are gone.
fn is_down(world: &World) -> bool {
    let asked =
        |kind: &str| world.get(kind, "aks").is_some_and(|it| !it["metadata"]["deletionTimestamp"].is_null());
    if !world.kubernetes.list(POOL).is_empty() {
        return false;
    }
    for kind in [CONTROL_PLANE, CLUSTER] {
        if world.get(kind, "aks").is_some() {
            if !asked(kind) {
                world.delete(kind, "aks");
            }
            return false;
        }
    }
    true
}

pub async fn running() -> World {
    let mut world = World::new();
    flavor(&world);
    world.start();
    world.until("the cluster and its pools", is_up).await;
    world
}

/// CAPZ-203, CAPZ-204, CAPZ-208: the flavor aks-aso becomes ready.
#[tokio::test(start_paused = true)]
async fn a_cluster_of_raw_resources_becomes_ready() {
    let world = running().await;
    let cluster = world.azure.documents_of_type(CLUSTERS).remove(0);
    assert_eq!(cluster["properties"]["kubernetesVersion"], "1.33.2");
    assert_eq!(cluster["properties"]["networkProfile"]["serviceCidr"], "192.168.0.0/16");
    assert_eq!(world.azure.documents_of_type(POOLS).len(), 2);
    let control_plane = world.get(CONTROL_PLANE, "aks").unwrap();
    assert_eq!(control_plane["status"]["version"], "v1.33.2");
    assert_eq!(control_plane["status"]["initialized"], true);
    let resources = json!([{ "ready": true, "resource": { "group": "containerservice.azure.com", "version": "v1api20240901",
        "kind": "ManagedCluster", "name": "aks" } }]);
    assert_eq!(control_plane["status"]["resources"], resources);
    let endpoint = &control_plane["status"]["controlPlaneEndpoint"];
    assert_eq!(world.get(CLUSTER, "aks").unwrap()["spec"]["controlPlaneEndpoint"], *endpoint);
    assert!(world.secret("aks-kubeconfig", "value").is_some());
    let pool = world.get(POOL, "aks-pool0").unwrap();
    assert_eq!(pool["spec"]["providerIDList"].as_array().unwrap().len(), 2);
    assert_eq!(pool["status"]["replicas"], 2);
    for secret in world.client_secrets.lock().iter() {
        assert_eq!(secret, "s");
    }
}

/// At rest nothing is written, the objects do not wake each other for ever, and a loop of one object reads four times at
/// most. The kubeconfig is asked for by a POST, which reads.
#[tokio::test(start_paused = true)]
async fn at_rest_nothing_is_written() {
    let world = running().await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let begin = world.sequence();
    let objects = |world: &World| -> Vec<Value> {
        let kinds = [CLUSTER, CONTROL_PLANE, POOL, "MachinePool", "Secret"];
        kinds.iter().flat_map(|kind| world.kubernetes.list(kind)).map(|it| it["metadata"].clone()).collect()
    };
    let before = objects(&world);
    tokio::time::sleep(std::time::Duration::from_secs(1250)).await;
    let calls = world.calls_after(begin);
    let writes: Vec<&String> =
        calls.iter().filter(|call| !call.starts_with("GET") && !call.contains("listCluster")).collect();
    assert!(writes.is_empty(), "{writes:#?}");
    assert_eq!(objects(&world), before);
    // Each of the four objects has two loops.
    let of = |resource: &str| calls.iter().filter(|call| call.contains(resource)).count();
    assert_eq!(of("listClusterAdminCredential"), 2, "{calls:#?}");
    assert!(of("agentPools/pool0") <= 2 * 4 && of("agentPools/pool1") <= 2 * 4, "{calls:#?}");
    let reads = calls.iter().filter(|call| call.starts_with("GET")).count();
    assert!(reads <= 2 * 4 * 4, "{calls:#?}");
}

/// CAPZ-198 for this generation, CAPZ-206: in the order in which the core deletes.
#[tokio::test(start_paused = true)]
async fn a_cluster_of_raw_resources_is_deleted() {
    let world = running().await;
    world.delete_cluster("aks");
    let begin = world.sequence();
    for name in ["aks-pool0", "aks-pool1"] {
        world.delete(POOL, name);
    }
    world.until("the pools are gone", |world| world.kubernetes.list(POOL).is_empty()).await;
    assert!(world.calls_after(begin).iter().all(|call| !call.starts_with("DELETE")));
    world.delete(CONTROL_PLANE, "aks");
    world.until("the control plane is gone", |world| world.get(CONTROL_PLANE, "aks").is_none()).await;
    assert!(world.azure.documents_of_type(CLUSTERS).is_empty());
    world.delete(CLUSTER, "aks");
    world.until("the cluster is gone", |world| world.get(CLUSTER, "aks").is_none()).await;
    let deletions: Vec<String> =
        world.calls_after(begin).into_iter().filter(|call| call.starts_with("DELETE")).collect();
    assert_eq!(deletions.len(), 2, "{deletions:#?}");
    assert!(world.azure.document(&world.group("aks")).is_none());
}
