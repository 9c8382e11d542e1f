//! The served cluster: machines become nodes, files contain all addresses, and the page answers.

use std::time::Duration;

use azure_simulator::Options;
use azure_simulator::entra::{AuthFailure, TokenVerifier as _};
use azure_types::ResourceId;
use k8s::Node;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use simulated_cluster::{
    HostError, HostedAzure, HostedAzureOptions, HostedCluster, HostedOptions, Shape, machine_disks,
};
use stand_ins::Pace;
use tokio_util::sync::CancellationToken;

fn options(directory: &std::path::Path) -> HostedOptions {
    let start = "2026-11-21T03:00:00Z".parse().unwrap();
    let azure = Options { seed: 7, start, ..Options::default() };
    HostedOptions {
        pace: Pace::missed_after(Duration::from_secs(1)),
        ..HostedOptions::of(Shape::default(), azure, directory)
    }
}

async fn nodes(cluster: &HostedCluster) -> Vec<Node> {
    Api::<Node>::all(cluster.client.clone()).list(&ListParams::default()).await.unwrap().items
}

/// The raw response to a GET without TLS.
async fn ask(host: &str, path: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Waits until `condition` holds, a minute at most.
async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    for _ in 0..1200 {
        if condition().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("timed out waiting until {what}");
}

/// Programs wait for the files, and look for their devices at once.
#[tokio::test]
async fn machines_have_their_disks_before_the_files_are_written() {
    let (directory, disks) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (folder, delay) = (disks.path().to_owned(), Duration::ZERO);
    let options = HostedOptions {
        disks: Some(machine_disks::Options { folder, delay, devices: machine_disks::Devices::Files }),
        ..options(directory.path())
    };
    let stop = CancellationToken::new();
    let cluster = HostedCluster::start(options, &stop).await.unwrap();
    let endpoints = std::fs::read_to_string(&cluster.files.endpoints).unwrap();
    let endpoints: Value = serde_json::from_str(&endpoints).unwrap();
    let folder = std::path::Path::new(endpoints["volumes"].as_str().unwrap());
    for machine in ["worker000000", "worker000001", "worker000002"] {
        assert!(folder.join(machine).join("dev/disk/azure/root").exists(), "{machine}");
    }
    cluster.disks.unwrap().release().await;
    assert!(!folder.join("worker000000").exists());
}

#[tokio::test]
async fn machines_become_nodes_and_lost_ones_are_missed() {
    let directory = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let cluster = HostedCluster::start(options(directory.path()), &stop).await.unwrap();
    until("three nodes have registered", async || nodes(&cluster).await.len() == 3).await;
    let names: Vec<String> = nodes(&cluster).await.iter().map(|node| node.name().to_owned()).collect();
    assert_eq!(names, ["worker000000", "worker000001", "worker000002"]);
    assert!(
        nodes(&cluster)
            .await
            .iter()
            .all(|node| node.has_taint("node.cloudprovider.kubernetes.io/uninitialized"))
    );

    let scale_set = Shape::default().scale_set("workers");
    cluster.azure.remove_instance(&scale_set, "1").unwrap();
    until("the lost node is missed, and no other", async || {
        let nodes = nodes(&cluster).await;
        let missed: Vec<&str> =
            nodes.iter().filter(|node| !node.is_ready()).map(|node| node.name()).collect();
        missed == ["worker000001"]
    })
    .await;
    stop.cancel();
}

#[tokio::test]
async fn a_stopped_machine_falls_silent() {
    let directory = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let cluster = HostedCluster::start(options(directory.path()), &stop).await.unwrap();
    until("all nodes are ready", async || nodes(&cluster).await.iter().filter(|n| n.is_ready()).count() == 3)
        .await;
    let instance = Shape::default().scale_set("workers").child("virtualMachines", "2");
    cluster.azure.set_power_state(&instance, azure_simulator::PowerState::Deallocated).unwrap();
    until("the stopped node is missed", async || {
        nodes(&cluster).await.iter().filter(|n| n.is_ready()).count() == 2
    })
    .await;
    stop.cancel();
}

#[tokio::test]
async fn files_say_where_everything_is_and_only_the_owner_reads_secrets() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let cluster = HostedCluster::start(options(directory.path()), &stop).await.unwrap();
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    let azure: Value = serde_json::from_str(&read(&cluster.files.azure_json)).unwrap();
    assert_eq!(azure["resourceManagerEndpoint"], cluster.resource_manager.as_str());
    let endpoints: Value = serde_json::from_str(&read(&cluster.files.endpoints)).unwrap();
    assert_eq!(endpoints["control"], cluster.control.as_str());
    let control = cluster.kubernetes_control.as_deref().unwrap();
    assert_eq!(endpoints["kubernetesControl"], control);
    let asked = ask(control.trim_start_matches("http://"), "/_cerulean/state").await;
    assert!(asked.starts_with("HTTP/1.1 200") && asked.contains("\"namespaces\""), "{asked}");
    assert!(read(&cluster.files.certificate_authority).starts_with("-----BEGIN CERTIFICATE-----"));
    for path in [&cluster.files.azure_json, &cluster.files.kubeconfig] {
        assert_eq!(
            std::fs::metadata(path).unwrap().permissions().mode() & 0o777,
            0o600,
            "{}",
            path.display()
        );
    }
    stop.cancel();
}

/// A managed cluster gives out a kubeconfig of the Kubernetes beside Azure, and its pools are that one's nodes.
#[tokio::test]
async fn a_managed_cluster_is_the_kubernetes_beside_it() {
    use base64::Engine as _;
    let directory = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let cluster = HostedCluster::start(options(directory.path()), &stop).await.unwrap();
    let shape = Shape::default();
    let id = ResourceId::group(&shape.subscription, "apps").resource(
        "Microsoft.ContainerService",
        "managedClusters",
        "aks",
    );
    let pool = |name: &str, count: u64| {
        json!({"name": name, "mode": "System", "count": count, "vmSize": "Standard_D2s_v3",
            "nodeLabels": {"team": "a"}, "nodeTaints": ["spot=yes:NoSchedule"]})
    };
    let document = json!({"location": shape.region, "identity": {"type": "SystemAssigned"},
        "properties": {"dnsPrefix": "aks", "agentPoolProfiles": [pool("system", 2)]}});
    cluster.azure.put(&id, document).unwrap();
    // The kubeconfig leads there.
    let profile = cluster.azure.document(&id.child("accessProfiles", "clusterAdmin")).unwrap();
    let encoded = profile["properties"]["kubeConfig"].as_str().unwrap();
    let text = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap();
    let config = kube::config::Kubeconfig::from_yaml(std::str::from_utf8(&text).unwrap()).unwrap();
    let mut config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.unwrap();
    config.proxy_url = None;
    let nodes = Api::<Node>::all(kube::Client::try_from(config).unwrap());
    let of_pool = ListParams::default().labels("kubernetes.azure.com/agentpool=system");
    let count = async || nodes.list(&of_pool).await.unwrap().items.len();
    until("the pool's machines are nodes", async || count().await == 2).await;
    let listed = nodes.list(&of_pool).await.unwrap().items;
    let node = serde_json::to_value(&listed[0]).unwrap();
    let labels = &node["metadata"]["labels"];
    assert_eq!(
        (&labels["team"], &labels["kubernetes.azure.com/cluster"]),
        (&json!("a"), &json!("MC_apps_aks_westeurope"))
    );
    let provider = node["spec"]["providerID"].as_str().unwrap();
    assert!(
        provider.starts_with("azure:///subscriptions/")
            && provider.contains("/resourceGroups/mc_apps_aks_westeurope/")
    );
    assert!(
        !listed[0].has_taint("node.cloudprovider.kubernetes.io/uninitialized") && listed[0].has_taint("spot")
    );
    // It grows and shrinks with the pool, and goes with the cluster.
    for size in [3, 1] {
        cluster.azure.put(&id.child("agentPools", "system"), json!({"properties": {"count": size}})).unwrap();
        until("there are as many nodes as the pool says", async || count().await == size).await;
    }
    cluster.azure.delete(&id).unwrap();
    until("no node is left of the pool", async || count().await == 0).await;
    assert_eq!(
        nodes.list(&ListParams::default()).await.unwrap().items.len(),
        3,
        "those of the machines beside it stay"
    );
    stop.cancel();
}

/// A copied kubeconfig stays valid: token, certificate authority and, if it is fixed, port.
#[tokio::test]
async fn a_kubeconfig_stays_good_over_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let mut kubeconfigs = Vec::new();
    let mut azure_jsons = Vec::new();
    let mut port = 0;
    for _ in 0..2 {
        let stop = CancellationToken::new();
        let options = HostedOptions { kubernetes_port: port, ..options(directory.path()) };
        let cluster = HostedCluster::start(options, &stop).await.unwrap();
        let text = std::fs::read_to_string(&cluster.files.kubeconfig).unwrap();
        let server = text.lines().find(|line| line.contains("server:")).unwrap();
        port = server.trim_end_matches('"').rsplit(':').next().unwrap().parse().unwrap();
        kubeconfigs.push(text);
        let azure: Value =
            serde_json::from_str(&std::fs::read_to_string(&cluster.files.azure_json).unwrap()).unwrap();
        azure_jsons.push(azure["aadClientSecret"].clone());
        stop.cancel();
        // The port is free again once the listener is gone.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(kubeconfigs[0], kubeconfigs[1]);
    assert_eq!(azure_jsons[0], azure_jsons[1]);
}

/// A program that signed in before a restart need not do so again (U1).
#[tokio::test]
async fn a_token_stays_good_over_restarts_as_long_as_its_key_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("authority/token-key");
    let shape = Shape::default();
    let start = async || {
        let stop = CancellationToken::new();
        let options = HostedAzureOptions::of(&shape, Options::default(), directory.path());
        HostedAzure::start(options, &stop).await
    };
    let audience = "https://management.azure.com/";
    let first = start().await.unwrap();
    let issued = first.entra.issue(&shape.client_id, &shape.object_id, &shape.tenant, audience).unwrap();
    let token = issued.token.secret();
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&key).unwrap());
    assert_eq!(mode & 0o077, 0, "it is for its owner alone");

    let again = start().await.unwrap();
    assert_eq!(again.entra.verify(token, issued.not_before).unwrap().client_id, shape.client_id);

    std::fs::write(&key, "no key").unwrap();
    let problem = start().await.unwrap_err();
    assert!(matches!(&problem, HostError::TokenKey { path, .. } if *path == key), "{problem}");
    std::fs::remove_file(&key).unwrap();
    let other = start().await.unwrap();
    assert_eq!(other.entra.verify(token, issued.not_before).unwrap_err(), AuthFailure::Invalid);
}

#[tokio::test]
async fn the_root_of_each_listener_says_what_answers_there() {
    let directory = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let cluster = HostedCluster::start(options(directory.path()), &stop).await.unwrap();
    let control = cluster.kubernetes_control.clone().unwrap();
    for path in ["/", "/_cerulean/"] {
        let answer = ask(control.trim_start_matches("http://"), path).await;
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.contains("control API of a simulated"),
            "{answer}"
        );
    }
    let entra = azure_simulator::entra::Entra::new(azure_simulator::entra::EntraOptions::new(
        "t",
        std::sync::Arc::new(|| jiff::Timestamp::UNIX_EPOCH),
    ));
    let request = http::Request::get("/").body(axum::body::Body::empty()).unwrap();
    let answer = tower::ServiceExt::oneshot(entra.unwrap().authority_router(), request).await.unwrap();
    assert_eq!(answer.status(), 200);
    stop.cancel();
}
