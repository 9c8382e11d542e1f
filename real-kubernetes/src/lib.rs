//! A real etcd and kube-apiserver on loopback, for as long as the value lives.
//!
//! The programs are those of `KUBEBUILDER_ASSETS`, of any version from 1.21 on, which has EndpointSlices. The bearer of the token
//! is a cluster administrator; authorization is by roles, as in clusters that people have.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use tokio::time::{Instant, sleep};

/// The token of the administrator; it opens nothing but this value's own server on loopback.
const TOKEN: &str = "administrator-of-a-test";

/// How long the API server may take to be ready.
const READY_TIMEOUT: Duration = Duration::from_secs(90);

/// How often is looked whether something is so.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// How many of the last lines of a log an error holds.
const MAX_LOG_LINES: usize = 25;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A program is not where it is looked for.
    #[error("KUBEBUILDER_ASSETS={}: there is no {name} in it", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// The program.
        name: &'static str,
    },
    /// A file or folder cannot be written, a program not be started, or no port be had.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The key for service accounts cannot be made.
    #[error("cannot make the key for service accounts: {0}")]
    Key(#[from] rcgen::Error),
    /// A program has ended by itself, or does not become ready.
    #[error("{name} {what}:\n{log}")]
    NotReady {
        /// The program.
        name: &'static str,
        /// What is wrong.
        what: String,
        /// The end of its log.
        log: String,
    },
    /// The server does not answer as it should.
    #[error("the API server: {0}")]
    Api(String),
}

/// Running servers; they are killed when this value goes.
#[derive(Debug)]
pub struct RealKubernetes {
    /// How to reach them.
    pub kubeconfig: PathBuf,
    /// The API server before its store, in the order in which they are stopped.
    programs: Vec<Program>,
}

#[derive(Debug)]
struct Program {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl RealKubernetes {
    /// Starts etcd and kube-apiserver from `assets` with their files in `directory`, and waits until the API is ready.
    ///
    /// # Errors
    /// What cannot be had, or the end of the log of a program that does not come up.
    pub async fn start(assets: &Path, directory: &Path) -> Result<Self, StartError> {
        Self::start_with(assets, directory, &[]).await
    }

    /// The same with more flags of kube-apiserver, each a name and a value.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_with(
        assets: &Path,
        directory: &Path,
        more: &[(&str, &str)],
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
        let administrator = format!("{TOKEN},administrator,administrator,system:masters\n");
        fs::write(&tokens, administrator).map_err(failed(&tokens))?;
        // The value exists before anything is started, so that whatever fails, all is stopped.
        let kubeconfig = directory.join("administrator.kubeconfig");
        let mut this = Self { kubeconfig, programs: Vec::new() };
        let store = format!("http://127.0.0.1:{client}");
        let peers = format!("http://127.0.0.1:{peer}");
        this.run(
            "etcd",
            assets,
            directory,
            &[
                ("--data-dir", "etcd"),
                ("--listen-client-urls", &store),
                ("--advertise-client-urls", &store),
                ("--listen-peer-urls", &peers),
                ("--initial-advertise-peer-urls", &peers),
                ("--initial-cluster", &format!("default={peers}")),
            ],
        )?;
        let port_flag = port.to_string();
        let own = [
            ("--etcd-servers", store.as_str()),
            ("--secure-port", &port_flag),
            ("--bind-address", "127.0.0.1"),
            ("--cert-dir", "certificates"),
            ("--service-account-key-file", "accounts.pub"),
            ("--service-account-signing-key-file", "accounts.key"),
            ("--service-account-issuer", "https://kubernetes.default.svc"),
            ("--service-cluster-ip-range", "10.0.0.0/16"),
            ("--token-auth-file", "tokens.csv"),
            ("--authorization-mode", "RBAC"),
            ("--disable-admission-plugins", "ServiceAccount"),
        ];
        this.run("kube-apiserver", assets, directory, &[&own, more].concat())?;
        let authority = directory.join("certificates/apiserver.crt");
        this.until("made no certificate", async || authority.exists()).await?;
        let text = kubeconfig_for(port, &authority);
        fs::write(&this.kubeconfig, text).map_err(failed(&this.kubeconfig))?;
        let client = this.client().await?;
        this.until("is not ready", async || {
            answers(&client, "/readyz").await && answers(&client, "/api/v1/namespaces/kube-node-lease").await
        })
        .await?;
        Ok(this)
    }

    /// Starts the kube-controller-manager that is in `assets`, with these of its controllers alone.
    ///
    /// # Errors
    /// There is none, or it cannot be started.
    pub fn start_controllers(
        &mut self,
        assets: &Path,
        directory: &Path,
        controllers: &[&str],
    ) -> Result<(), StartError> {
        let name = "kube-controller-manager";
        if !assets.join(name).exists() {
            return Err(StartError::Missing { folder: assets.to_owned(), name });
        }
        let kubeconfig = self.kubeconfig.display().to_string();
        self.run(
            name,
            assets,
            directory,
            &[
                ("--kubeconfig", &kubeconfig),
                ("--leader-elect", "false"),
                ("--secure-port", "0"),
                ("--controllers", &controllers.join(",")),
            ],
        )
    }

    /// A client of the server, which does not retry.
    ///
    /// # Errors
    /// The kubeconfig cannot be used.
    pub async fn client(&self) -> Result<Client, StartError> {
        let failed = |error: &dyn std::fmt::Display| StartError::Api(error.to_string());
        let file = Kubeconfig::read_from(&self.kubeconfig).map_err(|error| failed(&error))?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
            .await
            .map_err(|error| failed(&error))?;
        config.default_retry = false;
        Client::try_from(config).map_err(|error| failed(&error))
    }

    fn run(
        &mut self,
        name: &'static str,
        assets: &Path,
        directory: &Path,
        flags: &[(&str, &str)],
    ) -> Result<(), StartError> {
        let log = directory.join(format!("{name}.log"));
        let file = fs::File::create(&log).map_err(failed(&log))?;
        let errors = file.try_clone().map_err(failed(&log))?;
        let child = Command::new(assets.join(name))
            .args(flags.iter().map(|(flag, value)| format!("{flag}={value}")))
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .map_err(failed(&assets.join(name)))?;
        self.programs.insert(0, Program { name, child, log });
        Ok(())
    }

    /// Waits until something is so while all programs run.
    async fn until(&mut self, otherwise: &str, is_so: impl AsyncFn() -> bool) -> Result<(), StartError> {
        let deadline = Instant::now() + READY_TIMEOUT;
        while !is_so().await {
            for program in &mut self.programs {
                if let Ok(Some(status)) = program.child.try_wait() {
                    return Err(program.complaint(format!("has ended by itself with {status}")));
                }
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

impl Program {
    fn complaint(&self, what: String) -> StartError {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines.get(lines.len().saturating_sub(MAX_LOG_LINES)..).unwrap_or_default();
        StartError::NotReady { name: self.name, what, log: last.join("\n") }
    }
}

impl Drop for RealKubernetes {
    fn drop(&mut self) {
        for program in &mut self.programs {
            // Already gone is as good.
            let _ = program.child.kill();
            let _ = program.child.wait();
        }
    }
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> StartError + use<> {
    let what = path.display().to_string();
    move |source| StartError::System { what, source }
}

async fn answers(client: &Client, path: &str) -> bool {
    match http::Request::get(path).body(Vec::new()) {
        Ok(request) => client.request_text(request).await.is_ok(),
        Err(_) => false,
    }
}

fn kubeconfig_for(port: u16, authority: &Path) -> String {
    let cluster = json!({"server": format!("https://127.0.0.1:{port}"), "certificate-authority": authority});
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "run",
        "clusters": [{"name": "run", "cluster": cluster}],
        "users": [{"name": "administrator", "user": {"token": TOKEN}}],
        "contexts": [{"name": "run", "context": {"cluster": "run", "user": "administrator"}}],
    });
    // JSON is YAML.
    format!("{config:#}\n")
}

/// Ports that were free a moment ago, all at once, so that they differ.
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
