//! The same on a real kube-apiserver, if there is one (`KUBEBUILDER_ASSETS`).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use certificate_authority::CertificateAuthority;
use cluster_api_stand_in::{ByKubeconfig, ClusterApi, ConversionWebhook, conversion_router, install};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use real_kubernetes::RealKubernetes;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn api(client: &Client, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client.clone(), "default", &resource)
}

async fn until(what: &str, mut found: impl AsyncFnMut() -> Option<Value>) -> Value {
    for _ in 0..300 {
        if let Some(found) = found().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("{what} does not come");
}

async fn create(client: &Client, object: &Value) {
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let kind = GroupVersionKind::try_from(&object.types.clone().unwrap()).unwrap();
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = match kind.kind.as_str() {
        "CustomResourceDefinition" => Api::all_with(client.clone(), &resource),
        _ => Api::namespaced_with(client.clone(), "default", &resource),
    };
    // The API server serves a definition a moment after it was created.
    for _ in 0..300 {
        match api.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            other => return drop(other.unwrap()),
        }
    }
    panic!("{} is not served", kind.kind);
}

#[tokio::test]
async fn a_real_api_server_takes_all_of_it() {
    let Some(assets) = std::env::var_os("KUBEBUILDER_ASSETS") else { return };
    let directory = tempfile::tempdir().unwrap();
    let real = RealKubernetes::start(Path::new(&assets), directory.path()).await.unwrap();
    let client = real.client().await.unwrap();
    let stop = CancellationToken::new();
    let authority = CertificateAuthority::generate().unwrap();
    let tls = authority.server_config(&["127.0.0.1"]).unwrap();
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    let server =
        azure_simulator::serve::serve(address, conversion_router(), Some(tls), stop.clone()).await.unwrap();
    let url = format!("https://{}/convert", server.address());
    let webhook = ConversionWebhook { url, authority: authority.certificate_pem().to_owned() };
    install(&client, &webhook).await.unwrap();
    for definition in crate::world::DEFINITIONS {
        create(&client, &serde_saphyr::from_str(definition).unwrap()).await;
    }
    // A real server uses its own clock.
    #[allow(clippy::disallowed_methods)]
    let clock = Arc::new(jiff::Timestamp::now);
    ClusterApi::start(client.clone(), Arc::new(ByKubeconfig), clock, 1, stop.clone());
    for object in crate::world::cluster("c", 1).iter().chain(&crate::world::workers("c", 1)) {
        create(&client, object).await;
    }
    let infrastructure = api(&client, "infrastructure.cluster.x-k8s.io", "v1beta1", "AzureCluster");
    until("an owner", async || {
        let found = infrastructure.get("c").await.ok()?;
        found.metadata.owner_references.map(|owners| json!(owners))
    })
    .await;
    let merge = PatchParams::default();
    let endpoint = json!({"spec": {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 1}}});
    infrastructure.patch("c", &merge, &Patch::Merge(&endpoint)).await.unwrap();
    let ready = json!({"status": {"ready": true, "failureDomains": {"1": {"controlPlane": true}}}});
    infrastructure.patch_status("c", &merge, &Patch::Merge(&ready)).await.unwrap();
    let machines = api(&client, "cluster.x-k8s.io", "v1beta2", "Machine");
    let machine = until("a machine with data", async || {
        let all = machines.list(&Default::default()).await.ok()?.items;
        let one = serde_json::to_value(all.first()?).unwrap();
        one["spec"]["bootstrap"]["dataSecretName"].is_string().then_some(one)
    })
    .await;
    assert_eq!(machine["spec"]["failureDomain"], "1");
    let old = api(&client, "cluster.x-k8s.io", "v1beta1", "Cluster").get("c").await.unwrap();
    assert_eq!(old.data["status"]["infrastructureReady"], true);
    assert_eq!(
        old.data["spec"]["infrastructureRef"]["apiVersion"],
        "infrastructure.cluster.x-k8s.io/v1beta1"
    );
    let new = api(&client, "cluster.x-k8s.io", "v1beta2", "Cluster").get("c").await.unwrap();
    assert_eq!(new.data["status"]["initialization"]["infrastructureProvisioned"], true);
    assert_eq!(new.data["spec"]["infrastructureRef"]["apiGroup"], "infrastructure.cluster.x-k8s.io");
    let clusters = api(&client, "cluster.x-k8s.io", "v1beta1", "Cluster");
    until("a set of machines", async || {
        let sets = api(&client, "cluster.x-k8s.io", "v1beta1", "MachineSet");
        sets.list(&Default::default()).await.ok()?.items.first().map(|set| json!(set.metadata.name))
    })
    .await;
    // No provider of infrastructure completes deletions here.
    clusters.delete("c", &Default::default()).await.unwrap();
    until("an end", async || {
        let left = clusters.list(&Default::default()).await.ok()?.items.is_empty();
        left.then_some(Value::Null)
    })
    .await;
    stop.cancel();
}
