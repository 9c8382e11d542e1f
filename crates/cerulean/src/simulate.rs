//! `cerulean simulate`: Azure alone, or a whole cluster, for other programs to use.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use azure_simulator::{LatencyProfile, Options};
use clap::{Args, Subcommand, ValueEnum};
use cloud_controller_manager::go_values;
use kubernetes_simulator::kubelet::Pace;
use simulated_cluster::{HostedAzure, HostedAzureOptions, HostedCluster, HostedOptions, NodePool, Shape};

use crate::screen::Screen;
use crate::{clock, runtime, signals};

/// What to simulate.
#[derive(Debug, Subcommand)]
pub enum Simulate {
    /// Azure Resource Manager and Entra over HTTPS, and over plain HTTP with page and control API.
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
    /// The port for plain HTTP; 0 for any.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The port for HTTPS; 0 for any.
    #[arg(long, default_value_t = 0)]
    https_port: u16,
    /// Where ca.pem and credentials.json go; the certificate authority is kept there over restarts.
    #[arg(long, default_value = "cerulean-azure")]
    directory: PathBuf,
    /// Accept any bearer token, and requests without one.
    #[arg(long)]
    without_tokens: bool,
    /// How long operations take.
    #[arg(long, value_enum, default_value_t = Latency::Instant)]
    latency: Latency,
    /// Source of every id and address.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the URL of plain HTTP into this file once it answers.
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
    let AzureArguments { port, https_port, directory, without_tokens, latency, seed, address_file } =
        arguments;
    let stop = signals::stop_token()?;
    let hosted = HostedAzure::start(
        HostedAzureOptions {
            // The subscription of no digit but 0: what examples and recordings without a real one have.
            shape: Shape { subscription: Options::default().subscription, ..Shape::default() },
            latency: latency.profile(),
            seed,
            directory: std::path::absolute(&directory)?,
            port,
            https_port,
            check_tokens: !without_tokens,
            now: clock::now(),
        },
        &stop,
    )
    .await?;
    if let Some(path) = address_file {
        std::fs::write(&path, format!("{}\n", hosted.http)).with_context(|| path.display().to_string())?;
    }
    screen.line(format_args!("HTTPS, with Entra       {}", hosted.https));
    screen.line(format_args!("plain HTTP              {}", hosted.http));
    screen.line(format_args!("page                    {}{}", hosted.http, azure_simulator::page::PATH));
    screen.line(format_args!("certificate authority   {}", hosted.certificate_authority.display()));
    screen.line(format_args!("whom to sign in as      {}", hosted.credentials.display()));
    screen.line("Stop with Ctrl-C.");
    stop.cancelled().await;
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
