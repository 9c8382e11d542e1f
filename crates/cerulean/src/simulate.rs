//! `cerulean simulate`: Azure alone, or a whole cluster, for other programs to use.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use azure_simulator::packet::AlwaysHealthy;
use azure_simulator::page::{self, AzurePage};
use azure_simulator::{Azure, LatencyProfile, Options, serve};
use clap::{Args, Subcommand, ValueEnum};
use cloud_controller_manager::go_values;
use kubernetes_simulator::kubelet::Pace;
use simulated_cluster::{HostedCluster, HostedOptions, NodePool, Shape};

use crate::screen::Screen;
use crate::{clock, runtime, signals};

/// What to simulate.
#[derive(Debug, Subcommand)]
pub enum Simulate {
    /// Azure Resource Manager over plain HTTP, with its page and control API.
    Azure(AzureArguments),
    /// Azure, Entra and Kubernetes over TLS, machines that become nodes, and files to point programs at.
    Cluster(ClusterArguments),
}

/// How long Azure's operations take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Latency {
    /// No time at all.
    Instant,
    /// Long enough to see, short enough to wait for: a second for networks, none for machines.
    Quick,
    /// What users of Azure know.
    Typical,
}

impl Latency {
    /// The profile of this name.
    pub fn profile(self) -> LatencyProfile {
        match self {
            Self::Instant => LatencyProfile::instant(),
            Self::Typical => LatencyProfile::typical(),
            Self::Quick => {
                LatencyProfile::instant().with("*", "Microsoft.Network/*", Duration::from_millis(800))
            }
        }
    }
}

/// How to simulate Azure alone.
#[derive(Debug, Args)]
pub struct AzureArguments {
    /// The port to listen on; 0 for any.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Accept any bearer token, and requests without one.
    #[arg(long)]
    without_tokens: bool,
    /// How long operations take.
    #[arg(long, value_enum, default_value_t = Latency::Instant)]
    latency: Latency,
    /// Source of every id and address.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the URL into this file once it answers.
    #[arg(long)]
    address_file: Option<PathBuf>,
}

/// How to simulate a cluster.
#[derive(Debug, Args)]
pub struct ClusterArguments {
    /// Where azure.json, the kubeconfig and ca.pem go.
    #[arg(long, default_value = "cerulean-cluster")]
    directory: PathBuf,
    /// How many machines the scale set has.
    #[arg(long, default_value_t = 3)]
    nodes: u64,
    /// How long Azure's operations take.
    #[arg(long, value_enum, default_value_t = Latency::Quick)]
    latency: Latency,
    /// Use the Kubernetes behind this kubeconfig instead of a simulated one.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// After how long a silent node is missed.
    #[arg(long, default_value = "40s", value_parser = go_values::duration)]
    node_grace: Duration,
    /// The port of the page and the control API; 0 for any.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Source of every id and address.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Simulates until told to stop.
///
/// # Errors
/// A listener, file or certificate that cannot be had.
pub fn run(screen: Screen, simulate: Simulate) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        match simulate {
            Simulate::Azure(arguments) => azure(screen, arguments).await,
            Simulate::Cluster(arguments) => cluster(screen, arguments).await,
        }
    })
}

async fn azure(screen: Screen, arguments: AzureArguments) -> anyhow::Result<()> {
    let AzureArguments { port, without_tokens, latency, seed, address_file } = arguments;
    let stop = signals::stop_token()?;
    let azure = Azure::new(Options {
        seed,
        latency: latency.profile(),
        start: clock::now(),
        require_auth: !without_tokens,
        ..Options::default()
    });
    let page = std::sync::Arc::new(AzurePage::new(azure.clone(), AlwaysHealthy));
    let routes = azure.router().merge(page::router(page));
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let server = serve::serve(address, routes, None, stop.clone()).await?;
    if let Some(path) = address_file {
        std::fs::write(&path, format!("{}\n", server.url())).with_context(|| path.display().to_string())?;
    }
    screen.line(format_args!("Azure Resource Manager  {}", server.url()));
    screen.line(format_args!("page                    {}{}", server.url(), page::PATH));
    screen.line("Stop with Ctrl-C.");
    server.stopped().await;
    Ok(())
}

async fn cluster(screen: Screen, arguments: ClusterArguments) -> anyhow::Result<()> {
    let ClusterArguments { directory, nodes, latency, kubeconfig, node_grace, port, seed } = arguments;
    let stop = signals::stop_token()?;
    let options = HostedOptions {
        shape: Shape { pools: vec![NodePool::new("workers", "worker", nodes)], ..Shape::default() },
        latency: latency.profile(),
        seed,
        pace: if node_grace == Pace::default().grace {
            Pace::default()
        } else {
            Pace::missed_after(node_grace)
        },
        directory: std::path::absolute(&directory)?,
        kubeconfig,
        control_port: port,
        now: clock::now(),
    };
    let cluster = HostedCluster::start(options, &stop).await?;
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
