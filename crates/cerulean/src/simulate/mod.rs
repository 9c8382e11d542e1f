//! `cerulean simulate`: Azure alone, or a whole cluster, for other programs to use.

mod azure;
mod input;
pub mod latency;
pub mod limits;

use std::path::PathBuf;
use std::time::Duration;

use azure_simulator::LatencyProfile;
use clap::{Args, Subcommand};
use cloud_controller_manager::go_values;
use kubernetes_simulator::kubelet::Pace;
use simulated_cluster::{HostedCluster, HostedOptions, NodePool, Shape};

use crate::screen::Screen;
use crate::{TWO_THREADS, clock, runtime, signals};

/// What to simulate.
#[derive(Debug, Subcommand)]
pub enum Simulate {
    /// Azure Resource Manager and Entra over HTTPS, and over plain HTTP with page and control API.
    Azure(Box<azure::AzureArguments>),
    /// Azure, Entra and Kubernetes over TLS, machines that become nodes, and files to point programs at.
    Cluster(ClusterArguments),
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
    /// How long Azure's operations take: instant, quick, typical or a JSON file.
    #[arg(long, default_value = "quick", value_parser = latency::parse)]
    latency: LatencyProfile,
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
    match simulate {
        Simulate::Azure(arguments) => runtime(arguments.threads())?.block_on(azure::run(screen, *arguments)),
        Simulate::Cluster(arguments) => runtime(TWO_THREADS)?.block_on(cluster(screen, arguments)),
    }
}

async fn cluster(screen: Screen, arguments: ClusterArguments) -> anyhow::Result<()> {
    let ClusterArguments { directory, nodes, latency, kubeconfig, node_grace, port, seed } = arguments;
    let stop = signals::stop_token()?;
    let options = HostedOptions {
        shape: Shape { pools: vec![NodePool::new("workers", "worker", nodes)], ..Shape::default() },
        latency,
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
