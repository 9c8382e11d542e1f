//! A node: a machine with its own address, containerd and a kubelet.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::command::run;
use crate::control_plane::RealKubernetes;
use crate::enclosure::Enclosure;
use crate::error::{StartError, failed};
use crate::program::Program;
use crate::requirements::network_plugins;
use crate::{containerd, kubelet};

/// The time limit for containerd to listen.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The settings of a node.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// The name of the node and its host.
    pub name: String,
    /// The address of its machine.
    pub address: Ipv4Addr,
    /// The image of pods' sandboxes. containerd pulls it without credentials.
    pub sandbox_image: String,
    /// Environment variables of containerd, such as the proxy to registries.
    pub environment: Vec<(String, String)>,
    /// The configuration of credential providers for images, and the folder with their programs.
    pub credential_provider: Option<(PathBuf, PathBuf)>,
}

/// A running node. Its programs end with this value.
#[derive(Debug)]
pub struct RealNode {
    settings: NodeSettings,
    folder: PathBuf,
    kubeconfig: PathBuf,
    program: PathBuf,
    kubelet: Option<Program>,
    containerd: Program,
}

impl RealNode {
    /// Starts the machine, containerd and the kubelet. The kubelet waits for a cloud provider, and sets no provider ID.
    async fn start(
        enclosure: &Enclosure,
        servers: &RealKubernetes,
        number: usize,
        settings: NodeSettings,
    ) -> Result<Self, StartError> {
        let folder = enclosure.folder().join(&settings.name);
        let networks = folder.join("network");
        fs::create_dir_all(&networks).map_err(failed(&networks))?;
        connect(enclosure.gateway(), number, &settings)?;
        let write = |path: &Path, text: String| fs::write(path, text).map_err(failed(path));
        let plugins = network_plugins().ok_or_else(|| StartError::Command {
            command: "ptp".to_owned(),
            said: "there are no plugins for containers' networks".to_owned(),
        })?;
        let of_runtime = folder.join("containerd.toml");
        write(&of_runtime, containerd::configuration(&folder, plugins, &settings.sandbox_image))?;
        write(&networks.join("10-pods.conflist"), containerd::network(&folder, number))?;
        write(&folder.join("kubelet.yaml"), kubelet::configuration(&folder, settings.address))?;

        let mut command = on_machine(&settings.name, Path::new("containerd"));
        command.arg("--config").arg(&of_runtime).envs(settings.environment.iter().cloned());
        let mut this = Self {
            containerd: Program::start("containerd", &folder, &mut command)?,
            kubeconfig: servers.kubelet_kubeconfig(&settings.name),
            program: servers.assets().join("kubelet"),
            kubelet: None,
            settings,
            folder,
        };
        let socket = this.folder.join("containerd.sock");
        let deadline = Instant::now() + READY_TIMEOUT;
        while !socket.exists() {
            this.containerd.must_run()?;
            if Instant::now() > deadline {
                let waited = format!("does not listen after {} s", READY_TIMEOUT.as_secs());
                return Err(this.containerd.complaint(waited));
            }
            sleep(POLL_INTERVAL).await;
        }
        this.start_kubelet()?;
        Ok(this)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// The address of the machine.
    pub fn address(&self) -> Ipv4Addr {
        self.settings.address
    }

    /// Starts the kubelet, unless it runs.
    ///
    /// # Errors
    /// The kubelet does not start.
    pub fn start_kubelet(&mut self) -> Result<(), StartError> {
        if self.kubelet.is_some() {
            return Ok(());
        }
        let mut command = self.command(&self.program);
        command
            .args(["--cloud-provider=external", "--v=2"])
            .arg("--config")
            .arg(self.folder.join("kubelet.yaml"));
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        command.arg("--root-dir").arg(self.folder.join("kubelet"));
        command.arg("--cert-dir").arg(self.folder.join("certificates"));
        command.arg("--hostname-override").arg(&self.settings.name);
        if let Some((configuration, programs)) = &self.settings.credential_provider {
            command.arg("--image-credential-provider-config").arg(configuration);
            command.arg("--image-credential-provider-bin-dir").arg(programs);
        }
        self.kubelet = Some(Program::start("kubelet", &self.folder, &mut command)?);
        Ok(())
    }

    /// Kills the kubelet, as when its machine is switched off.
    pub fn stop_kubelet(&mut self) {
        self.kubelet = None;
    }

    /// A command that runs a program on the machine, in its network.
    pub fn command(&self, program: &Path) -> Command {
        on_machine(&self.settings.name, program)
    }

    /// Fails if a program has ended by itself.
    ///
    /// # Errors
    /// The program with the end of its log.
    pub fn must_run(&mut self) -> Result<(), StartError> {
        self.containerd.must_run()?;
        self.kubelet.as_mut().map_or(Ok(()), Program::must_run)
    }
}

/// Servers, controllers and nodes.
#[derive(Debug)]
pub struct RealCluster {
    /// The nodes, in the order of their settings.
    pub nodes: Vec<RealNode>,
    /// The servers.
    pub servers: RealKubernetes,
}

impl RealCluster {
    /// Starts the servers, the controllers and the nodes from the programs in `assets`, in this order. `flags` are
    /// further ones of kube-apiserver, each a name and a value. Pods get tokens of their service accounts.
    ///
    /// # Errors
    /// The first program that does not start, with the end of its log.
    pub async fn start(
        enclosure: &Enclosure,
        assets: &Path,
        nodes: Vec<NodeSettings>,
        flags: &[(&str, &str)],
    ) -> Result<Self, StartError> {
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let folder = enclosure.folder().join("kubernetes");
        let mut servers =
            RealKubernetes::start_at(enclosure.gateway(), &names, flags, assets, &folder).await?;
        servers.start_controllers()?;
        let mut this = Self { nodes: Vec::new(), servers };
        for (number, settings) in nodes.into_iter().enumerate() {
            this.nodes.push(RealNode::start(enclosure, &this.servers, number, settings).await?);
        }
        Ok(this)
    }
}

/// A command in the network namespace of a machine.
fn on_machine(name: &str, program: &Path) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{name}")).arg(program);
    command
}

/// Creates a network namespace for a machine with its address, and connects it with this process.
fn connect(gateway: Ipv4Addr, number: usize, settings: &NodeSettings) -> Result<(), StartError> {
    for command in connection(gateway, number, settings) {
        run(&command.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// The commands that create the network.
fn connection(gateway: Ipv4Addr, number: usize, settings: &NodeSettings) -> Vec<Vec<String>> {
    let NodeSettings { name, address, .. } = settings;
    let here = format!("machine{number}");
    [
        format!("ip netns add {name}"),
        format!("ip link add {here} type veth peer name eth0 netns {name}"),
        format!("ip link set {here} up"),
        format!("ip route add {address}/32 dev {here} src {gateway}"),
        format!("ip -n {name} link set lo up"),
        format!("ip -n {name} address add {address}/32 dev eth0"),
        format!("ip -n {name} link set eth0 up"),
        format!("ip -n {name} route add {gateway}/32 dev eth0"),
        format!("ip -n {name} route add default via {gateway}"),
    ]
    .iter()
    .map(|line| line.split(' ').map(str::to_owned).collect())
    .collect()
}
