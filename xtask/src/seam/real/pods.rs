//! A stand-in for a kubelet that runs the providers' pods: it starts the program of a pod's image on this machine, with
//! the pod's arguments, variables, certificate and rights, reports when it is ready, and restarts it when it ends. It
//! routes the pod's Services to the program. Ports are replaced, because all programs share an address.

use std::collections::HashMap;
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clock::Clock;
use kube::Client;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use parking_lot::Mutex;
use serde_json::{Value, json};
use simulated_cluster::free_port;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::e2e::capz::objects::{api, create};
use crate::program::Program;

/// The namespace of these pods.
pub const NAMESPACE: &str = "capz-system";
const LOOK: Duration = Duration::from_millis(200);
/// The time limit for a program to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// The webhook port in the pods' manifests, as number and as name.
const WEBHOOKS: [&str; 2] = ["9443", "webhook-server"];
/// Flags with ports, which are replaced here.
const PORTS: [&str; 5] =
    ["--webhook-port", "--webhook-cert-dir", "--health-addr", "--diagnostics-address", "--metrics-addr"];
/// Programs of controller-runtime read the namespace of their leases only from this file of a pod. Only the program
/// sees the mount, and it keeps the process id.
const IN_POD: &str = r#"folder=/run/secrets/kubernetes.io/serviceaccount
mount -t tmpfs none /run && mkdir -p $folder && printf %s "$0" >$folder/namespace && exec "$@""#;
/// An address for documentation: no packet is sent, but the local address of the socket is the one that this machine
/// uses.
const ELSEWHERE: &str = "192.0.2.1:9";

/// The program of an image.
#[derive(Debug, Clone)]
pub struct Image {
    /// A part of the image's name.
    pub name: &'static str,
    /// The program.
    pub program: PathBuf,
    /// The folder in which the program runs: an image can contain more files.
    pub folder: PathBuf,
    /// The flag for the address of its metrics.
    pub metrics: &'static str,
    /// More arguments, which shorten the program's intervals.
    pub more: &'static [&'static str],
}

/// The environment of the programs.
#[derive(Debug, Clone)]
pub struct PodEnvironment {
    /// The folder for files and logs.
    pub directory: PathBuf,
    /// The administrator's kubeconfig, in JSON.
    pub kubeconfig: Value,
    /// The proxy to Azure.
    pub proxy: String,
    /// The authority of Azure's certificates.
    pub certificate_authority: PathBuf,
}

/// The running pods, which end with the runtime, or when this value is dropped.
pub struct Pods {
    reports: Arc<Mutex<PodReports>>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct PodReports {
    problem: Option<String>,
    words: HashMap<String, String>,
    restarts: HashMap<String, usize>,
}

impl Drop for Pods {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Pods {
    /// Starts running pods.
    ///
    /// # Errors
    /// This machine has no address that API servers accept for a pod.
    pub fn run(client: Client, images: Vec<Image>, environment: PodEnvironment) -> anyhow::Result<Self> {
        let reports = Arc::new(Mutex::new(PodReports::default()));
        let address = address()?;
        let mut node =
            Node { client, images, environment, address, running: HashMap::new(), reports: reports.clone() };
        let task = tokio::spawn(async move {
            loop {
                if let Err(problem) = node.round().await {
                    node.reports.lock().problem.get_or_insert(format!("{problem:#}"));
                }
                tokio::time::sleep(LOOK).await;
            }
        });
        Ok(Self { reports, task })
    }

    /// Fails if there was an error so far.
    ///
    /// # Errors
    /// The first error.
    pub fn must_run(&self) -> anyhow::Result<()> {
        match &self.reports.lock().problem {
            Some(problem) => bail!("the pods: {problem}"),
            None => Ok(()),
        }
    }

    /// How often programs of an image have ended and were restarted.
    pub fn restarts(&self, image: &str) -> usize {
        self.reports.lock().restarts.get(image).copied().unwrap_or_default()
    }

    /// The ends of all programs' logs.
    pub fn words(&self) -> String {
        let reports = self.reports.lock();
        let words: Vec<String> =
            reports.words.iter().map(|(pod, words)| format!("{pod}:\n{words}")).collect();
        words.join("\n---\n")
    }
}

fn address() -> anyhow::Result<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(ELSEWHERE)?;
    let address = socket.local_addr()?.ip();
    ensure!(!address.is_loopback(), "this machine has only {address}, which no EndpointSlice may have");
    Ok(address)
}

struct Node {
    client: Client,
    images: Vec<Image>,
    environment: PodEnvironment,
    address: IpAddr,
    running: HashMap<String, Running>,
    reports: Arc<Mutex<PodReports>>,
}

/// The program of a pod.
struct Running {
    pod: Value,
    image: Image,
    program: Program,
    webhook_port: u16,
    health_port: u16,
    is_ready: bool,
    slices: Vec<String>,
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl Node {
    async fn round(&mut self) -> anyhow::Result<()> {
        let pods = api(&self.client, "v1", "Pod", Some(NAMESPACE)).list(&ListParams::default()).await?;
        let mut there = Vec::new();
        for pod in pods {
            let pod = serde_json::to_value(pod)?;
            let uid = text(&pod["metadata"]["uid"]).to_owned();
            there.push(uid.clone());
            let is_deleted = pod["metadata"]["deletionTimestamp"].is_string();
            match self.running.contains_key(&uid) {
                false if is_deleted => self.forget(&pod).await?,
                false => self.start(&uid, &pod).await?,
                true if is_deleted => {
                    self.end(&uid).await?;
                    self.forget(&pod).await?;
                }
                true => self.watch(&uid).await?,
            }
        }
        let gone: Vec<String> = self.running.keys().filter(|uid| !there.contains(uid)).cloned().collect();
        for uid in gone {
            self.end(&uid).await?;
        }
        Ok(())
    }

    async fn forget(&self, pod: &Value) -> anyhow::Result<()> {
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        let pods = api(&self.client, "v1", "Pod", Some(NAMESPACE));
        match pods.delete(text(&pod["metadata"]["name"]), &now).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            done => Ok(done.map(drop)?),
        }
    }

    async fn end(&mut self, uid: &str) -> anyhow::Result<()> {
        let Some(mut running) = self.running.remove(uid) else { return Ok(()) };
        self.unpublish(&mut running).await?;
        self.reports.lock().words.remove(text(&running.pod["metadata"]["name"]));
        running.program.terminate(PATIENCE).await.map(drop)
    }

    /// Starts a pod's program once the Secrets that it mounts exist.
    async fn start(&mut self, uid: &str, pod: &Value) -> anyhow::Result<()> {
        let name = text(&pod["metadata"]["name"]).to_owned();
        let folder = self.environment.directory.join(&name);
        if !self.mounted(pod, &folder).await? {
            return Ok(());
        }
        if !pod["spec"]["nodeName"].is_string() {
            let binding = json!({ "apiVersion": "v1", "kind": "Binding",
                "metadata": { "namespace": NAMESPACE, "name": name },
                "target": { "apiVersion": "v1", "kind": "Node", "name": "management" } });
            let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}/binding");
            let request = http::Request::post(path).header("Content-Type", "application/json");
            match self.client.request::<Value>(request.body(binding.to_string().into_bytes())?).await {
                // A pod that no node has yet is deleted at once.
                Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
                bound => drop(bound?),
            }
        }
        let kubeconfig = self.kubeconfig(text(&pod["spec"]["serviceAccountName"]), &folder).await?;
        for container in pod["spec"]["initContainers"].as_array().into_iter().flatten() {
            let image = self.image(container)?;
            let mut command = self.command(pod, container, &image, &kubeconfig).await?;
            let program = format!("{name}-{}", text(&container["name"]));
            let mut program = Program::start(&program, &self.environment.directory, &mut command)?;
            let status = program.ends_within(PATIENCE).await?;
            let status = status.with_context(|| format!("the init container of {name} does not end"))?;
            ensure!(
                status.success(),
                "the init container of {name} ended with {status}: {}",
                program.last_words()
            );
        }
        let running = self.begin(pod, &folder, &kubeconfig).await?;
        self.running.insert(uid.to_owned(), running);
        Ok(())
    }

    async fn begin(&self, pod: &Value, folder: &Path, kubeconfig: &Path) -> anyhow::Result<Running> {
        let container = &pod["spec"]["containers"][0];
        let image = self.image(container)?;
        let (webhook_port, health_port) = (free_port()?, free_port()?);
        let mut command = self.command(pod, container, &image, kubeconfig).await?;
        command
            .arg(format!("--webhook-port={webhook_port}"))
            .arg(format!("--webhook-cert-dir={}", folder.join("cert").display()))
            .arg(format!("--health-addr=127.0.0.1:{health_port}"))
            .arg(format!("{}=127.0.0.1:{}", image.metrics, free_port()?))
            .args(image.more);
        let program =
            Program::start(text(&pod["metadata"]["name"]), &self.environment.directory, &mut command)?;
        Ok(Running {
            pod: pod.clone(),
            image,
            program,
            webhook_port,
            health_port,
            is_ready: false,
            slices: Vec::new(),
        })
    }

    /// Restarts the program if it has ended, and updates its readiness.
    async fn watch(&mut self, uid: &str) -> anyhow::Result<()> {
        let Some(mut running) = self.running.remove(uid) else { return Ok(()) };
        let name = text(&running.pod["metadata"]["name"]).to_owned();
        self.reports.lock().words.insert(name.clone(), running.program.last_words());
        if running.program.ended()?.is_some() {
            *self.reports.lock().restarts.entry(running.image.name.to_owned()).or_default() += 1;
            self.unpublish(&mut running).await?;
            tokio::time::sleep(Duration::from_secs(1)).await;
            let folder = self.environment.directory.join(&name);
            running = self.begin(&running.pod, &folder, &folder.join("kubeconfig")).await?;
        }
        let is_ready = answers(running.health_port).await;
        if is_ready != running.is_ready {
            running.is_ready = is_ready;
            if is_ready {
                self.publish(&mut running).await?;
            }
            self.say(&running).await?;
        }
        self.running.insert(uid.to_owned(), running);
        Ok(())
    }

    async fn say(&self, running: &Running) -> anyhow::Result<()> {
        let status = if running.is_ready { "True" } else { "False" };
        let now = Clock::system().now().to_string();
        let conditions: Vec<Value> = ["Ready", "ContainersReady", "PodScheduled", "Initialized"]
            .iter()
            .map(|one| json!({ "type": one, "status": status, "lastTransitionTime": now }))
            .collect();
        let status = json!({ "status": { "phase": "Running", "podIP": self.address, "podIPs": [{ "ip": self.address }],
            "startTime": now, "conditions": conditions } });
        let pods = api(&self.client, "v1", "Pod", Some(NAMESPACE));
        let name = text(&running.pod["metadata"]["name"]);
        match pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            done => Ok(done.map(drop)?),
        }
    }

    /// Routes the Services that select a pod to it.
    async fn publish(&self, running: &mut Running) -> anyhow::Result<()> {
        let labels = &running.pod["metadata"]["labels"];
        for service in
            api(&self.client, "v1", "Service", Some(NAMESPACE)).list(&ListParams::default()).await?
        {
            let service = serde_json::to_value(service)?;
            let selector = service["spec"]["selector"].as_object().filter(|selector| !selector.is_empty());
            if !selector.is_some_and(|selector| selector.iter().all(|(key, value)| labels[key] == *value)) {
                continue;
            }
            let ports = service["spec"]["ports"].as_array().into_iter().flatten();
            let of_webhooks = ports.filter(|port| {
                let target = &port["targetPort"];
                WEBHOOKS.contains(&target.to_string().trim_matches('"'))
            });
            let ports: Vec<Value> = of_webhooks
                .map(|port| json!({ "name": text(&port["name"]), "port": running.webhook_port, "protocol": "TCP" }))
                .collect();
            if ports.is_empty() {
                continue;
            }
            let of = text(&service["metadata"]["name"]);
            let name = format!("{of}-{}", text(&running.pod["metadata"]["uid"]));
            let slice = json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": { "namespace": NAMESPACE, "name": name, "labels": { "kubernetes.io/service-name": of } },
                "ports": ports,
                "endpoints": [{ "addresses": [self.address], "conditions": { "ready": true } }] });
            create(&self.client, &slice).await?;
            running.slices.push(name);
        }
        Ok(())
    }

    async fn unpublish(&self, running: &mut Running) -> anyhow::Result<()> {
        running.is_ready = false;
        let slices = api(&self.client, "discovery.k8s.io/v1", "EndpointSlice", Some(NAMESPACE));
        for name in running.slices.drain(..) {
            match slices.delete(&name, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                done => drop(done?),
            }
        }
        Ok(())
    }

    fn image(&self, container: &Value) -> anyhow::Result<Image> {
        let image = text(&container["image"]);
        let found = self.images.iter().find(|one| image.contains(one.name));
        found.cloned().with_context(|| format!("no program stands for image {image}"))
    }

    /// The program of a container, with the container's arguments and variables.
    async fn command(
        &self,
        pod: &Value,
        container: &Value,
        image: &Image,
        kubeconfig: &Path,
    ) -> anyhow::Result<Command> {
        let mut command = Command::new("unshare");
        let arguments = container["args"].as_array().into_iter().flatten().map(text);
        command
            .args(["--map-root-user", "--mount", "sh", "-c", IN_POD, NAMESPACE])
            .arg(&image.program)
            .args(arguments.filter(|one| !PORTS.iter().any(|flag| one.starts_with(&format!("{flag}=")))))
            .current_dir(&image.folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("KUBECONFIG", kubeconfig)
            .env("SSL_CERT_FILE", &self.environment.certificate_authority)
            .env("HTTPS_PROXY", &self.environment.proxy)
            // Go connects to this machine without the proxy; our program needs the variable for that.
            .env("NO_PROXY", "127.0.0.1");
        for variable in container["env"].as_array().into_iter().flatten() {
            let from = &variable["valueFrom"];
            let value = match (from["fieldRef"]["fieldPath"].as_str(), &from["secretKeyRef"]) {
                (Some(path), _) => pod
                    .pointer(&format!("/{}", path.replace('.', "/")))
                    .map(text)
                    .unwrap_or_default()
                    .to_owned(),
                (None, Value::Null) => text(&variable["value"]).to_owned(),
                (None, reference) => {
                    let secret = self.secret(text(&reference["name"])).await?.unwrap_or_default();
                    match secret.get(text(&reference["key"])) {
                        Some(value) => String::from_utf8(value.clone())?,
                        None => continue,
                    }
                }
            };
            command.env(text(&variable["name"]), value);
        }
        Ok(command)
    }

    async fn secret(&self, name: &str) -> anyhow::Result<Option<HashMap<String, Vec<u8>>>> {
        let found = api(&self.client, "v1", "Secret", Some(NAMESPACE)).get_opt(name).await?;
        let Some(found) = found else { return Ok(None) };
        let data = found.data["data"].as_object().into_iter().flatten();
        data.map(|(key, value)| Ok((key.clone(), STANDARD.decode(text(value))?)))
            .collect::<anyhow::Result<_>>()
            .map(Some)
    }

    /// Writes the Secret of the pod's volume `cert`; returns false while the Secret does not exist.
    async fn mounted(&self, pod: &Value, folder: &Path) -> anyhow::Result<bool> {
        let folder = folder.join("cert");
        std::fs::create_dir_all(&folder)?;
        let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        for volume in volumes.filter(|volume| volume["name"] == "cert") {
            let Some(secret) = self.secret(text(&volume["secret"]["secretName"])).await? else {
                return Ok(false);
            };
            for (key, value) in secret {
                std::fs::write(folder.join(key), value)?;
            }
        }
        Ok(true)
    }

    /// A kubeconfig with only the rights of a service account.
    async fn kubeconfig(&self, account: &str, folder: &Path) -> anyhow::Result<PathBuf> {
        let wanted = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
        let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token");
        let request = http::Request::post(path).header("Content-Type", "application/json");
        let answer: Value = self.client.request(request.body(wanted.to_string().into_bytes())?).await?;
        let mut kubeconfig = self.environment.kubeconfig.clone();
        kubeconfig["users"][0]["user"]["token"] = answer["status"]["token"].clone();
        let path = folder.join("kubeconfig");
        std::fs::write(&path, kubeconfig.to_string())?;
        Ok(path)
    }
}

/// Whether a program reports that it is ready.
async fn answers(port: u16) -> bool {
    let asked = async {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer.split(' ').nth(1) == Some("200"))
    };
    matches!(tokio::time::timeout(Duration::from_secs(2), asked).await, Ok(Ok(true)))
}
