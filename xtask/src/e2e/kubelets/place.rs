//! Azure with machines and registries, the cluster of these machines, and our programs.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use azure_simulator::tunnel::Tunnels;
use azure_simulator::{LatencyProfile, Options};
use azure_types::ResourceId;
use clock::Clock;
use kube::Client;
use kubernetes_simulator::Token;
use real_kubernetes::{Enclosure, Image, NodeSettings, RealCluster, RealNode};
use serde_json::{Value, json};
use simulated_cluster::{HostedAzure, HostedAzureOptions, Shape, StandaloneMachine};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::registry::Pusher;
use super::rights;
use crate::program::Program;

/// The address of instance metadata in Azure.
pub const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
/// The machines, which are also the nodes.
pub const MACHINES: [&str; 2] = ["node-a", "node-b"];
/// The image that only clients with a role may pull.
pub const IMAGE: &str = "harbour.azurecr.io/team/app:v1";
/// The output of its container.
pub const WORDS: &str = "pulled from the simulated registry";
/// The image of pods' sandboxes, which all clients may pull.
const SANDBOX_IMAGE: &str = "anchors.azurecr.io/pause:1";
/// The role for pulling images.
const ACR_PULL: &str = "7f951dda-4ed3-4680-a7ca-43fe172d538d";
/// The latency of each write to Azure.
const LATENCY: Duration = Duration::from_millis(300);
const CLIENT_SECRET: &str = "of-the-end-to-end-test";
const CONTROLLER_MANAGER: &str = "azure-cloud-controller-manager";
const NODE_MANAGER: &str = "azure-cloud-node-manager";
const CREDENTIAL_PROVIDER: &str = "acr-credential-provider";

/// The environment, which ends when this value is dropped.
pub struct Place {
    /// Our running programs.
    pub programs: Vec<Program>,
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
    binaries: PathBuf,
    _proxy: Tunnels,
    _stop: DropGuard,
}

impl Place {
    /// Starts Azure and the cluster, without our programs.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start(enclosure: &Enclosure, assets: &Path, binaries: &Path) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let folder = enclosure.folder().to_owned();
        let machines = MACHINES.map(StandaloneMachine::new).to_vec();
        let shape = Shape { pools: Vec::new(), machines, ..Shape::default() };
        let options = Options {
            latency: LatencyProfile::instant().with("*", "*", LATENCY),
            start: Clock::system().now(),
            ..Options::default()
        };
        let azure = HostedAzureOptions {
            client_secret: Some(Token::new(CLIENT_SECRET)),
            metadata: Some(SocketAddr::from((METADATA, 80))),
            record: Some(folder.join("azure-exchanges.jsonl")),
            ..HostedAzureOptions::of(&shape, options, &folder)
        };
        let azure = HostedAzure::start(azure, &stop).await?;
        shape.lay_out(&azure.azure)?;
        for machine in &shape.machines {
            let id = shape.machine(machine);
            azure.azure.edit(&id, |document| document["identity"] = json!({"type": "SystemAssigned"}))?;
        }
        push_images(&azure, &shape, &folder).await?;

        // Machines do not share this process' loopback: the proxy to Azure's names listens at their gateway.
        let proxy =
            Tunnels::start_at((enclosure.gateway(), 0).into(), azure.https_address, stop.clone()).await?;
        let environment = vec![
            ("HTTPS_PROXY".to_owned(), format!("http://{}", proxy.address())),
            ("SSL_CERT_FILE".to_owned(), azure.certificate_authority.display().to_string()),
        ];
        let provider = credential_provider(&folder, &shape, &environment)?;
        let node = |machine: &StandaloneMachine| {
            Ok(NodeSettings {
                name: machine.name.clone(),
                address: address(&azure, &shape.interface(machine))?,
                sandbox_image: SANDBOX_IMAGE.to_owned(),
                environment: environment.clone(),
                credential_provider: Some((provider.clone(), binaries.to_owned())),
            })
        };
        let nodes = shape.machines.iter().map(node).collect::<anyhow::Result<Vec<_>>>()?;
        let cluster = RealCluster::start(enclosure, assets, nodes).await?;
        let client = cluster.servers.client().await?;
        Ok(Self {
            programs: Vec::new(),
            cluster,
            client,
            azure,
            shape,
            folder,
            assets: assets.to_owned(),
            binaries: binaries.to_owned(),
            _proxy: proxy,
            _stop: stop.drop_guard(),
        })
    }

    /// Starts the controller manager, and a node manager on each machine, with the arguments of their charts.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start_managers(&mut self) -> anyhow::Result<()> {
        let azure_json = self.folder.join("azure.json");
        let document = self.shape.azure_json(&self.azure.https, CLIENT_SECRET);
        std::fs::write(&azure_json, document.to_string())?;
        let kubeconfig = rights::grant(
            &self.folder,
            &self.client,
            &self.cluster.servers,
            &self.assets,
            rights::CONTROLLER_MANAGER,
        )
        .await?;
        let mut command = Command::new(self.binaries.join(CONTROLLER_MANAGER));
        command
            .arg(format!("--cloud-config={}", azure_json.display()))
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(["--controllers=*,-cloud-node", "--cluster-name=kubelets", "--secure-port=0", "--v=2"])
            .args(["--node-monitor-period=1s", "--configure-cloud-routes=false"])
            .env("SSL_CERT_FILE", &self.azure.certificate_authority);
        self.programs.push(Program::start(CONTROLLER_MANAGER, &self.folder, &mut command)?);

        let kubeconfig = rights::grant(
            &self.folder,
            &self.client,
            &self.cluster.servers,
            &self.assets,
            rights::NODE_MANAGER,
        )
        .await?;
        for node in &self.cluster.nodes {
            let mut command = node.command(&self.binaries.join(NODE_MANAGER));
            command
                .arg(format!("--node-name={}", node.name()))
                .arg(format!("--kubeconfig={}", kubeconfig.display()))
                .args(["--wait-routes=false", "--v=2"])
                .env("NODE_NAME", node.name());
            let name = format!("{NODE_MANAGER}-{}", node.name());
            self.programs.push(Program::start(&name, &self.folder, &mut command)?);
        }
        Ok(())
    }

    /// Allows a machine to pull from the registry that refuses anonymous clients.
    ///
    /// # Errors
    /// Azure's error.
    pub fn let_pull(&self, machine: &StandaloneMachine) -> anyhow::Result<()> {
        let id = self.shape.machine(machine);
        let document = self.azure.azure.document(&id).context("there is no such machine")?;
        let principal = document["identity"]["principalId"].as_str().context("it has no identity")?;
        let registry = registry(&self.shape, host_of(IMAGE));
        Ok(self.azure.azure.assign_role(&registry, ACR_PULL, principal)?)
    }

    /// Fails if a program has ended by itself.
    ///
    /// # Errors
    /// The program with the end of its log.
    pub fn must_run(&mut self) -> anyhow::Result<()> {
        self.cluster.nodes.iter_mut().try_for_each(RealNode::must_run)?;
        self.programs.iter_mut().try_for_each(Program::must_run)
    }

    /// Stops our programs gracefully.
    ///
    /// # Errors
    /// A program does not stop.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        for program in &mut self.programs {
            let ended = program.terminate(crate::program::STOP_TIMEOUT).await?;
            anyhow::ensure!(
                ended.success(),
                "after SIGTERM a program ended with {ended}:\n{}",
                program.last_words()
            );
        }
        Ok(())
    }
}

/// The host of an image's registry.
pub fn host_of(image: &str) -> &str {
    image.split('/').next().unwrap_or_default()
}

fn registry(shape: &Shape, host: &str) -> ResourceId {
    let name = host.split('.').next().unwrap_or_default();
    shape.group().resource("Microsoft.ContainerRegistry", "registries", name)
}

/// The address that Azure has assigned to a network interface.
fn address(azure: &HostedAzure, interface: &ResourceId) -> anyhow::Result<Ipv4Addr> {
    let document = azure.azure.document(interface).context("there is no such interface")?;
    let address = document["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"].as_str();
    Ok(address.context("the interface has no address")?.parse()?)
}

/// Creates two registries, one of them with anonymous pull, and pushes an image to each.
async fn push_images(azure: &HostedAzure, shape: &Shape, folder: &Path) -> anyhow::Result<()> {
    let image = Image::of_busybox(folder, &format!("echo {WORDS}; sleep 2000000000"))?;
    for (name, anonymous) in [(IMAGE, false), (SANDBOX_IMAGE, true)] {
        let host = host_of(name);
        let document = json!({
            "location": shape.region, "sku": {"name": "Standard"}, "properties": {"anonymousPullEnabled": anonymous},
        });
        azure.azure.put(&registry(shape, host), document)?;
        let (_, path) = name.split_once('/').context("an image has a host")?;
        let (repository, tag) = path.split_once(':').context("an image has a tag")?;
        let pusher = Pusher { azure: &azure.http, host, client_id: &shape.client_id, secret: CLIENT_SECRET };
        pusher.push(repository, tag, &image).await?;
    }
    Ok(())
}

/// The kubelet's configuration for our credential provider, as in `docs/acr-credential-provider.md`, and the azure.json
/// of a machine with a managed identity.
/// with a managed identity.
fn credential_provider(
    folder: &Path,
    shape: &Shape,
    environment: &[(String, String)],
) -> anyhow::Result<PathBuf> {
    let azure_json = folder.join("machine.json");
    let document = json!({
        "cloud": "AzurePublicCloud", "tenantId": shape.tenant, "subscriptionId": shape.subscription,
        "useManagedIdentityExtension": true,
    });
    std::fs::write(&azure_json, document.to_string())?;
    let variables: Vec<Value> =
        environment.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let configuration = json!({
        "apiVersion": "kubelet.config.k8s.io/v1",
        "kind": "CredentialProviderConfig",
        "providers": [{
            "name": CREDENTIAL_PROVIDER,
            "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
            "defaultCacheDuration": "10m",
            "matchImages": ["*.azurecr.io"],
            "args": [azure_json],
            "env": variables,
        }],
    });
    let path = folder.join("credential-provider.json");
    std::fs::write(&path, configuration.to_string())?;
    Ok(path)
}
