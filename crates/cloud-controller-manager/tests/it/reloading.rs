//! A configuration that changes while the program runs: the built program, its files and its Secret.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use azure_simulator::Options;
use azure_simulator::entra::{
    Application, AuthFailure, Entra, Principal, RegisteredCertificate, TokenVerifier,
};
use clock::Clock;
use jiff::Timestamp;
use k8s::api::api::coordination::v1::Lease;
use k8s::api::api::core::v1::Service;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use simulated_cluster::{HostedCluster, HostedOptions, Shape};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::from_outside::{hosted, keep_in_secret};

/// A client's certificate with its key.
const CERTIFICATE: &str = include_str!("../../../arm/tests/data/client.pem");

/// The timeout of a step on a busy machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(90);

/// Rejects tokens that were issued before a moment, as Entra does once it has revoked a principal's sessions.
struct Revocation {
    entra: Entra,
    at: Timestamp,
}

impl Revocation {
    fn judge(&self, principal: Principal) -> Result<Principal, AuthFailure> {
        if principal.not_before < self.at { Err(AuthFailure::Invalid) } else { Ok(principal) }
    }
}

impl TokenVerifier for Revocation {
    fn verify(&self, bearer: &str, now: Timestamp) -> Result<Principal, AuthFailure> {
        self.entra.verify(bearer, now).and_then(|principal| self.judge(principal))
    }

    fn verify_for(
        &self,
        bearer: &str,
        now: Timestamp,
        accepts: &dyn Fn(&str) -> bool,
    ) -> Result<Principal, AuthFailure> {
        self.entra.verify_for(bearer, now, accepts).and_then(|principal| self.judge(principal))
    }
}

/// A running program and its log.
struct Program {
    process: Child,
    log: PathBuf,
}

impl Program {
    fn start(cluster: &HostedCluster, folder: &Path, authorities: &Path, arguments: &[&str]) -> Self {
        let log = tempfile::Builder::new().prefix("log").tempfile_in(folder).unwrap();
        let (log, path) = log.keep().unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_azure-cloud-controller-manager"))
            .arg(format!("--kubeconfig={}", cluster.files.kubeconfig.display()))
            .args(["--secure-port=0", "--cluster-name=here", "--v=2"])
            .args(arguments)
            .env_clear()
            .env("SSL_CERT_FILE", authorities)
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { process, log: path }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    async fn logs(&mut self, text: &str) {
        let until = Instant::now() + STEP_TIMEOUT;
        while !self.log().contains(text) {
            assert!(Instant::now() < until, "waiting for: {text}\n{}", self.log());
            sleep(Duration::from_millis(50)).await;
        }
        assert!(self.process.try_wait().unwrap().is_none(), "it runs on: {}", self.log());
    }
}

async fn wait_for(what: &str, holds: impl AsyncFn() -> bool) {
    let until = Instant::now() + STEP_TIMEOUT;
    while !holds().await {
        assert!(Instant::now() < until, "waiting for: {what}");
        sleep(Duration::from_millis(50)).await;
    }
}

fn services(cluster: &HostedCluster) -> Api<Service> {
    Api::namespaced(cluster.client.clone(), "default")
}

async fn create(cluster: &HostedCluster, name: &str) {
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": 80}]},
    });
    let service: Service = serde_json::from_value(service).unwrap();
    services(cluster).create(&PostParams::default(), &service).await.unwrap();
}

async fn has_address(cluster: &HostedCluster, name: &str) -> bool {
    let status = services(cluster).get(name).await.unwrap().status;
    status.and_then(|status| status.load_balancer?.ingress).is_some_and(|ingress| !ingress.is_empty())
}

fn document(cluster: &HostedCluster) -> Value {
    serde_json::from_str(&std::fs::read_to_string(&cluster.files.azure_json).unwrap()).unwrap()
}

/// Whether something in Azure has the tag of the changed file.
fn is_tagged(cluster: &HostedCluster) -> bool {
    cluster.azure.save().unwrap().to_string().contains("\"team\":\"blue\"")
}

/// NODE-138: a secret in a Secret over a file without one. While Services come, the secret is replaced and everything
/// that was issued for the old one is revoked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_138_a_rotated_secret_loses_no_service() {
    let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    let cluster = hosted(folder.path(), &stop).await;
    let mut file = document(&cluster);
    let secret = file.as_object_mut().unwrap().remove("aadClientSecret").unwrap();
    let path = folder.path().join("without-secret.json");
    std::fs::write(&path, file.to_string()).unwrap();
    keep_in_secret(&cluster, "rotated", &json!({"aadClientSecret": secret}).to_string()).await;
    let arguments = [
        &*format!("--cloud-config={}", path.display()),
        "--cloud-config-secret-name=rotated",
        "--enable-dynamic-reloading=true",
    ];
    let authorities = &cluster.files.certificate_authority;
    let mut program = Program::start(&cluster, folder.path(), authorities, &arguments);
    program.logs("became leader").await;
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "kube-system");
    let holder = async || leases.get("cloud-controller-manager").await.unwrap().spec.unwrap().holder_identity;
    let first_holder = holder().await;

    let names: Vec<String> = (0..24).map(|number| format!("s{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        if number == 8 {
            // Nothing that was issued before is accepted, and the old secret proves nothing any more.
            wait_for("an address", async || has_address(&cluster, "s0").await).await;
            let shape = Shape::default();
            let renewed = Application::new(&shape.client_id, &shape.object_id).with_secret("renewed");
            cluster.entra.register(renewed);
            let at = cluster.azure.now();
            cluster.azure.set_verifier(Arc::new(Revocation { entra: cluster.entra.clone(), at }));
        }
        if number == 16 {
            // At least one Service meets the revoked credential.
            program.logs("AADSTS7000215").await;
            keep_in_secret(&cluster, "rotated", &json!({"aadClientSecret": "renewed"}).to_string()).await;
        }
        create(&cluster, name).await;
    }
    program.logs("takes effect").await;
    for name in &names {
        wait_for(name, async || has_address(&cluster, name).await).await;
    }
    assert_eq!(holder().await, first_holder, "the same process leads");
    let log = program.log();
    assert!(!log.contains("renewed") && !log.contains(secret.as_str().unwrap()), "{log}");
    stop.cancel();
}

/// NODE-290.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_290_a_changed_file_takes_effect_unless_it_leads_to_other_resources() {
    let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    let cluster = hosted(folder.path(), &stop).await;
    let path = folder.path().join("changing.json");
    let good = document(&cluster);
    let write = |changes: Value| {
        let mut document = good.clone();
        document.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        // As editors and kubelets replace a file.
        let next = folder.path().join("next.json");
        std::fs::write(&next, document.to_string()).unwrap();
        std::fs::rename(next, &path).unwrap();
    };
    write(json!({}));
    let file = format!("--cloud-config={}", path.display());
    let arguments = [file.as_str(), "--enable-dynamic-reloading"];
    let authorities = &cluster.files.certificate_authority;
    let mut program = Program::start(&cluster, folder.path(), authorities, &arguments);
    create(&cluster, "first").await;
    wait_for("an address", async || has_address(&cluster, "first").await).await;
    assert!(!is_tagged(&cluster));

    write(json!({"tags": "team=blue"}));
    program.logs("generation=2").await;
    wait_for("the new tag", async || is_tagged(&cluster)).await;

    write(json!({"tags": "team=blue", "resourceGroup": "elsewhere", "aadClientSecret": 7}));
    program.logs("resourceGroup=elsewhere: a running program does not move to other resources").await;
    write(json!({"tags": "team=blue", "vmType": "mainframe", "loadBalancerSku": "premium"}));
    program.logs("loadBalancerSku=premium").await;
    write(json!({"tags": "team=blue", "unknown": true}));
    program.logs("has changed, but not in effect").await;
    program.logs("again the one in force").await;
    // A wrong secret is noticed before the controllers are touched, which go on with the right one.
    write(json!({"tags": "team=blue", "aadClientSecret": "wrong"}));
    program.logs("AADSTS7000215").await;
    create(&cluster, "second").await;
    wait_for("an address", async || has_address(&cluster, "second").await).await;

    write(json!({"tags": "team=blue", "disableCloudProvider": true}));
    program.logs("no controller runs").await;
    create(&cluster, "third").await;
    write(json!({"tags": "team=red"}));
    program.logs("generation=4").await;
    wait_for("an address", async || has_address(&cluster, "third").await).await;
    let log = program.log();
    assert_eq!(log.matches("became leader").count(), 1, "{log}");
    assert!(!log.contains("generation=5"), "{log}");
    stop.cancel();
}

/// NODE-290: a standby follows the configuration as well, and leads with the one in force.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_290_a_standby_takes_over_with_the_changed_configuration() {
    let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    let cluster = hosted(folder.path(), &stop).await;
    let path = folder.path().join("shared.json");
    let mut document = document(&cluster);
    std::fs::write(&path, document.to_string()).unwrap();
    let file = format!("--cloud-config={}", path.display());
    let arguments = [
        file.as_str(),
        "--enable-dynamic-reloading",
        "--leader-elect-lease-duration=4s",
        "--leader-elect-renew-deadline=3s",
        "--leader-elect-retry-period=1s",
    ];
    let authorities = &cluster.files.certificate_authority;
    let mut leader = Program::start(&cluster, folder.path(), authorities, &arguments);
    leader.logs("became leader").await;
    let mut standby = Program::start(&cluster, folder.path(), authorities, &arguments);
    standby.logs("waiting to become leader").await;

    document["tags"] = "team=blue".into();
    std::fs::write(&path, document.to_string()).unwrap();
    leader.logs("generation=2").await;
    standby.logs("generation=2").await;
    leader.process.kill().await.unwrap();
    standby.logs("became leader").await;
    create(&cluster, "web").await;
    wait_for("an address", async || has_address(&cluster, "web").await).await;
    assert!(is_tagged(&cluster));
    stop.cancel();
}

/// NODE-290: a client certificate is renewed without any flag.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_290_a_renewed_client_certificate_takes_effect() {
    let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    // Assertions are valid for minutes of the machine's clock.
    let azure = Options { seed: 7, start: Clock::system().now(), ..Options::default() };
    let options = HostedOptions::of(Shape::default(), azure, folder.path());
    let cluster = HostedCluster::start(options, &stop).await.unwrap();
    let shape = Shape::default();
    let registered = RegisteredCertificate::from_pem(CERTIFICATE).unwrap();
    let application = Application::new(&shape.client_id, &shape.object_id).with_certificate(registered);
    cluster.entra.register(application);
    let (certificate, file) = (folder.path().join("client.pem"), folder.path().join("certified.json"));
    std::fs::write(&certificate, CERTIFICATE).unwrap();
    let mut document = document(&cluster);
    document.as_object_mut().unwrap().remove("aadClientSecret");
    document["aadClientCertPath"] = certificate.to_str().unwrap().into();
    std::fs::write(&file, document.to_string()).unwrap();
    let arguments = [&*format!("--cloud-config={}", file.display())];
    let authorities = &cluster.files.certificate_authority;
    let mut program = Program::start(&cluster, folder.path(), authorities, &arguments);
    program.logs("became leader").await;
    std::fs::write(&certificate, "half a certificate").unwrap();
    program.logs("cannot be used as it is now").await;
    create(&cluster, "web").await;
    wait_for("an address", async || has_address(&cluster, "web").await).await;
    std::fs::write(&certificate, format!("{CERTIFICATE}\n")).unwrap();
    program.logs("generation=2").await;
    create(&cluster, "more").await;
    wait_for("an address", async || has_address(&cluster, "more").await).await;
    stop.cancel();
}
