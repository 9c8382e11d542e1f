//! etcd, kube-apiserver and, for clusters with nodes, the controllers and the scheduler.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::time::{Instant, sleep};

use crate::error::{StartError, failed};
use crate::kubeconfig;
use crate::program::Program;

/// The token of the administrator. It is valid only for this value's server on this machine.
const TOKEN: &str = "administrator-of-a-test";

/// The time limit for the API server to be ready.
const READY_TIMEOUT: Duration = Duration::from_secs(90);

/// The polling interval of conditions.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The API server's certificate, in the server's directory; its key is in the same folder.
const CERTIFICATE: &str = "certificates/apiserver.crt";

/// The time after which a node with a silent kubelet is not ready: kubelets here report each second.
const NODE_GRACE: &str = "6s";

/// Running servers, which are killed when this value is dropped.
#[derive(Debug)]
pub struct RealKubernetes {
    /// The kubeconfig of the administrator.
    pub kubeconfig: PathBuf,
    assets: PathBuf,
    directory: PathBuf,
    address: SocketAddr,
    /// The programs in the order in which they are stopped: each before those that it needs.
    programs: Vec<Program>,
}

impl RealKubernetes {
    /// Starts etcd and kube-apiserver from `assets` with their files in `directory`, and waits until the API is ready.
    ///
    /// # Errors
    /// A file, port or program is missing, or a program does not start: then with the end of its log.
    pub async fn start(assets: &Path, directory: &Path) -> Result<Self, StartError> {
        Self::start_with(assets, directory, &[]).await
    }

    /// Like [`Self::start`], with additional flags of kube-apiserver, each a name and a value.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_with(
        assets: &Path,
        directory: &Path,
        flags: &[(&str, &str)],
    ) -> Result<Self, StartError> {
        Self::start_at(Ipv4Addr::LOCALHOST, &[], flags, assets, directory).await
    }

    /// Like [`Self::start`], at another address of this machine, for kubelets of nodes with these names: each has the
    /// rights of its own node.
    pub(crate) async fn start_at(
        address: Ipv4Addr,
        nodes: &[&str],
        more: &[(&str, &str)],
        assets: &Path,
        directory: &Path,
    ) -> Result<Self, StartError> {
        for name in ["etcd", "kube-apiserver"] {
            if !assets.join(name).exists() {
                return Err(StartError::Missing { folder: assets.to_owned(), name });
            }
        }
        fs::create_dir_all(directory).map_err(failed(directory))?;
        let [client, peer, port] = free_ports()?;
        let (key, tokens) = (directory.join("accounts.key"), directory.join("tokens.csv"));
        let public_key = directory.join("accounts.pub");
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        fs::write(&key, pair.serialize_pem()).map_err(failed(&key))?;
        fs::write(&public_key, pair.public_key_pem()).map_err(failed(&public_key))?;
        let kubelets = nodes.iter().map(|node| {
            let token = kubelet_token(node);
            format!("{token},system:node:{node},{node},system:nodes\n")
        });
        let administrator = format!("{TOKEN},administrator,administrator,system:masters\n");
        let all: String = std::iter::once(administrator).chain(kubelets).collect();
        fs::write(&tokens, all).map_err(failed(&tokens))?;
        // The value exists before any program starts, so that a failure at any point stops all programs.
        let mut this = Self {
            kubeconfig: directory.join("administrator.kubeconfig"),
            assets: assets.to_owned(),
            directory: directory.to_owned(),
            address: SocketAddr::new(IpAddr::V4(address), port),
            programs: Vec::new(),
        };
        let store = format!("http://127.0.0.1:{client}");
        let peers = format!("http://127.0.0.1:{peer}");
        this.run(
            "etcd",
            &[
                ("--data-dir", "etcd"),
                ("--listen-client-urls", &store),
                ("--advertise-client-urls", &store),
                ("--listen-peer-urls", &peers),
                ("--initial-advertise-peer-urls", &peers),
                ("--initial-cluster", &format!("default={peers}")),
            ],
        )?;
        let (port, bound) = (port.to_string(), address.to_string());
        let own = [
            ("--etcd-servers", store.as_str()),
            ("--secure-port", &port),
            ("--bind-address", &bound),
            ("--cert-dir", "certificates"),
            ("--service-account-key-file", "accounts.pub"),
            ("--service-account-signing-key-file", "accounts.key"),
            ("--service-account-issuer", "https://kubernetes.default.svc"),
            ("--service-cluster-ip-range", "10.0.0.0/16"),
            ("--token-auth-file", "tokens.csv"),
            ("--authorization-mode", "Node,RBAC"),
            ("--enable-admission-plugins", "NodeRestriction"),
            // As installers set it.
            ("--allow-privileged", "true"),
            // Kubelets are reached at the addresses that a cloud provider writes to nodes.
            ("--kubelet-preferred-address-types", "InternalIP"),
        ];
        // Without the controllers that come with nodes no service account exists by itself, and no pod could be created.
        let without_controllers = [("--disable-admission-plugins", "ServiceAccount")];
        let of_pods = if nodes.is_empty() { &without_controllers[..] } else { &[] };
        this.run("kube-apiserver", &[&own, of_pods, more].concat())?;
        let authority = directory.join(CERTIFICATE);
        this.until("made no certificate", async || authority.exists()).await?;
        this.write_kubeconfig("administrator", TOKEN)?;
        for node in nodes {
            this.write_kubeconfig(node, &kubelet_token(node))?;
        }
        let client = this.client().await?;
        this.until("is not ready", async || {
            answers(&client, "/readyz").await && answers(&client, "/api/v1/namespaces/kube-node-lease").await
        })
        .await?;
        Ok(this)
    }

    /// Starts the controllers and the scheduler.
    pub(crate) fn start_controllers(&mut self) -> Result<(), StartError> {
        let kubeconfig = self.kubeconfig.display().to_string();
        let everywhere =
            [("--kubeconfig", kubeconfig.as_str()), ("--leader-elect", "false"), ("--secure-port", "0")];
        let of_controllers = [
            ("--service-account-private-key-file", "accounts.key"),
            ("--root-ca-file", CERTIFICATE),
            ("--node-monitor-period", "1s"),
            ("--node-monitor-grace-period", NODE_GRACE),
        ];
        self.run("kube-controller-manager", &[&everywhere[..], &of_controllers].concat())?;
        self.run("kube-scheduler", &everywhere)
    }

    /// Starts kube-controller-manager with only these controllers.
    ///
    /// # Errors
    /// The program is missing or does not start.
    pub fn start_some_controllers(&mut self, controllers: &[&str]) -> Result<(), StartError> {
        let name = "kube-controller-manager";
        if !self.assets.join(name).exists() {
            return Err(StartError::Missing { folder: self.assets.clone(), name });
        }
        let kubeconfig = self.kubeconfig.display().to_string();
        let controllers = controllers.join(",");
        self.run(
            name,
            &[
                ("--kubeconfig", &kubeconfig),
                ("--leader-elect", "false"),
                ("--secure-port", "0"),
                ("--controllers", &controllers),
            ],
        )
    }

    /// Returns a client of the server that does not retry.
    ///
    /// # Errors
    /// The kubeconfig is invalid.
    pub async fn client(&self) -> Result<Client, StartError> {
        let failed = |error: &dyn std::fmt::Display| StartError::Api(error.to_string());
        let file = Kubeconfig::read_from(&self.kubeconfig).map_err(|error| failed(&error))?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
            .await
            .map_err(|error| failed(&error))?;
        config.default_retry = false;
        Client::try_from(config).map_err(|error| failed(&error))
    }

    /// Writes a kubeconfig with this bearer token to a file of this name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_kubeconfig(&self, name: &str, token: &str) -> Result<PathBuf, StartError> {
        let path = self.directory.join(format!("{name}.kubeconfig"));
        let text = kubeconfig::text(self.address, &self.directory.join(CERTIFICATE), token);
        fs::write(&path, text).map_err(failed(&path))?;
        Ok(path)
    }

    /// The address of the API server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The folder with the programs.
    pub(crate) fn assets(&self) -> &Path {
        &self.assets
    }

    /// The kubeconfig of a node's kubelet.
    pub(crate) fn kubelet_kubeconfig(&self, node: &str) -> PathBuf {
        self.directory.join(format!("{node}.kubeconfig"))
    }

    fn run(&mut self, name: &'static str, flags: &[(&str, &str)]) -> Result<(), StartError> {
        let mut command = Command::new(self.assets.join(name));
        command.args(flags.iter().map(|(flag, value)| format!("{flag}={value}")));
        self.programs.insert(0, Program::start(name, &self.directory, &mut command)?);
        Ok(())
    }

    /// Waits until a condition holds, while all programs run.
    async fn until(&mut self, otherwise: &str, is_so: impl AsyncFn() -> bool) -> Result<(), StartError> {
        let deadline = Instant::now() + READY_TIMEOUT;
        while !is_so().await {
            for program in &mut self.programs {
                program.must_run()?;
            }
            if Instant::now() > deadline {
                let waited = format!("{otherwise} after {} s", READY_TIMEOUT.as_secs());
                return Err(match self.programs.first() {
                    Some(program) => program.complaint(waited),
                    None => StartError::Api(waited),
                });
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

fn kubelet_token(node: &str) -> String {
    format!("kubelet-of-{node}")
}

async fn answers(client: &Client, path: &str) -> bool {
    match http::Request::get(path).body(Vec::new()) {
        Ok(request) => client.request_text(request).await.is_ok(),
        Err(_) => false,
    }
}

/// Returns ports that were free a moment ago. They are bound at the same time, so that they differ.
fn free_ports() -> Result<[u16; 3], StartError> {
    let no_port = |source| StartError::System { what: "no free port".to_owned(), source };
    let mut listeners = Vec::new();
    for _ in 0..3 {
        listeners.push(TcpListener::bind("127.0.0.1:0").map_err(no_port)?);
    }
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr().map_err(no_port)?.port();
    }
    Ok(ports)
}
