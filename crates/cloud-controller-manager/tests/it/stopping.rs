//! SIGTERM before any controller runs, while the servers accept connections and do not answer.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use azure_simulator::{Fault, FaultAction, Options};
use cloud_controller_manager::environment::ProcessEnvironment;
use cloud_controller_manager::{flags, run};
use k8s::api::api::coordination::v1::Lease;
use kube::Api;
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use simulated_cluster::{HostedCluster, HostedOptions, Shape};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The program's guarantee.
const MAX_STOP: Duration = Duration::from_secs(20);

/// The timeout of anything else on a busy machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

async fn hosted(directory: &Path, stop: &CancellationToken) -> HostedCluster {
    let start = jiff::Timestamp::from_second(1_760_000_000).unwrap();
    let azure = Options { seed: 7, start, ..Options::default() };
    let options = HostedOptions::of(Shape::default(), azure, directory);
    HostedCluster::start(options, stop).await.unwrap()
}

/// Accepts every connection, reads it, and never answers. The channel gets a message for each connection with a
/// request.
async fn silent() -> (SocketAddr, mpsc::UnboundedReceiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, asks) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let asked = asked.clone();
            tokio::spawn(async move {
                let _first = stream.read_u8().await;
                let _test_has_ended = asked.send(());
                let _rest = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
            });
        }
    });
    (address, asks)
}

/// The cluster's azure.json with a patch, in a file next to it.
fn patched(cluster: &HostedCluster, patch: &Value) -> String {
    let text = std::fs::read_to_string(&cluster.files.azure_json).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    let members = document.as_object_mut().unwrap();
    members.extend(patch.as_object().unwrap().clone());
    let path = cluster.files.azure_json.with_file_name("patched.json");
    std::fs::write(&path, document.to_string()).unwrap();
    path.display().to_string()
}

fn arguments(cluster: &HostedCluster, cloud_config: &str) -> Vec<String> {
    vec![
        format!("--cloud-config={cloud_config}"),
        format!("--kubeconfig={}", cluster.files.kubeconfig.display()),
        "--secure-port=0".to_owned(),
    ]
}

fn start(cluster: &HostedCluster, cloud_config: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_azure-cloud-controller-manager"))
        .args(arguments(cluster, cloud_config))
        .env_clear()
        .env("SSL_CERT_FILE", &cluster.files.certificate_authority)
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

async fn terminate(program: &mut Child) -> ExitStatus {
    // The standard library can only kill.
    let id = program.id().unwrap().to_string();
    let sent = Command::new("kill").args(["-TERM", &id]).status().await.unwrap();
    assert!(sent.success());
    timeout(MAX_STOP, program.wait()).await.expect("it ends in time").unwrap()
}

#[tokio::test]
async fn a_stop_ends_the_wait_for_the_description_of_the_cloud() {
    let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    let cluster = hosted(folder.path(), &stop).await;
    let (azure, mut asks) = silent().await;
    let config = patched(&cluster, &json!({"resourceManagerEndpoint": format!("https://{azure}")}));
    let mut program = start(&cluster, &config);
    timeout(STEP_TIMEOUT, asks.recv()).await.unwrap();
    assert!(terminate(&mut program).await.success());
    stop.cancel();
}

#[tokio::test]
async fn a_stop_ends_the_wait_for_a_token_of_the_metadata_service() {
    let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    let cluster = hosted(folder.path(), &stop).await;
    let (metadata, mut asks) = silent().await;
    let config =
        patched(&cluster, &json!({"useManagedIdentityExtension": true, "useInstanceMetadata": true}));
    let line = [vec!["program".to_owned()], arguments(&cluster, &config)].concat();
    let line = flags::parse(line.into_iter().map(Into::into)).unwrap();
    // The address of the metadata service belongs to the machine: here it is redirected.
    let mut environment = ProcessEnvironment::with_variables(|_| None);
    environment.extra_roots = vec![std::fs::read_to_string(&cluster.files.certificate_authority).unwrap()];
    environment.redirects = vec![("169.254.169.254".to_owned(), format!("http://{metadata}"))];
    let sigterm = CancellationToken::new();
    let program = tokio::spawn(run::run(line, environment, sigterm.clone()));
    timeout(STEP_TIMEOUT, asks.recv()).await.unwrap();
    sigterm.cancel();
    let ended = timeout(MAX_STOP, program).await.expect("it ends in time");
    assert_eq!(ended.unwrap().unwrap(), None);
    stop.cancel();
}

#[tokio::test]
async fn a_leader_that_waits_for_azure_gives_its_lease_away_when_it_is_stopped() {
    let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    let cluster = hosted(folder.path(), &stop).await;
    cluster.azure.inject(Fault::new(FaultAction::Delay { ms: 100_000_000 }));
    let mut program = start(&cluster, &cluster.files.azure_json.display().to_string());
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "kube-system");
    let name = "cloud-controller-manager";
    let leads = |lease: Option<&Lease>| !holder(lease).is_empty();
    timeout(STEP_TIMEOUT, await_condition(leases.clone(), name, leads)).await.unwrap().unwrap();
    assert!(terminate(&mut program).await.success());
    assert_eq!(holder(Some(&leases.get(name).await.unwrap())), "");
    stop.cancel();
}

fn holder(lease: Option<&Lease>) -> &str {
    let spec = lease.and_then(|lease| lease.spec.as_ref());
    spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}
