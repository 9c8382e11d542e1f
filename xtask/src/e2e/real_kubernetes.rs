//! A real Kubernetes API: etcd and kube-apiserver on loopback, for one run.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::Instant;

use crate::program::Program;

/// The token of the run's administrator; it opens nothing but this run's own server on loopback.
const TOKEN: &str = "end-to-end-administrator";

/// Old servers do not know `discovery.k8s.io/v1`; as a custom resource it is served as clients expect.
const ENDPOINT_SLICES: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: endpointslices.discovery.k8s.io
  annotations:
    api-approved.kubernetes.io: https://kubernetes.io/docs/reference/
spec:
  group: discovery.k8s.io
  names: { kind: EndpointSlice, listKind: EndpointSliceList, plural: endpointslices, singular: endpointslice }
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true }
";

/// Running servers; they are killed when this value goes.
pub struct RealKubernetes {
    /// How to reach them.
    pub kubeconfig: PathBuf,
    /// The client that applies manifests.
    pub kubectl: PathBuf,
    _etcd: Program,
    _api: Program,
}

impl RealKubernetes {
    /// Starts etcd and kube-apiserver from `assets` and waits until the API is ready.
    pub async fn start(assets: &Path, directory: &Path) -> anyhow::Result<Self> {
        for name in ["etcd", "kube-apiserver", "kubectl"] {
            if !assets.join(name).exists() {
                bail!("KUBEBUILDER_ASSETS={}: there is no {name} in it", assets.display());
            }
        }
        let files = directory.join("kubernetes");
        std::fs::create_dir_all(&files)?;
        let (client_port, peer_port, port) = (free_port()?, free_port()?, free_port()?);
        let store = format!("http://127.0.0.1:{client_port}");
        let peers = format!("http://127.0.0.1:{peer_port}");
        let etcd = Program::start(
            "etcd",
            directory,
            Command::new(assets.join("etcd"))
                .arg("--data-dir")
                .arg(files.join("etcd"))
                .args(["--listen-client-urls", &store, "--advertise-client-urls", &store])
                .args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers])
                .args(["--initial-cluster", &format!("default={peers}")]),
        )?;

        let key = files.join("service-accounts.pem");
        let made = Command::new("openssl").args(["genrsa", "-out"]).arg(&key).arg("2048").output();
        if !made.is_ok_and(|output| output.status.success()) {
            bail!("cannot make the key for service accounts: is openssl installed?");
        }
        let tokens = files.join("tokens.csv");
        std::fs::write(&tokens, format!("{TOKEN},administrator,administrator,system:masters\n"))?;
        let mut api = Program::start(
            "kube-apiserver",
            directory,
            Command::new(assets.join("kube-apiserver"))
                .args(["--etcd-servers", &store, "--bind-address", "127.0.0.1"])
                .args(["--secure-port", &port.to_string(), "--service-cluster-ip-range", "10.0.0.0/16"])
                .arg("--cert-dir")
                .arg(files.join("certificates"))
                .arg("--service-account-key-file")
                .arg(&key)
                .arg("--service-account-signing-key-file")
                .arg(&key)
                .args(["--service-account-issuer", "https://kubernetes.default.svc"])
                .arg("--token-auth-file")
                .arg(&tokens)
                .args(["--authorization-mode", "RBAC", "--disable-admission-plugins", "ServiceAccount"])
                .args(["--runtime-config", "discovery.k8s.io/v1beta1=false"]),
        )?;
        let kubeconfig = directory.join("administrator.kubeconfig");
        let kubectl = assets.join("kubectl");
        let servers = |kubeconfig: &Path| -> Command {
            let mut command = Command::new(&kubectl);
            command.arg("--kubeconfig").arg(kubeconfig);
            command
        };
        let deadline = Instant::now() + Duration::from_secs(90);
        let authority = files.join("certificates/apiserver.crt");
        loop {
            api.must_run()?;
            if authority.exists() && !kubeconfig.exists() {
                std::fs::write(&kubeconfig, kubeconfig_for(port, &authority))?;
            }
            let ready = servers(&kubeconfig).args(["get", "--raw", "/readyz"]).output()?;
            if ready.status.success() {
                break;
            }
            if Instant::now() > deadline {
                bail!("kube-apiserver is not ready after 90 s:\n{}", api.last_words());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let this = Self { kubeconfig, kubectl, _etcd: etcd, _api: api };
        this.serve_endpoint_slices(directory)?;
        Ok(this)
    }

    /// kubectl with the run's kubeconfig.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        command
    }

    /// Makes an old server serve EndpointSlices of version v1; newer ones do so by themselves.
    fn serve_endpoint_slices(&self, directory: &Path) -> anyhow::Result<()> {
        let served = self.kubectl().args(["get", "--raw", "/apis/discovery.k8s.io/v1"]).output()?;
        if served.status.success() {
            return Ok(());
        }
        let file = directory.join("endpointslices.yaml");
        std::fs::write(&file, ENDPOINT_SLICES)?;
        let applied = self.kubectl().arg("apply").arg("-f").arg(&file).output()?;
        if !applied.status.success() {
            bail!("cannot serve EndpointSlices: {}", String::from_utf8_lossy(&applied.stderr));
        }
        Ok(())
    }
}

fn kubeconfig_for(port: u16, authority: &Path) -> String {
    let authority = authority.display();
    format!(
        "apiVersion: v1
kind: Config
current-context: run
clusters: [{{ name: run, cluster: {{ server: 'https://127.0.0.1:{port}', certificate-authority: '{authority}' }} }}]
users: [{{ name: administrator, user: {{ token: {TOKEN} }} }}]
contexts: [{{ name: run, context: {{ cluster: run, user: administrator }} }}]
"
    )
}

/// A port that nobody uses at the moment.
fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0").context("no free port")?.local_addr()?.port())
}
