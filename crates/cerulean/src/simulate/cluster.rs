//! `cerulean simulate cluster`: Azure and Kubernetes, joined.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use azure_simulator::LatencyProfile;
use clap::Args;
use clock::Clock;
use cloud_controller_manager::go_values;
use kubernetes_simulator::Token;
use kubernetes_simulator::kubelet::Pace;
use simulated_cluster::{
    Credentials, ExtraSubnet, HostedCluster, HostedOptions, NodePool, Ports, Shape, StandaloneMachine,
};

use super::folder::Folder;
use super::{azure, input, latency};
use crate::screen::Screen;
use crate::signals;

/// How to simulate a cluster.
#[derive(Debug, Args)]
pub struct ClusterArguments {
    /// Where azure.json, the kubeconfig and ca.pem go; certificate authorities are kept there over restarts.
    #[arg(long, default_value = "cerulean-cluster")]
    directory: PathBuf,
    /// How many machines the scale set `workers` has.
    #[arg(long, value_name = "N", default_value_t = 3)]
    nodes: u64,
    /// A further scale set, as NAME=N, or as NAME=N:flexible for one whose machines are virtual machines;
    /// repeatable.
    #[arg(long, value_name = "NAME=N", value_parser = pool)]
    pool: Vec<NodePool>,
    /// A virtual machine that belongs to no scale set, by its name; repeatable.
    #[arg(long, value_name = "NAME")]
    machine: Vec<String>,
    /// How many machines run the control plane, beside the workers.
    #[arg(long, value_name = "N", default_value_t = 0)]
    control_planes: u32,
    /// Give network, machines and Services IPv6 addresses beside IPv4 ones.
    #[arg(long)]
    dual_stack: bool,
    /// A further subnet, as NAME=PREFIX or NAME=PREFIX,PREFIX, inside of 10.240.0.0/14 and fd00:10:240::/48;
    /// repeatable.
    #[arg(long, value_name = "NAME=PREFIX", value_parser = subnet)]
    subnet: Vec<ExtraSubnet>,
    /// The region of everything, such as westeurope.
    #[arg(long, default_value = "westeurope", value_parser = azure::region)]
    region: String,
    /// How long Azure's operations take: instant, quick, typical or a JSON file.
    #[arg(long, default_value = "quick", value_parser = latency::parse)]
    latency: LatencyProfile,
    /// Use the Kubernetes behind this kubeconfig instead of a simulated one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kubernetes_port", "token"])]
    kubeconfig: Option<PathBuf>,
    /// After how long a silent node is missed.
    #[arg(long, default_value = "40s", value_parser = go_values::duration)]
    node_grace: Duration,
    /// The port of the page and the control API; 0 for any.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The port of Azure Resource Manager; 0 for any.
    #[arg(long, default_value_t = 0)]
    https_port: u16,
    /// The port of the authority (Entra); 0 for any.
    #[arg(long, default_value_t = 0)]
    authority_port: u16,
    /// The port of the Kubernetes API; 0 for any.
    #[arg(long, default_value_t = 0)]
    kubernetes_port: u16,
    /// The client secret in azure.json, instead of a random one. It is not kept: a start without this option has
    /// the random one again, which the folder keeps over restarts.
    #[arg(long, value_name = "TEXT", value_parser = input::secret)]
    client_secret: Option<Token>,
    /// The bearer token in the kubeconfig, instead of a random one. It is not kept either.
    #[arg(long, value_name = "TEXT", value_parser = input::secret)]
    token: Option<Token>,
    /// Source of every id and address.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl ClusterArguments {
    fn options(self, folder: &Folder) -> HostedOptions {
        let workers = self.machine.iter().map(|name| StandaloneMachine::new(name));
        let control_planes =
            (0..self.control_planes).map(|n| StandaloneMachine::control_plane(&format!("control-plane-{n}")));
        HostedOptions {
            shape: Shape {
                region: self.region,
                pools: std::iter::once(NodePool::new(WORKERS.0, WORKERS.1, self.nodes))
                    .chain(self.pool)
                    .collect(),
                machines: workers.chain(control_planes).collect(),
                more_subnets: self.subnet,
                dual_stack: self.dual_stack,
                ..Shape::default()
            },
            latency: self.latency,
            seed: self.seed,
            pace: if self.node_grace == Pace::default().grace {
                Pace::default()
            } else {
                Pace::missed_after(self.node_grace)
            },
            directory: folder.path().to_owned(),
            kubeconfig: self.kubeconfig,
            ports: Ports {
                control: self.port,
                resource_manager: self.https_port,
                authority: self.authority_port,
                kubernetes: self.kubernetes_port,
            },
            credentials: Credentials { client_secret: self.client_secret, token: self.token },
            now: Clock::system().now(),
        }
    }
}

/// The scale set of `--nodes`, and what its machines' names begin with.
const WORKERS: (&str, &str) = ("workers", "worker");

/// Finds out whether each machine has a name of its own, and each scale set.
///
/// # Errors
/// Two have the same: which option is to be changed, and to what.
fn check_names(arguments: &ClusterArguments) -> anyhow::Result<()> {
    let (workers, prefix) = WORKERS;
    for (index, NodePool { name, nodes, .. }) in arguments.pool.iter().enumerate() {
        if name.eq_ignore_ascii_case(workers) {
            bail!(
                "--pool {name}={nodes}: the scale set that --nodes makes has this name; give this one another, or \
                 say --nodes {nodes} for the size of that one"
            );
        }
        if name.eq_ignore_ascii_case(prefix) {
            bail!(
                "--pool {name}={nodes}: the machines of the scale set {workers}, which --nodes makes, are named \
                 {prefix}000000 and on, and these would be, too; give this scale set another name"
            );
        }
        if arguments.pool.iter().take(index).any(|other| other.name.eq_ignore_ascii_case(name)) {
            bail!("--pool {name}={nodes}: another --pool has this name; give each a name of its own");
        }
    }
    for (index, name) in arguments.machine.iter().enumerate() {
        if arguments.machine.iter().take(index).any(|other| other.eq_ignore_ascii_case(name)) {
            bail!("--machine {name}: another --machine has this name; give each a name of its own");
        }
    }
    Ok(())
}

/// Reads `NAME=N` or `NAME=N:flexible`.
fn pool(text: &str) -> Result<NodePool, String> {
    let form = || "must be like spot=2 or spot=2:flexible".to_owned();
    let (name, rest) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(form)?;
    let (nodes, mode) = rest.split_once(':').unwrap_or((rest, "uniform"));
    let pool = NodePool::new(name, name, nodes.parse().map_err(|_| form())?);
    match mode {
        "uniform" => Ok(pool),
        "flexible" => Ok(pool.flexible()),
        _ => Err(form()),
    }
}

/// Reads `NAME=PREFIX` or `NAME=PREFIX,PREFIX`.
fn subnet(text: &str) -> Result<ExtraSubnet, String> {
    let (name, prefixes) = text
        .split_once('=')
        .filter(|(name, prefixes)| !name.is_empty() && prefixes.contains('/'))
        .ok_or_else(|| "must be like apps=10.241.0.0/24".to_owned())?;
    Ok(ExtraSubnet { name: name.to_owned(), prefixes: prefixes.split(',').map(str::to_owned).collect() })
}

/// Serves it until told to stop.
///
/// # Errors
/// A listener, file or certificate that cannot be had.
pub async fn run(screen: Screen, arguments: ClusterArguments) -> anyhow::Result<()> {
    check_names(&arguments)?;
    let stop = signals::stop_token()?;
    let folder = Folder::take(&arguments.directory)?;
    let cluster = HostedCluster::start(arguments.options(&folder), &stop).await?;
    let files = &cluster.files;
    screen.line(format_args!("Azure Resource Manager  {}", cluster.resource_manager));
    screen.line(format_args!("page and control API    {}", cluster.page()));
    screen.line("");
    screen.line("Run the controller manager:");
    screen.line(format_args!("  SSL_CERT_FILE={} \\", files.certificate_authority.display()));
    screen.line("  azure-cloud-controller-manager --cluster-name=here \\");
    screen.line(format_args!("    --cloud-config={} \\", files.azure_json.display()));
    screen.line(format_args!("    --kubeconfig={} --v=2", files.kubeconfig.display()));
    screen.line("");
    screen.line("Use the cluster:");
    screen.line(format_args!("  export KUBECONFIG={}", files.kubeconfig.display()));
    screen.line("  kubectl get nodes");
    screen.line("");
    screen.line("Stop with Ctrl-C.");
    stop.cancelled().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use simulated_cluster::Orchestration;

    use super::*;

    #[test]
    fn names_that_clash_are_refused_with_who_has_them() {
        #[derive(clap::Parser)]
        struct Cli {
            #[command(flatten)]
            arguments: ClusterArguments,
        }
        let said = |options: &[&str]| {
            let all = std::iter::once("x").chain(options.iter().copied());
            let cli = <Cli as clap::Parser>::parse_from(all);
            check_names(&cli.arguments).err().map(|error| error.to_string()).unwrap_or_default()
        };
        for (options, words) in [
            (&["--pool=workers=2"][..], "--pool workers=2: the scale set that --nodes makes has this name"),
            (&["--pool=workers=2"], "say --nodes 2"),
            (&["--pool=worker=2"], "are named worker000000 and on"),
            (&["--pool=a=1", "--pool=A=2"], "--pool A=2: another --pool has this name"),
            (&["--machine=a", "--machine=a"], "--machine a: another --machine has this name"),
        ] {
            assert!(said(options).contains(words), "{options:?}: {}", said(options));
        }
        assert_eq!(said(&["--pool=a=1", "--pool=b=2", "--machine=c", "--machine=d"]), "");
    }

    #[test]
    fn pools_and_subnets_are_read_from_the_command_line() {
        assert_eq!(pool("spot=2").unwrap(), NodePool::new("spot", "spot", 2));
        assert_eq!(pool("vms=1:flexible").unwrap().orchestration, Orchestration::Flexible);
        for wrong in ["spot", "=2", "spot=two", "spot=2:loose"] {
            assert_eq!(pool(wrong).unwrap_err(), "must be like spot=2 or spot=2:flexible", "{wrong}");
        }
        let both = subnet("apps=10.241.0.0/24,fd00:10:240:1::/64").unwrap();
        assert_eq!((both.name.as_str(), both.prefixes.len()), ("apps", 2));
        assert!(subnet("apps").unwrap_err().contains("10.241.0.0/24"));
    }
}
