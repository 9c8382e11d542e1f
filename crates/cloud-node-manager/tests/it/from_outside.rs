//! The program as a chart runs it on a machine: against a simulated Kubernetes over TLS, and the instance metadata of a
//! simulated Azure.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use azure_simulator::imds::MetadataService;
use azure_simulator::serve::{Server, serve};
use azure_simulator::{Azure, Options};
use clock::Clock;
use serde_json::{Value, json};
use simulated_cluster::{HostedKubernetes, HostedKubernetesOptions, NodePool, Shape};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// The timeout for anything on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

struct World {
    azure: Azure,
    metadata: Server,
    kubernetes: HostedKubernetes,
    folder: tempfile::TempDir,
    stop: CancellationToken,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    /// A scale set of two machines, and no node.
    async fn start() -> Self {
        arm::install_crypto_provider();
        let stop = CancellationToken::new();
        let azure = Azure::new(Options::default());
        let pools = vec![NodePool::new("workers", "worker", 2)];
        Shape { pools, dual_stack: true, ..Shape::default() }.lay_out(&azure).unwrap();
        let router = MetadataService::new(azure.clone()).router();
        let metadata = serve("127.0.0.1:0".parse().unwrap(), router, None, stop.clone()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let options = HostedKubernetesOptions {
            seed: 1,
            directory: folder.path().to_owned(),
            port: 0,
            dual_stack: true,
            token: None,
            now: Clock::system().now(),
            ..HostedKubernetesOptions::default()
        };
        let kubernetes = HostedKubernetes::start(options, &stop).await.unwrap();
        Self { azure, metadata, kubernetes, folder, stop }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.kubernetes.kubeconfig.clone()
    }

    /// A node as its kubelet registers it.
    fn register(&self, name: &str) {
        let taint = json!({"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": [taint]}});
        self.kubernetes.kubernetes.create(node).unwrap();
    }

    fn command(&self, node: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_azure-cloud-node-manager"));
        let endpoint = format!("{}/instances/workers_1", self.metadata.url());
        command
            .args([&format!("--node-name={node}"), &format!("--instance-metadata-endpoint={endpoint}")])
            .args([&format!("--kubeconfig={}", self.kubeconfig().display()), "--v=2"])
            .args(arguments)
            .env_clear()
            .env("NODE_NAME", "worker000001")
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// The node, once it is as expected.
    async fn node(&self, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let found = self.kubernetes.kubernetes.until("Node", |nodes| {
            let node = nodes.iter().find(|node| node.name() == name)?.value().clone();
            fits(&node).then_some(node)
        });
        tokio::time::timeout(PATIENCE, found).await.expect("the node to become so").unwrap()
    }
}

fn is_initialised(node: &Value) -> bool {
    !node["spec"]["taints"].to_string().contains(UNINITIALIZED)
}

async fn terminate(mut program: Child) -> Option<i32> {
    let id = program.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
    tokio::time::timeout(PATIENCE, program.wait()).await.expect("an end").unwrap().code()
}

/// NODE-115, NODE-116, NODE-119
#[tokio::test]
async fn a_machine_of_a_scale_set_initialises_its_node() {
    for (arguments, labels) in [
        (&["--wait-routes=false"][..], 3),
        (&["--wait-routes=true", "--enable-deprecated-beta-topology-labels"], 6),
    ] {
        let world = World::start().await;
        let program = world.command("Worker000001", arguments).spawn().unwrap();
        world.register("worker000001");
        let node = world.node("worker000001", is_initialised).await;
        let id = "azure:///subscriptions/5ca1ab1e-0000-4000-8000-000000000001/resourceGroups/cluster/providers/\
                  Microsoft.Compute/virtualMachineScaleSets/workers/virtualMachines/1";
        assert_eq!(node["spec"]["providerID"], id);
        let set = node["metadata"]["labels"].as_object().unwrap();
        let label = |key: &str| set.get(key).and_then(Value::as_str).unwrap_or_default();
        assert_eq!(label("node.kubernetes.io/instance-type"), "Standard_D2s_v5");
        assert_eq!(label("topology.kubernetes.io/region"), "westeurope");
        assert_eq!(label("topology.kubernetes.io/zone"), "westeurope-2");
        assert_eq!(set.len(), labels, "{set:?}");
        let addresses = node["status"]["addresses"].as_array().unwrap();
        let kinds: Vec<_> = addresses.iter().map(|one| one["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["Hostname", "InternalIP", "InternalIP"], "{addresses:?}");
        assert_eq!(addresses[0]["address"], "worker000001");
        let said = node["status"]["conditions"].to_string().contains("Waiting for cloud routes");
        assert_eq!(said, arguments.len() == 2);
        assert_eq!(terminate(program).await, Some(0));
        assert!(!world.azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets").is_empty());
    }
}

/// The arguments of the chart's DaemonSets with all of their values set, on Linux and, through its wrapper, on Windows.
#[tokio::test]
async fn the_charts_arguments_start_it() {
    const LINUX: [&str; 10] = [
        "--cloud-config=/etc/kubernetes/azure.json",
        "--kube-api-burst=30",
        "--kube-api-content-type=",
        "--kube-api-qps=20.0",
        "--master=",
        "--min-resync-period=12h0m0s",
        "--node-status-update-frequency=5m0s",
        "--use-instance-metadata=true",
        "--wait-routes=false",
        "--v=2",
    ];
    const WINDOWS: [&str; 9] = [
        "--use-instance-metadata=true",
        "--v=2",
        "--cloud-config=C:\\k\\azure.json",
        "--kube-api-burst=30",
        "--kube-api-content-type=application/vnd.kubernetes.protobuf",
        "--kube-api-qps=20",
        "--min-resync-period=0s",
        "--node-status-update-frequency=5m",
        "--wait-routes=true",
    ];
    for arguments in [&LINUX[..], &WINDOWS] {
        let world = World::start().await;
        let program = world.command("worker000001", arguments).spawn().unwrap();
        world.register("worker000001");
        world.node("worker000001", is_initialised).await;
        assert_eq!(terminate(program).await, Some(0), "{arguments:?}");
    }
}

/// NODE-008, NODE-118: a metadata service that is unreachable, then refuses, then answers.
#[tokio::test]
async fn a_node_is_initialised_once_instance_metadata_answers() {
    let world = World::start().await;
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let endpoint = format!("--instance-metadata-endpoint=http://{address}/instances/workers_1");
    let mut program = world.command("worker000001", &[&endpoint]).spawn().unwrap();
    world.register("worker000001");
    let mut lines = tokio::io::BufReader::new(program.stderr.take().unwrap());
    let mut say = async |words: &str| {
        let mut line = String::new();
        while tokio::io::AsyncBufReadExt::read_line(&mut lines, &mut line).await.unwrap() > 0 {
            if line.contains(words) {
                return std::mem::take(&mut line);
            }
            line.clear();
        }
        panic!("it ended without saying {words}");
    };
    let away =
        tokio::time::timeout(PATIENCE, say("no answer from the instance metadata service")).await.unwrap();
    assert!(away.contains(&address.to_string()), "{away}");
    // It answers, but with an error.
    let busy = axum::Router::new().fallback(async || axum::http::StatusCode::SERVICE_UNAVAILABLE);
    let first = CancellationToken::new();
    serve(address, busy, None, first.clone()).await.unwrap();
    tokio::time::timeout(PATIENCE, say("503 Service Unavailable")).await.unwrap();
    let node = world.node("worker000001", |_| true).await;
    assert!(!is_initialised(&node), "nothing is guessed: {node}");
    first.cancel();
    let router = MetadataService::new(world.azure.clone()).router();
    let again = async {
        // The previous listener needs a moment to release its address.
        while serve(address, router.clone(), None, world.stop.clone()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("the address is free again");
    world.node("worker000001", is_initialised).await;
    assert_eq!(terminate(program).await, Some(0));
}

/// NODE-007
#[tokio::test]
async fn node_007_another_node_than_this_machine_is_left_alone() {
    let world = World::start().await;
    let mut program = world.command("worker000000", &[]).spawn().unwrap();
    world.register("worker000000");
    let mut lines = tokio::io::BufReader::new(program.stderr.take().unwrap());
    let told = async {
        let mut line = String::new();
        while tokio::io::AsyncBufReadExt::read_line(&mut lines, &mut line).await.unwrap() > 0 {
            if line.contains("no credentials provided for Azure cloud provider") {
                return std::mem::take(&mut line);
            }
            line.clear();
        }
        panic!("it ended without a word");
    };
    let line = tokio::time::timeout(PATIENCE, told).await.expect("a word");
    assert!(line.contains("worker000001") && line.contains("--node-name"), "{line}");
    let node = world.node("worker000000", |_| true).await;
    assert!(!is_initialised(&node) && node["metadata"]["labels"].is_null(), "{node}");
    assert_eq!(terminate(program).await, Some(0));
}

#[tokio::test]
async fn what_cannot_be_done_ends_with_one_line() {
    let world = World::start().await;
    for (arguments, words) in [
        (&["--use-instance-metadata=false"][..], "give --cloud-config, too"),
        (&["--nonsense=1"], "unknown flag: --nonsense: --help lists those that there are"),
        (&["--kubeconfig=/nowhere"], "--kubeconfig: cannot read /nowhere"),
    ] {
        let output = world.command("worker000001", arguments).output();
        let output = tokio::time::timeout(PATIENCE, output).await.expect("an end").unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.lines().last().unwrap().contains(words), "{text}");
    }
}
