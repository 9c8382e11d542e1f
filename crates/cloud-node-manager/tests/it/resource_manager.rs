//! The program without instance metadata: machines of every kind from Resource Manager.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use clock::Clock;
use kubernetes_simulator::Kubernetes;
use serde_json::{Value, json};
use simulated_cluster::{HostedCluster, HostedOptions, NodePool, Orchestration, Shape, StandaloneMachine};
use tokio::io::AsyncBufReadExt as _;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// The timeout for anything on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

async fn cluster(folder: &Path, stop: &CancellationToken) -> HostedCluster {
    arm::install_crypto_provider();
    let flexible = NodePool { orchestration: Orchestration::Flexible, ..NodePool::new("flexes", "flex", 1) };
    let shape = Shape {
        pools: vec![NodePool::new("workers", "worker", 1), flexible],
        machines: vec![StandaloneMachine::new("single")],
        ..Shape::default()
    };
    let azure = azure_simulator::Options { start: Clock::system().now(), ..Default::default() };
    let options = HostedOptions::of(shape, azure, folder);
    HostedCluster::start(options, stop).await.unwrap()
}

fn command(cluster: &HostedCluster, node: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_azure-cloud-node-manager"));
    command
        .args([&format!("--node-name={node}"), "--use-instance-metadata=false", "--v=2"])
        .arg(format!("--kubeconfig={}", cluster.files.kubeconfig.display()))
        .arg(format!("--cloud-config={}", cluster.files.azure_json.display()))
        .env_clear()
        .env("SSL_CERT_FILE", &cluster.files.certificate_authority)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

async fn node(kubernetes: &Kubernetes, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let found = kubernetes.until("Node", |nodes| {
        let node = nodes.iter().find(|node| node.name() == name)?.value().clone();
        fits(&node).then_some(node)
    });
    tokio::time::timeout(PATIENCE, found).await.expect("the node to become so").unwrap()
}

fn is_initialised(node: &Value) -> bool {
    !node["spec"]["taints"].to_string().contains(UNINITIALIZED)
}

/// NODE-003
#[tokio::test]
async fn node_003_machines_of_every_kind_are_found_by_the_names_of_their_nodes() {
    let (folder, stop) = (tempfile::tempdir().unwrap(), CancellationToken::new());
    let cluster = cluster(folder.path(), &stop).await;
    let kubernetes = cluster.kubernetes.clone().unwrap();
    let names = async {
        let all = kubernetes.until("Node", |nodes| {
            let names: Vec<String> = nodes.iter().map(|node| node.name().to_owned()).collect();
            (names.len() == 3).then_some(names)
        });
        tokio::time::timeout(PATIENCE, all).await.expect("three nodes").unwrap()
    };
    for name in names.await {
        // Some kubelets set the provider ID; none has to.
        kubernetes.delete("Node", "", &name).unwrap();
        let taint = json!({"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"});
        let bare = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": [taint]}});
        // A kubelet may have been faster.
        let _there_already = kubernetes.create(bare);
        let program = command(&cluster, &name).spawn().unwrap();
        let found = node(&kubernetes, &name, is_initialised).await;
        let id = found["spec"]["providerID"].as_str().unwrap();
        let kind = match name.split_at(4).0 {
            "work" => "/virtualMachineScaleSets/workers/virtualMachines/0",
            "flex" => "/virtualMachines/flexes_",
            _ => "/virtualMachines/single",
        };
        assert!(id.starts_with("azure:///subscriptions/") && id.contains(kind), "{name}: {id}");
        let labels = &found["metadata"]["labels"];
        assert_eq!(labels["node.kubernetes.io/instance-type"], "Standard_D2s_v5", "{name}");
        assert_eq!(labels["topology.kubernetes.io/region"], "westeurope", "{name}");
        assert!(labels["topology.kubernetes.io/zone"].is_string(), "{name}: {labels}");
        let addresses = found["status"]["addresses"].to_string();
        assert!(addresses.contains("InternalIP") && addresses.contains(&name), "{addresses}");
        drop(program);
    }
    stop.cancel();
}

/// NODE-005, NODE-042
#[tokio::test]
async fn node_005_a_node_without_a_machine_keeps_its_taint_and_is_told() {
    let (folder, stop) = (tempfile::tempdir().unwrap(), CancellationToken::new());
    let cluster = cluster(folder.path(), &stop).await;
    let kubernetes = cluster.kubernetes.clone().unwrap();
    let taint = json!({"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"});
    let stranger = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "stranger"}, "spec": {"taints": [taint]}});
    kubernetes.create(stranger).unwrap();
    let mut program = command(&cluster, "stranger").spawn().unwrap();
    let mut lines = tokio::io::BufReader::new(program.stderr.take().unwrap()).lines();
    let told = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("instance not found") {
                return line;
            }
        }
        panic!("it ended without a word");
    };
    let line = tokio::time::timeout(PATIENCE, told).await.expect("a word");
    assert!(line.contains("Azure has no machine for the node stranger"), "{line}");
    assert!(!is_initialised(&node(&kubernetes, "stranger", |_| true).await));
    stop.cancel();
}

#[tokio::test]
async fn without_a_configuration_it_ends_with_one_line() {
    let (folder, stop) = (tempfile::tempdir().unwrap(), CancellationToken::new());
    let cluster = cluster(folder.path(), &stop).await;
    let broken = folder.path().join("broken.json");
    std::fs::write(&broken, "{").unwrap();
    let broken = broken.display().to_string();
    for (path, words) in
        [("/nowhere/azure.json", "cannot read /nowhere/azure.json"), (&broken, broken.as_str())]
    {
        let output = command(&cluster, "single").arg(format!("--cloud-config={path}")).output();
        let output = tokio::time::timeout(PATIENCE, output).await.expect("an end").unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.lines().last().unwrap().contains(words), "{text}");
    }
    stop.cancel();
}
