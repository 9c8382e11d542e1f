//! Azure with machines and registries, and the real cluster of these machines.
//!
//! All of Kubernetes is real, from etcd to the containers. Azure is simulated; each node has the address that Azure has
//! assigned to its machine, and instance metadata at 169.254.169.254.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use azure_simulator::tunnel::Tunnels;
use azure_simulator::{LatencyProfile, Options};
use azure_types::ResourceId;
use clock::Clock;
use kube::Client;
use kubernetes_simulator::Token;
use real_kubernetes::{Enclosure, Image, Lack, NodeSettings, RealCluster, RealNode};
use serde_json::json;
use simulated_cluster::{HostedAzure, HostedAzureOptions, Shape, StandaloneMachine};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::registry::Pusher;
use crate::print;

/// The first address of the machines' subnet, which Azure reserves for its gateway.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 240, 0, 1);
/// The address of instance metadata in Azure.
pub const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
/// The secret of the application in Azure that owns everything.
pub const CLIENT_SECRET: &str = "of-the-end-to-end-test";
/// A registry that all clients may pull from.
pub const PUBLIC_REGISTRY: &str = "anchors.azurecr.io";
/// The image of pods' sandboxes, which contains only busybox.
pub const SANDBOX_IMAGE: &str = "anchors.azurecr.io/pause:1";
/// The file of the requests to Azure and their answers, as JSON lines.
pub const EXCHANGES: &str = "azure-exchanges.jsonl";
/// The latency of each write to Azure.
const LATENCY: Duration = Duration::from_millis(300);

/// The environment, which ends when this value is dropped.
pub struct Machines {
    /// The cluster.
    pub cluster: RealCluster,
    /// A client with an administrator's rights.
    pub client: Client,
    /// Azure on sockets.
    pub azure: HostedAzure,
    /// Names and sizes of the cluster's resources in Azure.
    pub shape: Shape,
    /// The folder for all files.
    pub folder: PathBuf,
    /// The folder of the real programs.
    pub assets: PathBuf,
    /// The environment variables with which a program reaches Azure from a machine.
    pub environment: Vec<(String, String)>,
    _proxy: Tunnels,
    _stop: DropGuard,
}

/// Azure before the cluster exists.
pub struct EmptyCluster<'a> {
    enclosure: &'a Enclosure,
    assets: &'a Path,
    /// Azure on sockets.
    pub azure: HostedAzure,
    /// Names and sizes of the cluster's resources in Azure.
    pub shape: Shape,
    /// The environment variables with which a program reaches Azure from a machine.
    pub environment: Vec<(String, String)>,
    proxy: Tunnels,
    stop: CancellationToken,
}

impl<'a> EmptyCluster<'a> {
    /// Starts Azure with machines of these names, each with an identity of its own, and the registry of sandboxes.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start(enclosure: &'a Enclosure, assets: &'a Path, names: &[&str]) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let folder = enclosure.folder();
        let machines = names.iter().copied().map(StandaloneMachine::new).collect();
        let shape = Shape { pools: Vec::new(), machines, ..Shape::default() };
        let options = Options {
            latency: LatencyProfile::instant().with("*", "*", LATENCY),
            start: Clock::system().now(),
            ..Options::default()
        };
        let azure = HostedAzureOptions {
            client_secret: Some(Token::new(CLIENT_SECRET)),
            metadata: Some(SocketAddr::from((METADATA, 80))),
            record: Some(folder.join(EXCHANGES)),
            ..HostedAzureOptions::of(&shape, options, folder)
        };
        let azure = HostedAzure::start(azure, &stop).await?;
        shape.lay_out(&azure.azure)?;
        for machine in &shape.machines {
            let id = shape.machine(machine);
            azure.azure.edit(&id, |document| document["identity"] = json!({"type": "SystemAssigned"}))?;
        }
        // Machines do not share this process' loopback: the proxy to Azure's names listens at their gateway.
        let proxy =
            Tunnels::start_at((enclosure.gateway(), 0).into(), azure.https_address, stop.clone()).await?;
        let environment = vec![
            ("HTTPS_PROXY".to_owned(), format!("http://{}", proxy.address())),
            ("SSL_CERT_FILE".to_owned(), azure.certificate_authority.display().to_string()),
        ];
        let this = Self { enclosure, assets, azure, shape, environment, proxy, stop };
        this.create_registry(PUBLIC_REGISTRY, true)?;
        let sandbox = Image::of_busybox(folder, "sleep 2000000000")?;
        this.push(SANDBOX_IMAGE, &sandbox).await?;
        Ok(this)
    }

    /// Creates a registry, which all clients may pull from if it is `anonymous`.
    ///
    /// # Errors
    /// Azure's error.
    pub fn create_registry(&self, host: &str, anonymous: bool) -> anyhow::Result<()> {
        let document = json!({
            "location": self.shape.region,
            "sku": {"name": "Standard"},
            "properties": {"anonymousPullEnabled": anonymous},
        });
        self.azure.azure.put(&registry(&self.shape, host), document)?;
        Ok(())
    }

    /// Pushes an image to one of the registries.
    ///
    /// # Errors
    /// The registry's error.
    pub async fn push(&self, name: &str, image: &Image) -> anyhow::Result<()> {
        let (host, path) = name.split_once('/').context("an image has a host")?;
        let (repository, tag) = path.split_once(':').context("an image has a tag")?;
        let client_id = &self.shape.client_id;
        let pusher = Pusher { azure: &self.azure.http, host, client_id, secret: CLIENT_SECRET };
        pusher.push(repository, tag, image).await
    }

    /// Starts the cluster. `credential_provider` is the kubelets' configuration with the folder of its programs, and
    /// `flags` are further ones of kube-apiserver.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start_nodes(
        self,
        credential_provider: Option<(PathBuf, PathBuf)>,
        flags: &[(&str, &str)],
    ) -> anyhow::Result<Machines> {
        let node = |machine: &StandaloneMachine| {
            Ok(NodeSettings {
                name: machine.name.clone(),
                address: address(&self.azure, &self.shape.interface(machine))?,
                sandbox_image: SANDBOX_IMAGE.to_owned(),
                environment: self.environment.clone(),
                credential_provider: credential_provider.clone(),
            })
        };
        let nodes = self.shape.machines.iter().map(node).collect::<anyhow::Result<Vec<_>>>()?;
        let cluster = RealCluster::start(self.enclosure, self.assets, nodes, flags).await?;
        Ok(Machines {
            client: cluster.servers.client().await?,
            cluster,
            azure: self.azure,
            shape: self.shape,
            folder: self.enclosure.folder().to_owned(),
            assets: self.assets.to_owned(),
            environment: self.environment,
            _proxy: self.proxy,
            _stop: self.stop.drop_guard(),
        })
    }
}

impl Machines {
    /// Fails if a kubelet or its container runtime has ended by itself.
    ///
    /// # Errors
    /// The program with the end of its log.
    pub fn must_run(&mut self) -> anyhow::Result<()> {
        Ok(self.cluster.nodes.iter_mut().try_for_each(RealNode::must_run)?)
    }
}

/// The registry of a host.
pub fn registry(shape: &Shape, host: &str) -> ResourceId {
    let name = host.split('.').next().unwrap_or_default();
    shape.group().resource("Microsoft.ContainerRegistry", "registries", name)
}

/// The address that Azure has assigned to a network interface.
fn address(azure: &HostedAzure, interface: &ResourceId) -> anyhow::Result<Ipv4Addr> {
    let document = azure.azure.document(interface).context("there is no such interface")?;
    let address = document["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"].as_str();
    Ok(address.context("the interface has no address")?.parse()?)
}

/// Whether this machine can run nodes; missing packages are installed. In CI it must.
pub fn is_possible(assets: &Path) -> anyhow::Result<bool> {
    let mut lacks = real_kubernetes::lacks(assets);
    if !lacks.is_empty() && lacks.iter().all(|lack| matches!(lack, Lack::Package(_))) {
        let words: Vec<String> = lacks.iter().map(ToString::to_string).collect();
        print::line(format_args!("installing, because {}", words.join(", ")));
        if let Err(problem) = real_kubernetes::install(&lacks) {
            print::line(format_args!("cannot install them: {problem}"));
        }
        lacks = real_kubernetes::lacks(assets);
    }
    if lacks.is_empty() {
        return Ok(true);
    }
    let words: Vec<String> = lacks.iter().map(ToString::to_string).collect();
    let words = words.join("; ");
    if std::env::var_os("CI").is_some() {
        bail!("no nodes can run on this machine, and in CI they must: {words}");
    }
    print::line(format_args!("skipped: no nodes can run on this machine: {words}"));
    Ok(false)
}
