//! With the simulated API server.

use std::path::PathBuf;
use std::time::Duration;

use certificate_authority::CertificateAuthority;
use kubernetes_simulator::{Kubernetes, Options};
use program::kubernetes::{Address, connect};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::manager::{Manager, free_port, write_certificate};
use super::place::{Place, cluster, core, infrastructure, refusal};

pub struct World {
    pub place: Place,
    pub manager: Manager,
    pub folder: TempDir,
    pub _stop: tokio_util::sync::DropGuard,
}

/// A simulated Kubernetes whose Service routes to a running manager.
pub async fn world(more: &[&str]) -> World {
    world_with(more, &[]).await
}

/// The same with environment variables of the manager.
pub async fn world_with(more: &[&str], variables: &[(&str, String)]) -> World {
    arm::install_crypto_provider();
    let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    let kubernetes = Kubernetes::new(Options::default());
    let address = kubernetes.serve_https(([127, 0, 0, 1], 0).into(), stop.clone()).await.unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, kubernetes.kubeconfig(&format!("https://{address}")).unwrap()).unwrap();
    let path = kubeconfig.to_str().unwrap();
    let client = connect(
        &Address { kubeconfig: path, master: "", agent: "test", waits: true, observer: None },
        &arm::ProxySettings::from_environment(|_| None).unwrap(),
    )
    .await
    .unwrap();
    let (place, authority) = (Place(client), CertificateAuthority::generate().unwrap());
    write_certificate(&authority, folder.path());
    place.install().await;
    place.register(&authority, |_| {}).await;
    let manager = Manager::start_with(&kubeconfig, folder.path(), more, variables).await;
    let named = |object: &mut Value| {
        object["metadata"] = json!({ "name": "capz-webhook-service", "namespace": "capz-system" });
    };
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service", "spec": { "ports": [{ "port": 443, "targetPort": "webhook-server" }] },
    });
    named(&mut service);
    place.create(service).await.unwrap();
    let mut slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "ports": [{ "name": "", "port": manager.webhooks, "protocol": "TCP" }],
        "endpoints": [{ "addresses": ["127.0.0.1"], "conditions": { "ready": true } }],
    });
    named(&mut slice);
    slice["metadata"]["labels"] = json!({ "kubernetes.io/service-name": "capz-webhook-service" });
    place.create(slice).await.unwrap();
    World { place, manager, folder, _stop: stop.drop_guard() }
}

fn lease() -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "controller-leader-election-capz", "namespace": "capz-system" },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_completed_and_judged_and_the_leader_goes_in_good_order() {
    let World { place, manager, folder: _folder, _stop } = world(&[]).await;
    let made = place.create(cluster("c-1")).await.unwrap();
    assert_eq!(made["spec"]["resourceGroup"], "c-1");
    assert_eq!(made["spec"]["networkSpec"]["vnet"]["name"], "c-1-vnet");
    let (code, message, causes) = refusal(place.create(cluster(&"c".repeat(45))).await);
    assert_eq!((code, causes), (422, vec!["metadata.name".to_owned()]), "{message}");
    assert!(
        message
            .contains("admission webhook \"validation.azurecluster.infrastructure.cluster.x-k8s.io\" denied"),
        "{message}"
    );
    let mut change = cluster("c-1");
    change["spec"] = json!({ "location": "westeurope" });
    let (code, message, causes) = refusal(place.merge(change).await);
    assert_eq!((code, causes), (422, vec!["spec.location".to_owned()]), "{message}");

    let metrics = manager.metrics().await;
    let path = "/validate-infrastructure-cluster-x-k8s-io-v1beta1-azurecluster";
    assert!(
        metrics.contains(&format!(
            "controller_runtime_webhook_requests_total{{webhook=\"{path}\",code=\"200\"}} "
        )),
        "{metrics}"
    );
    let deadline = Instant::now() + Duration::from_secs(60);
    while !manager
        .metrics()
        .await
        .contains("leader_election_master_status{name=\"controller-leader-election-capz\"} 1")
    {
        assert!(Instant::now() < deadline);
        sleep(Duration::from_millis(50)).await;
    }
    // Metrics that dashboards for controllers show.
    for figure in [
        "controller_runtime_max_concurrent_reconciles{controller=\"azurecluster\"} 512",
        "controller_runtime_reconcile_total{controller=\"azurecluster\",result=\"",
        "workqueue_adds_total{name=\"azurecluster\",controller=\"azurecluster\"} ",
        "rest_client_requests_total{code=\"200\",host=\"127.0.0.1:",
    ] {
        while !manager.metrics().await.contains(figure) {
            assert!(Instant::now() < deadline, "{figure} is missing in\n{}", manager.metrics().await);
            sleep(Duration::from_millis(50)).await;
        }
    }
    let health = manager.health().await;
    assert!(health.contains("[+]webhook ok") && health.contains("[+]leaderElection ok"), "{health}");
    let holder = place.get(&lease()).await.unwrap()["spec"]["holderIdentity"].clone();
    assert!(holder.as_str().is_some_and(|holder| holder.contains('_')), "{holder}");
    assert_eq!(manager.stop().await, Some(0));
    assert_eq!(place.get(&lease()).await.unwrap()["spec"]["holderIdentity"], "");
}

/// CAPZ-088 and similar ones: rules that read other objects.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_objects_are_looked_up_where_a_rule_needs_them() {
    let World { place, manager: _manager, folder: _folder, _stop } = world(&[]).await;
    let pool = |name: &str, version: &str| {
        let reference = json!({ "kind": "AzureMachinePool", "name": name });
        let template = json!({ "spec": { "infrastructureRef": reference, "version": version } });
        core("MachinePool", name, json!({ "clusterName": "c-1", "template": template }))
    };
    let scale_set = |name: &str, mode: &str, identity: &str| {
        let template =
            json!({ "vmSize": "Standard_D2s_v3", "osDisk": { "osType": "Linux", "diskSizeGB": 30 } });
        let spec = json!({ "location": "eastus", "orchestrationMode": mode, "identity": identity, "template": template });
        infrastructure("AzureMachinePool", name, spec)
    };
    place.create(pool("old", "v1.25.4")).await.unwrap();
    place.create(pool("new", "v1.31.0")).await.unwrap();
    let (code, message, _) = refusal(place.create(scale_set("old", "Flexible", "None")).await);
    assert!(code == 403 && message.contains("v1.25.4"), "{code}: {message}");
    place.create(scale_set("new", "Flexible", "None")).await.unwrap();
    let (code, message, _) = refusal(place.create(scale_set("alone", "Flexible", "None")).await);
    assert!(
        code == 403 && message.contains("no MachinePool in default refers to alone"),
        "{code}: {message}"
    );

    // The cluster is created a moment after the pool that needs it, as from a manifest.
    let later = place.clone();
    tokio::spawn(async move {
        sleep(Duration::from_millis(700)).await;
        later.create(cluster("c-1")).await.unwrap();
        let reference = json!({ "kind": "AzureCluster", "name": "c-1" });
        later.create(core("Cluster", "c-1", json!({ "infrastructureRef": reference }))).await.unwrap();
    });
    place.create(pool("mine", "v1.31.0")).await.unwrap();
    let made = place.create(scale_set("mine", "Uniform", "SystemAssigned")).await.unwrap();
    assert_eq!(made["spec"]["systemAssignedIdentityRole"]["scope"], "/subscriptions/s-1/");

    // A cluster that names no subscription is in the manager's.
    let mut unnamed = cluster("c-2");
    unnamed["spec"].as_object_mut().unwrap().remove("subscriptionID");
    place.create(unnamed).await.unwrap();
    let reference = json!({ "kind": "AzureCluster", "name": "c-2" });
    place.create(core("Cluster", "c-2", json!({ "infrastructureRef": reference }))).await.unwrap();
    let disk = json!({ "osType": "Linux", "diskSizeGB": 30 });
    let spec = json!({ "vmSize": "Standard_D2s_v3", "osDisk": disk, "identity": "SystemAssigned" });
    let mut machine = infrastructure("AzureMachine", "m-1", spec);
    machine["metadata"]["labels"] = json!({ "cluster.x-k8s.io/cluster-name": "c-2" });
    let made = place.create(machine).await.unwrap();
    assert_eq!(made["spec"]["systemAssignedIdentityRole"]["scope"], "/subscriptions/of-the-environment/");
}

/// CAPZ-133 for pools: admission accepts pools even if the gate MachinePool disables their controllers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gates_decide_what_may_be_used() {
    let gates = "--feature-gates=EdgeZone=true,MachinePool=false";
    let World { place, manager: _manager, folder: _folder, _stop } = world(&[gates]).await;
    let mut object = cluster("c-1");
    object["spec"]["extendedLocation"] = json!({ "name": "edge", "type": "EdgeZone" });
    place.create(object).await.unwrap();
    let template = json!({ "vmSize": "Standard_D2s_v3", "osDisk": { "osType": "Linux", "diskSizeGB": 30 } });
    let pool =
        infrastructure("AzureMachinePool", "p-1", json!({ "location": "eastus", "template": template }));
    place.create(pool).await.unwrap();
}

/// Ten seconds of real time, the interval at which the files are read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_of_another_authority_is_served_without_a_restart() {
    let World { place, manager: _manager, folder, _stop } = world(&[]).await;
    place.create(cluster("c-1")).await.unwrap();
    let authority = CertificateAuthority::generate().unwrap();
    place.trust(&authority, |_| {}).await;
    let (_, message, _) = refusal(place.create(cluster("c-2")).await);
    assert!(message.contains("certificate signed by unknown authority"), "{message}");
    write_certificate(&authority, folder.path());
    let deadline = Instant::now() + Duration::from_secs(60);
    while let Err(error) = place.create(cluster("c-2")).await {
        assert!(Instant::now() < deadline, "{error}");
        sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test]
async fn without_a_certificate_the_program_says_which_file_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let kubernetes = Kubernetes::new(Options::default());
    let stop = CancellationToken::new();
    let address = kubernetes.serve_https(([127, 0, 0, 1], 0).into(), stop.clone()).await.unwrap();
    let kubeconfig: PathBuf = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, kubernetes.kubeconfig(&format!("https://{address}")).unwrap()).unwrap();
    let (code, text) = super::manager::run(&[
        &format!("--kubeconfig={}", kubeconfig.display()),
        &format!("--webhook-cert-dir={}", folder.path().display()),
        &format!("--webhook-port={}", free_port().await),
    ])
    .await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("/tls.crt: No such file"), "{text}");
    stop.cancel();
}
