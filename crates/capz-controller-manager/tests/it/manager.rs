//! The program as a process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use certificate_authority::CertificateAuthority;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

const PROGRAM: &str = env!("CARGO_BIN_EXE_capz-controller-manager");

/// The names that the API server may use.
const NAMES: [&str; 2] = ["capz-webhook-service.capz-system.svc", "127.0.0.1"];

/// A running manager; it is killed when this value is dropped.
pub struct Manager {
    child: Child,
    pub webhooks: u16,
    health: u16,
    diagnostics: u16,
    log: PathBuf,
}

pub async fn free_port() -> u16 {
    let [port] = free_ports().await;
    port
}

/// Ports without a listener, all different.
async fn free_ports<const N: usize>() -> [u16; N] {
    let mut held = Vec::new();
    for _ in 0..N {
        held.push(TcpListener::bind("127.0.0.1:0").await.unwrap());
    }
    std::array::from_fn(|index| held[index].local_addr().unwrap().port())
}

/// Writes a certificate of the authority into a folder, in the form of a mounted Secret.
pub fn write_certificate(authority: &CertificateAuthority, folder: &Path) {
    let issued = authority.issue(&NAMES).unwrap();
    std::fs::write(folder.join("tls.crt"), issued.certificate_pem).unwrap();
    std::fs::write(folder.join("tls.key"), issued.key_pem).unwrap();
}

impl Manager {
    /// Starts one, and waits until it is ready.
    pub async fn start(kubeconfig: &Path, certificates: &Path, more: &[&str]) -> Self {
        Self::start_with(kubeconfig, certificates, more, &[]).await
    }

    /// The same with environment variables.
    pub async fn start_with(
        kubeconfig: &Path,
        certificates: &Path,
        more: &[&str],
        variables: &[(&str, String)],
    ) -> Self {
        let [webhooks, health, diagnostics] = free_ports().await;
        let log = certificates.join("manager.log");
        let child = Command::new(PROGRAM)
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--webhook-cert-dir={}", certificates.display()))
            .arg(format!("--webhook-port={webhooks}"))
            .arg(format!("--health-addr=127.0.0.1:{health}"))
            .arg(format!("--diagnostics-address=127.0.0.1:{diagnostics}"))
            .args(["--insecure-diagnostics", "--leader-elect", "--leader-election-namespace=capz-system"])
            .args(more)
            .env_clear()
            .env("AZURE_SUBSCRIPTION_ID", "of-the-environment\n")
            .envs(variables.iter().map(|(name, value)| (*name, value)))
            .kill_on_drop(true)
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut this = Self { child, webhooks, health, diagnostics, log };
        let ready = async {
            while this
                .get(this.health, "/readyz/webhook")
                .await
                .is_none_or(|answer| !answer.contains(" 200 "))
            {
                assert!(this.child.try_wait().unwrap().is_none(), "the manager has ended: {}", this.log());
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(Duration::from_secs(90), ready).await.unwrap();
        this
    }

    async fn get(&self, port: u16, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        Some(answer)
    }

    /// The log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// The answer of `/healthz`.
    pub async fn health(&self) -> String {
        self.get(self.health, "/healthz?verbose").await.unwrap()
    }

    /// The metrics for Prometheus.
    pub async fn metrics(&self) -> String {
        self.get(self.diagnostics, "/metrics").await.unwrap()
    }

    /// Stops it like a kubelet, and returns its exit code.
    pub async fn stop(mut self) -> Option<i32> {
        let id = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
        timeout(Duration::from_secs(60), self.child.wait()).await.unwrap().unwrap().code()
    }
}

/// Runs the program to its end, and returns exit code and output.
pub async fn run(arguments: &[&str]) -> (Option<i32>, String) {
    run_with(arguments, &[]).await
}

/// The same with environment variables.
pub async fn run_with(arguments: &[&str], variables: &[(&str, String)]) -> (Option<i32>, String) {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env_clear().kill_on_drop(true);
    command.envs(variables.iter().map(|(name, value)| (*name, value)));
    let output = timeout(Duration::from_secs(90), command.output()).await.unwrap().unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[tokio::test]
async fn what_cannot_be_ends_the_program_with_a_line_for_each() {
    let (code, text) =
        run(&["--disable-controllers-or-webhooks=Nonsense", "--feature-gates=AKS=false"]).await;
    assert_eq!(code, Some(1), "{text}");
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.contains("\"Nonsense\" is not one of DisableASOSecretController"), "{text}");
    assert!(text.contains("AKS cannot be turned off"), "{text}");
}

#[tokio::test]
async fn an_init_container_of_the_established_manifest_goes_on() {
    let (code, text) = run(&["migrate-aso-crds"]).await;
    assert_eq!(code, Some(0));
    assert!(text.contains("nothing to migrate"), "{text}");
}
