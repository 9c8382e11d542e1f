//! End to end: a user's manifests become a workload cluster whose nodes are ready. Cluster API's core is a stand-in;
//! machines of the simulated Azure boot with their bootstrap data and join through the API server's load balancer.

use std::sync::Arc;

use azure_simulator::LatencyProfile;
use cluster_api_stand_in::{ClusterApi, ConversionWebhook, conversion_router, install};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kubernetes_simulator::{AdmissionHook, Decision, WebhookHost};
use serde_json::{Value, json};
use simulated_cluster::{WorkloadClusters, WorkloadOptions};
use tokio_util::sync::CancellationToken;

use crate::world::{Fixed, NAMESPACE, SUBSCRIPTION, World};

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta1";

/// Our webhooks, in this process.
fn admit(world: &World) {
    for kind in capz_api::crd::KINDS.iter() {
        let name = kind.name;
        let hook = AdmissionHook::mutating(name, move |request| async move {
            let Some(object) = request.object else { return Decision::allow() };
            let context = capz_api::Context {
                subscription: capz_api::Lookup::Found(SUBSCRIPTION.to_owned()),
                ..Default::default()
            };
            let done = capz_api::admission::complete(
                name,
                object,
                request.old_object.as_ref(),
                &context,
                &mut Fixed,
            )
            .and_then(|object| {
                capz_api::admission::validate(name, &object, request.old_object.as_ref(), &context)?;
                Ok(object)
            });
            match done {
                Ok(object) => Decision::replace(object),
                Err(denied) => Decision::deny(denied.to_string()),
            }
        });
        let plural = kind.plural();
        world.kubernetes.admission_hook(hook.on(
            &["CREATE", "UPDATE"],
            "infrastructure.cluster.x-k8s.io",
            &[&plural],
        ));
    }
}

/// A world with a core, and workload clusters; the manager does not run yet.
pub async fn stage(latency: LatencyProfile) -> (World, WorkloadClusters) {
    let world = World::bare(1, |azure| azure.latency = latency);
    admit(&world);
    world.kubernetes.webhook_host("cluster-api.example", WebhookHost::InProcess(conversion_router()));
    let client = Client::new(world.kubernetes.router(), NAMESPACE);
    let authority = world.kubernetes.authority().unwrap().certificate_pem().to_owned();
    let webhook = ConversionWebhook { url: "https://cluster-api.example/convert".to_owned(), authority };
    install(&client, &webhook).await.unwrap();
    let stop = CancellationToken::new();
    let workloads = WorkloadClusters::start(world.azure.clone(), WorkloadOptions::default(), stop.clone());
    ClusterApi::start(client, Arc::new(workloads.clone()), world.kubernetes.clock(), 1, stop);
    (world, workloads)
}

pub async fn apply(world: &World, objects: &[Value]) {
    let client = Client::new(world.kubernetes.router(), NAMESPACE);
    for object in objects {
        let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        let kind = GroupVersionKind::try_from(&object.types.clone().unwrap()).unwrap();
        let api: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), NAMESPACE, &ApiResource::from_gvk(&kind));
        api.create(&PostParams::default(), &object)
            .await
            .unwrap_or_else(|error| panic!("{error}: {object:?}"));
    }
}

/// A template of machines.
pub fn template(name: &str, size: &str) -> Value {
    json!({ "apiVersion": INFRASTRUCTURE, "kind": "AzureMachineTemplate", "metadata": { "name": name },
        "spec": { "template": { "spec": { "vmSize": size, "osDisk": { "osType": "Linux", "diskSizeGB": 64 } } } } })
}

/// A user's manifests.
pub fn objects(control_planes: u64, workers: u64) -> Vec<Value> {
    let infrastructure =
        |kind: &str, name: &str| json!({ "apiVersion": INFRASTRUCTURE, "kind": kind, "name": name });
    let registration = json!({ "nodeRegistration": { "name": "{{ ds.meta_data[\"local_hostname\"] }}" } });
    vec![
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": "my-cluster" },
            "spec": { "infrastructureRef": infrastructure("AzureCluster", "my-cluster"), "controlPlaneRef": {
                "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "KubeadmControlPlane", "name": "my-cp" } } }),
        json!({ "apiVersion": INFRASTRUCTURE, "kind": "AzureCluster", "metadata": { "name": "my-cluster" },
            "spec": { "location": "eastus", "identityRef": { "kind": "AzureClusterIdentity", "name": "identity" } } }),
        template("my-cp", "Standard_D2s_v3"),
        json!({ "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "KubeadmControlPlane",
            "metadata": { "name": "my-cp" }, "spec": { "replicas": control_planes, "version": "v1.33.2",
                "machineTemplate": { "infrastructureRef": infrastructure("AzureMachineTemplate", "my-cp") },
                "kubeadmConfigSpec": { "initConfiguration": registration, "joinConfiguration": registration } } }),
        template("my-workers", "Standard_D2s_v3"),
        json!({ "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfigTemplate",
            "metadata": { "name": "my-workers" },
            "spec": { "template": { "spec": { "joinConfiguration": registration } } } }),
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment", "metadata": { "name": "my-workers" },
            "spec": { "clusterName": "my-cluster", "replicas": workers,
                "selector": { "matchLabels": {} },
                "template": { "spec": { "clusterName": "my-cluster", "version": "v1.33.2",
                    "bootstrap": { "configRef": { "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                        "kind": "KubeadmConfigTemplate", "name": "my-workers" } },
                    "infrastructureRef": infrastructure("AzureMachineTemplate", "my-workers") } } } }),
    ]
}

/// Changes an object of Cluster API, in its version v1beta2.
pub async fn change(world: &World, group: &str, kind: &str, name: &str, patch: Value) {
    let kind = GroupVersionKind::gvk(group, "v1beta2", kind);
    let client = Client::new(world.kubernetes.router(), NAMESPACE);
    let api: Api<DynamicObject> = Api::namespaced_with(client, NAMESPACE, &ApiResource::from_gvk(&kind));
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn scale(world: &World, replicas: u64) {
    let patch = json!({ "spec": { "replicas": replicas } });
    change(world, "cluster.x-k8s.io", "MachineDeployment", "my-workers", patch).await;
}

pub fn ready_nodes(workloads: &WorkloadClusters) -> usize {
    let Some(cluster) = workloads.cluster("my-cluster") else { return 0 };
    let is_ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
    let nodes = cluster.kubernetes.list("Node");
    nodes
        .iter()
        .filter(|node| node["status"]["conditions"].as_array().is_some_and(|it| it.iter().any(is_ready)))
        .count()
}

/// A user's manifests become a cluster of three and three whose nodes are ready, grows and shrinks, and is deleted
/// without a trace.
#[tokio::test(start_paused = true)]
async fn what_a_user_applies_becomes_a_cluster_and_goes_without_a_trace() {
    let (mut world, workloads) = stage(LatencyProfile::instant()).await;
    world.start();
    let before = world.azure.documents();
    apply(&world, &objects(3, 3)).await;
    world.until("six nodes are ready", |_| ready_nodes(&workloads) == 6).await;
    let zones: std::collections::BTreeSet<String> = world
        .azure
        .documents_of_type("Microsoft.Compute/virtualMachines")
        .iter()
        .filter(|vm| vm["name"].as_str().unwrap().starts_with("my-cp"))
        .map(|vm| vm["zones"][0].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(zones.len(), 3, "control planes are spread over the zones: {zones:?}");
    scale(&world, 5).await;
    world.until("eight nodes are ready", |_| ready_nodes(&workloads) == 8).await;
    scale(&world, 1).await;
    world
        .until("four machines are left", |world| {
            world.azure.documents_of_type("Microsoft.Compute/virtualMachines").len() == 4
        })
        .await;
    world.delete("Cluster", "my-cluster");
    world.until("the cluster is gone", |world| world.get("Cluster", "my-cluster").is_none()).await;
    assert_eq!(world.azure.documents(), before);
    assert!(world.kubernetes.list("AzureMachine").is_empty());
}
