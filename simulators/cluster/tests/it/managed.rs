//! Clusters that Azure manages: each has a Kubernetes of its own, and the machines of its pools are the nodes.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use azure_simulator::Azure;
use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster_api_stand_in::Workloads;
use http::Request;
use k8s::api::api::core::v1::Namespace;
use kube::Api;
use serde_json::{Value, json};
use simulated_cluster::{WorkloadClusters, WorkloadOptions};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

const SUBSCRIPTION: &str = "12345678-0000-4000-8000-000000000009";

struct World {
    azure: Azure,
    workloads: WorkloadClusters,
}

impl World {
    fn start() -> Self {
        let azure = Azure::new(azure_simulator::Options {
            subscription: SUBSCRIPTION.to_owned(),
            region: "eastus".to_owned(),
            ..Default::default()
        });
        let stop = CancellationToken::new();
        let workloads = WorkloadClusters::start(azure.clone(), WorkloadOptions::default(), stop);
        Self { azure, workloads }
    }

    fn put(&self, name: &str, count: u64, access: Value) {
        let document = json!({
            "location": "eastus", "identity": { "type": "SystemAssigned" },
            "properties": {
                "dnsPrefix": name, "apiServerAccessProfile": access,
                "agentPoolProfiles": [{ "name": "system", "mode": "System", "count": count, "vmSize": "Standard_D2s_v3" }],
                "networkProfile": { "networkPlugin": "azure", "outboundType": "loadBalancer" },
            },
        });
        self.azure.put(&id(name), document).unwrap();
    }

    /// The names of a cluster's ready nodes.
    fn nodes(&self, cluster: &str) -> Vec<String> {
        let is_ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
        let nodes = self.workloads.cluster(cluster).map(|it| it.kubernetes.list("Node")).unwrap_or_default();
        let ready = nodes.iter().filter(|node| {
            node["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(is_ready))
        });
        ready.map(|node| node.name().to_owned()).collect()
    }

    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..600 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("in vain: {what}");
    }

    /// The administrator's kubeconfig, from Azure.
    async fn kubeconfig(&self, cluster: &str) -> String {
        let uri = format!("{}/listClusterAdminCredential?api-version=2025-08-01", id(cluster));
        let request = Request::post(uri).header("Authorization", "Bearer t").body(Body::empty()).unwrap();
        let Ok(answer) = self.azure.router().oneshot(request).await;
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let config = STANDARD.decode(body["kubeconfigs"][0]["value"].as_str().unwrap()).unwrap();
        String::from_utf8(config).unwrap()
    }

    /// Whether the API server of a kubeconfig answers a program outside of Azure.
    async fn answers(&self, kubeconfig: &str) -> Result<usize, String> {
        let config: Value = serde_saphyr::from_str(kubeconfig).unwrap();
        let server = config["clusters"][0]["cluster"]["server"].as_str().unwrap();
        let endpoint = server.strip_prefix("https://").unwrap();
        let client = Workloads::client(&self.workloads, "default", "c", endpoint, kubeconfig);
        let namespaces: Api<Namespace> = Api::all(client.await.unwrap());
        let listed = namespaces.list(&Default::default()).await;
        listed.map(|list| list.items.len()).map_err(|error| format!("{error:?}"))
    }
}

fn id(cluster: &str) -> ResourceId {
    ResourceId::group(SUBSCRIPTION, "g").resource("Microsoft.ContainerService", "managedClusters", cluster)
}

#[tokio::test(start_paused = true)]
async fn each_managed_cluster_has_its_own_kubernetes_and_the_nodes_of_its_pools() {
    let world = World::start();
    world.put("one", 2, json!({}));
    world.put("other", 1, json!({}));
    // It can be reached at once, and has the nodes later.
    let kubeconfig = world.kubeconfig("one").await;
    world.until("nodes", |world| world.nodes("one").len() == 2 && world.nodes("other").len() == 1).await;
    let cluster = world.workloads.cluster("one").unwrap();
    for node in cluster.kubernetes.list("Node") {
        let labels = &node["metadata"]["labels"];
        assert_eq!(labels["kubernetes.azure.com/agentpool"], "system");
        assert_eq!(labels["kubernetes.azure.com/cluster"], "MC_g_one_eastus");
        assert!(node["spec"]["providerID"].as_str().unwrap().contains("/resourceGroups/mc_g_one_eastus/"));
        assert!(node["spec"]["taints"].is_null(), "{}", node.value());
        let version = node["status"]["nodeInfo"]["kubeletVersion"].as_str().unwrap();
        let pool = world.azure.document(&id("one").child("agentPools", "system")).unwrap();
        assert_eq!(
            version,
            format!("v{}", pool["properties"]["currentOrchestratorVersion"].as_str().unwrap())
        );
    }
    let document = world.azure.document(&id("one")).unwrap();
    assert_eq!(cluster.endpoint, format!("{}:443", document["properties"]["fqdn"].as_str().unwrap()));
    assert_eq!(world.kubeconfig("one").await, kubeconfig);
    assert!(kubeconfig.contains(&format!("https://{}", cluster.endpoint)), "{kubeconfig}");
    assert!(world.answers(&kubeconfig).await.unwrap() > 0);
    assert_ne!(world.kubeconfig("other").await, kubeconfig);

    // The pool shrinks and grows.
    world.put("one", 1, json!({}));
    world.until("one node", |world| world.nodes("one").len() == 1).await;
    world.put("one", 3, json!({}));
    world.until("three nodes", |world| world.nodes("one").len() == 3).await;

    world.azure.delete(&id("one")).unwrap();
    world.until("it is gone", |world| world.workloads.cluster("one").is_none()).await;
    assert!(world.answers(&kubeconfig).await.is_err());
    assert_eq!(world.nodes("other").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_api_server_of_a_private_cluster_does_not_answer_outside_of_its_network() {
    let world = World::start();
    world.put("hidden", 1, json!({ "enablePrivateCluster": true }));
    let kubeconfig = world.kubeconfig("hidden").await;
    world.until("its node", |world| world.nodes("hidden").len() == 1).await;
    let why = world.answers(&kubeconfig).await.unwrap_err();
    assert!(why.contains("managed cluster hidden is private"), "{why}");
}
