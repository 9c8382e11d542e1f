//! `cerulean simulate cluster`: Azure and Kubernetes, joined.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use azure_simulator::LatencyRule;
use clap::Args;
use cloud_controller_manager::go_values;
use ipnet::IpNet;
use kubernetes_simulator::{Fault, Token};
use simulated_cluster::machine_disks::{self, Devices};
use simulated_cluster::{
    ExtraSubnet, HostedCluster, HostedOptions, NodePool, Orchestration, Shape, StandaloneMachine,
};
use stand_ins::Pace;

use super::azure_options::AzureOptions;
use super::folder::Folder;
use super::input;
use super::limits::Limits;
use super::ports::{self, Ports};
use super::region;
use crate::screen::Screen;
use crate::signals;

/// How to simulate a cluster.
#[derive(Debug, Args)]
#[command(mut_arg("latency", |latency| latency.default_value("quick")))]
pub struct ClusterArguments {
    /// Folder of azure.json, the kubeconfig and ca.pem; it keeps certificate authorities over restarts.
    #[arg(long, default_value = "cerulean-cluster")]
    directory: PathBuf,
    /// Number of machines of the scale set `workers`.
    #[arg(long, value_name = "N", default_value_t = 3)]
    nodes: u64,
    /// Further scale set, as NAME=N, or as NAME=N:flexible for one whose machines are virtual machines; repeatable.
    #[arg(long, value_name = "NAME=N", value_parser = pool)]
    pool: Vec<NodePool>,
    /// Name of a virtual machine that belongs to no scale set; repeatable.
    #[arg(long, value_name = "NAME", value_parser = machine)]
    machine: Vec<String>,
    /// Size of all machines. It says how many disks they take.
    #[arg(long, value_name = "SIZE", default_value = "Standard_D2s_v5")]
    size: String,
    /// Zones of the machines, instead of all of --zones: scale sets are in all of them, machines of their own in the first
    /// one; --machine-zones= is for machines in no zone.
    #[arg(long, value_delimiter = ',', value_parser = region::zone)]
    machine_zones: Option<Vec<String>>,
    /// Number of machines that run the control plane, in addition to the workers.
    #[arg(long, value_name = "N", default_value_t = 0)]
    control_planes: u32,
    /// Give network, machines and Services IPv6 addresses in addition to IPv4 ones.
    #[arg(long)]
    dual_stack: bool,
    /// Give the nodes' subnet a route table for the pods of each node (10.244.0.0/16, fd00:10:244::/56), which
    /// azure.json names.
    #[arg(long)]
    routes: bool,
    /// Further subnet, as NAME=PREFIX or NAME=PREFIX,PREFIX, inside of 10.240.0.0/14 and fd00:10:240::/48; repeatable.
    #[arg(long, value_name = "NAME=PREFIX", value_parser = subnet)]
    subnet: Vec<ExtraSubnet>,
    /// Time after which a silent node counts as lost.
    #[arg(long, default_value = "40s", value_parser = go_values::duration)]
    node_grace: Duration,
    /// Use the Kubernetes of this kubeconfig instead of a simulated one.
    #[arg(long, value_name = "FILE", conflicts_with_all =
        ["kubernetes_port", "kubernetes_control_port", "kubernetes_faults", "token"])]
    kubeconfig: Option<PathBuf>,
    /// Port of the Kubernetes API. 0 and the default are as for --port.
    #[arg(long)]
    kubernetes_port: Option<u16>,
    /// Port of the control API of the simulated Kubernetes. 0 and the default are as for --port.
    #[arg(long)]
    kubernetes_control_port: Option<u16>,
    /// JSON file with faults of the simulated Kubernetes that are in force from the start.
    #[arg(long, value_name = "FILE", value_parser = input::one_or_many::<Fault>)]
    kubernetes_faults: Option<std::vec::Vec<Fault>>,
    /// Bearer token in the kubeconfig, instead of a random one. It is not kept: a start without this option uses the
    /// random one again, which the folder keeps over restarts.
    #[arg(long, value_name = "TEXT", value_parser = input::secret)]
    token: Option<Token>,
    /// Folder of the machines' devices: a disk that is attached to a machine is a loop device below FOLDER/MACHINE/dev and
    /// FOLDER/MACHINE/sys. This needs root.
    #[arg(long, value_name = "FOLDER")]
    volumes: Option<PathBuf>,
    /// Time after which an attached disk is there as a device.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = go_values::duration, requires = "volumes")]
    volume_delay: Duration,
    #[command(flatten)]
    azure: AzureOptions,
}

impl ClusterArguments {
    fn options(self, folder: &Folder, ports: &Ports) -> HostedOptions {
        let size = self.size.as_str();
        let workers = self.machine.iter().map(|name| StandaloneMachine::new(name));
        let control_planes =
            (0..self.control_planes).map(|n| StandaloneMachine::control_plane(&control_plane(n)));
        let shape = Shape {
            region: self.azure.region().to_owned(),
            pools: std::iter::once(NodePool::new(WORKERS.0, WORKERS.1, self.nodes))
                .chain(self.pool)
                .map(|pool| pool.of_size(size))
                .collect(),
            machines: workers.chain(control_planes).map(|machine| machine.of_size(size)).collect(),
            zones: match self.machine_zones {
                Some(zones) => zones.into_iter().filter(|zone| !zone.is_empty()).collect(),
                None => self.azure.zones(),
            },
            more_subnets: self.subnet,
            dual_stack: self.dual_stack,
            route_table: self.routes.then(|| "routes".to_owned()),
            ..Shape::default()
        };
        let mut azure = self.azure.hosted(&shape, Limits::default(), folder.path(), ports);
        if self.volumes.is_some() {
            azure.azure.latency.rules.push(plugging());
        }
        HostedOptions {
            azure,
            shape,
            pace: if self.node_grace == Pace::default().grace {
                Pace::default()
            } else {
                Pace::missed_after(self.node_grace)
            },
            kubeconfig: self.kubeconfig,
            kubernetes_port: ports.choose("kubernetes-port", self.kubernetes_port),
            kubernetes_control_port: ports.choose("kubernetes-control-port", self.kubernetes_control_port),
            token: self.token,
            kubernetes_faults: self.kubernetes_faults.unwrap_or_default(),
            disks: self.volumes.map(|folder| machine_disks::Options {
                folder,
                delay: self.volume_delay,
                devices: Devices::Loop,
            }),
        }
    }
}

/// The scale set of `--nodes`, and the prefix of its machines' names.
const WORKERS: (&str, &str) = ("workers", "worker");

/// How long operations on machines with devices take where nothing else says so. Azure plugs disks in while the operation runs,
/// and some drivers look for the device once, when it has ended.
fn plugging() -> LatencyRule {
    LatencyRule {
        method: "P*".to_owned(),
        resource_type: "Microsoft.Compute/virtualMachine*".to_owned(),
        ms: 500,
        ..LatencyRule::default()
    }
}

/// The maximum length of a host name: it becomes the label `kubernetes.io/hostname`.
const MAX_HOST_NAME: usize = 63;
/// The number of characters that Azure appends to the prefix of a scale set's machines.
const MACHINE_NUMBER: usize = 6;

/// Checks that machines can have this name: a kubelet registers under its host's name, in lower case.
///
/// # Errors
/// The requirements of such a name.
fn host_name(name: &str, more: usize) -> Result<(), String> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let is_outer = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let max = MAX_HOST_NAME - more;
    let fits = name.chars().all(is_inner)
        && is_outer(name.chars().next())
        && is_outer(name.chars().last())
        && name.split('.').all(|label| !label.starts_with('-') && !label.ends_with('-') && !label.is_empty())
        && name.len() <= max;
    let form = || {
        format!(
            "no node can have this name: give one of letters, digits, - and ., at most {max} characters, that begins and \
             ends with a letter or a digit"
        )
    };
    if fits { Ok(()) } else { Err(form()) }
}

/// Parses the name of a virtual machine.
fn machine(name: &str) -> Result<String, String> {
    host_name(name, 0).map(|()| name.to_owned())
}

/// The scale set that a machine of this name would belong to: its instances are numbered from 000000 on.
fn set_of<'a>(name: &str, prefixes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let is_number = |rest: &str| rest.len() == MACHINE_NUMBER && rest.starts_with("000");
    let mut sets = prefixes.into_iter();
    let of = sets.find(|(_, prefix)| name.strip_prefix(&prefix.to_ascii_lowercase()).is_some_and(is_number));
    of.map(|(set, _)| set)
}

/// The name of a machine of the control plane.
fn control_plane(number: u32) -> String {
    format!("control-plane-{number}")
}

/// Checks that the names of machines, scale sets and subnets are unique.
///
/// # Errors
/// Two have the same name: the option to change, and a proposal.
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
        let pools = arguments.pool.iter().filter(|pool| pool.orchestration == Orchestration::Uniform);
        let pools = pools.map(|pool| (pool.name.as_str(), pool.prefix.as_str()));
        if let Some(set) = set_of(name, std::iter::once(WORKERS).chain(pools)) {
            bail!(
                "--machine {name}: the machines of the scale set {set} are named so, one after the other; give this \
                 machine another name"
            );
        }
        if (0..arguments.control_planes).any(|number| control_plane(number).eq_ignore_ascii_case(name)) {
            bail!("--machine {name}: --control-planes makes a machine of this name; give this one another");
        }
    }
    let own = &Shape::default().subnet;
    for (index, ExtraSubnet { name, prefixes }) in arguments.subnet.iter().enumerate() {
        let given = format!("--subnet {name}={}", prefixes.join(","));
        if name.eq_ignore_ascii_case(own) {
            bail!("{given}: the subnet of the nodes has this name; give this one another");
        }
        let networks = [Shape::NETWORK_V4, Shape::NETWORK_V6].map(str::parse::<IpNet>);
        let is_inside = |prefix: &&String| {
            let prefix: Option<IpNet> = prefix.parse().ok();
            prefix.is_some_and(|prefix| networks.iter().flatten().any(|network| network.contains(&prefix)))
        };
        if let Some(outside) = prefixes.iter().find(|prefix| !is_inside(prefix)) {
            let (v4, v6) = (Shape::NETWORK_V4, Shape::NETWORK_V6);
            bail!(
                "{given}: {outside} is not a range inside of {v4} (or {v6} with --dual-stack), which the network has"
            );
        }
        if arguments.subnet.iter().take(index).any(|other| other.name.eq_ignore_ascii_case(name)) {
            bail!("{given}: another --subnet has this name; give each a name of its own");
        }
    }
    Ok(())
}

/// Parses `NAME=N` or `NAME=N:flexible`.
fn pool(text: &str) -> Result<NodePool, String> {
    let form = || "must be like spot=2 or spot=2:flexible".to_owned();
    let (name, rest) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(form)?;
    let (nodes, mode) = rest.split_once(':').unwrap_or((rest, "uniform"));
    host_name(name, MACHINE_NUMBER)?;
    let pool = NodePool::new(name, name, nodes.parse().map_err(|_| form())?);
    match mode {
        "uniform" => Ok(pool),
        "flexible" => Ok(pool.flexible()),
        _ => Err(form()),
    }
}

/// Parses `NAME=PREFIX` or `NAME=PREFIX,PREFIX`.
fn subnet(text: &str) -> Result<ExtraSubnet, String> {
    let (name, prefixes) = text
        .split_once('=')
        .filter(|(name, prefixes)| !name.is_empty() && prefixes.contains('/'))
        .ok_or_else(|| "must be like apps=10.241.0.0/24".to_owned())?;
    Ok(ExtraSubnet { name: name.to_owned(), prefixes: prefixes.split(',').map(str::to_owned).collect() })
}

/// The controller manager's flags for ranges and routes of pods.
fn route_flags(dual_stack: bool) -> String {
    let more = if dual_stack { format!(",{}", Shape::PODS_V6) } else { String::new() };
    format!("--allocate-node-cidrs=true --cluster-cidr={}{more}", Shape::PODS_V4)
}

/// Serves it until it is stopped.
///
/// # Errors
/// A listener, file or certificate cannot be opened.
pub async fn run(screen: Screen, arguments: ClusterArguments) -> anyhow::Result<()> {
    check_names(&arguments)?;
    if let Some(path) = &arguments.kubeconfig {
        std::fs::File::open(path).with_context(|| format!("--kubeconfig {}", path.display()))?;
    }
    let stop = signals::stop_token()?;
    let folder = Folder::take(&arguments.directory)?;
    let ports = Ports::of(&folder)?;
    let [kubernetes, control] = [arguments.kubernetes_port, arguments.kubernetes_control_port];
    let mut chosen = arguments.azure.chosen_ports().to_vec();
    chosen.extend([("kubernetes-port", kubernetes), ("kubernetes-control-port", control)]);
    let routes = arguments.routes.then(|| route_flags(arguments.dual_stack));
    let cluster = HostedCluster::start(arguments.options(&folder, &ports), &stop).await;
    let cluster = cluster.map_err(|error| ports::explain(error.into(), &chosen))?;
    let mut urls = vec![
        ("port", cluster.control.as_str()),
        ("https-port", &cluster.resource_manager),
        ("authority-port", &cluster.authority),
        ("proxy-port", &cluster.proxy),
    ];
    if let (Some(url), Some(control)) = (&cluster.kubernetes_url, &cluster.kubernetes_control) {
        urls.extend([("kubernetes-port", url.as_str()), ("kubernetes-control-port", control)]);
    }
    ports.keep(&urls)?;
    let files = &cluster.files;
    screen.line(format_args!("Azure Resource Manager  {}", cluster.resource_manager));
    screen.line(format_args!("page and control API    {}", cluster.page()));
    if let Some(metadata) = &cluster.metadata {
        screen.line(format_args!("metadata of machines    {metadata}"));
    }
    if let Some(control) = &cluster.kubernetes_control {
        screen.line(format_args!("control of Kubernetes   {control}/_cerulean/"));
    }
    if let Some(disks) = &cluster.disks {
        screen.line(format_args!("devices of machines     {}", disks.folder().join("MACHINE").display()));
    }
    screen.line("");
    screen.line("Run the controller manager:");
    screen.line(format_args!("  SSL_CERT_FILE={} \\", files.certificate_authority.display()));
    screen.line("  azure-cloud-controller-manager --cluster-name=here \\");
    screen.line(format_args!("    --cloud-config={} \\", files.azure_json.display()));
    if let Some(routes) = routes {
        screen.line(format_args!("    {routes} \\"));
    }
    screen.line(format_args!("    --kubeconfig={} --v=2", files.kubeconfig.display()));
    screen.line("");
    screen.line("Use the cluster:");
    screen.line(format_args!("  export KUBECONFIG={}", files.kubeconfig.display()));
    screen.line("  kubectl get nodes");
    screen.line("");
    screen.line("Stop with Ctrl-C.");
    stop.cancelled().await;
    if let Some(disks) = cluster.disks {
        disks.release().await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
            (&["--machine=worker000000"], "--machine worker000000: the machines of the scale set workers"),
            (&["--machine=Worker0000ZZ"], "--machine Worker0000ZZ: the machines of the scale set workers"),
            (&["--pool=spot=1", "--machine=spot000000"], "the machines of the scale set spot are named so"),
            (&["--control-planes=1", "--machine=control-plane-0"], "--control-planes makes a machine"),
            (&["--subnet=nodes=10.241.0.0/24"], "--subnet nodes=10.241.0.0/24: the subnet of the nodes has"),
            (
                &["--subnet=x=10.99.0.0/16"],
                "--subnet x=10.99.0.0/16: 10.99.0.0/16 is not a range inside of 10.240.0.0/14",
            ),
            (&["--subnet=a=10.241.0.0/24", "--subnet=A=10.242.0.0/24"], "another --subnet has this name"),
        ] {
            assert!(said(options).contains(words), "{options:?}: {}", said(options));
        }
        let free = [
            "--pool=a=1",
            "--pool=b=2",
            "--machine=c",
            "--machine=d",
            "--machine=worker1",
            "--subnet=c=10.241.0.0/24",
        ];
        assert_eq!(said(&free), "");
    }

    #[test]
    fn the_printed_command_asks_for_routes() {
        assert_eq!(route_flags(false), "--allocate-node-cidrs=true --cluster-cidr=10.244.0.0/16");
        assert!(route_flags(true).ends_with("=10.244.0.0/16,fd00:10:244::/56"));
    }

    #[test]
    fn names_that_no_node_can_have_are_refused_with_what_can_be() {
        for wrong in ["", "a_b", "UPPER_case", "-a", "a-", "a..b", "a b", "a/b", &"a".repeat(64)] {
            assert!(machine(wrong).unwrap_err().contains("at most 63 characters"), "{wrong}");
        }
        for wrong in ["a_b=1", "-a=1", "a/b=2:flexible", &format!("{}=1", "a".repeat(58))] {
            assert!(pool(wrong).unwrap_err().contains("at most 57 characters"), "{wrong}");
        }
        for fine in ["a", "A1", "a-b.c", &"a".repeat(63)] {
            assert_eq!(machine(fine).as_deref(), Ok(fine));
        }
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
