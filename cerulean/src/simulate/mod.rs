//! `cerulean simulate`: Azure, Kubernetes, a whole cluster, or what makes clusters, for other programs to use.

mod azure;
mod azure_options;
mod cluster;
mod folder;
mod input;
mod kubernetes;
pub mod latency;
pub mod limits;
mod management_cluster;
mod ports;
mod region;
mod state_file;

use clap::Subcommand;

use crate::runtime::{TWO_THREADS, runtime};
use crate::screen::Screen;

/// What to simulate.
#[derive(Debug, Subcommand)]
pub enum Simulate {
    /// Azure Resource Manager and Entra over HTTPS, and over plain HTTP with page and control API.
    Azure(Box<azure::AzureArguments>),
    /// The Kubernetes API over TLS, and a kubeconfig for it.
    Kubernetes(Box<kubernetes::KubernetesArguments>),
    /// Azure, Entra and Kubernetes over TLS, machines that become nodes, and files to point programs at.
    Cluster(Box<cluster::ClusterArguments>),
    /// A management cluster with Cluster API's core, and the Azure for its clusters, for a manager that you start.
    #[command(alias = "clusters")]
    ManagementCluster(Box<management_cluster::ManagementClusterArguments>),
}

/// Simulates until it is stopped.
///
/// # Errors
/// A listener, file or certificate cannot be opened.
pub fn run(screen: Screen, simulate: Simulate) -> anyhow::Result<()> {
    match simulate {
        Simulate::Azure(arguments) => runtime(arguments.threads())?.block_on(azure::run(screen, *arguments)),
        Simulate::Kubernetes(arguments) => {
            runtime(arguments.threads())?.block_on(kubernetes::run(screen, *arguments))
        }
        Simulate::Cluster(arguments) => runtime(TWO_THREADS)?.block_on(cluster::run(screen, *arguments)),
        Simulate::ManagementCluster(arguments) => {
            runtime(TWO_THREADS)?.block_on(management_cluster::run(screen, *arguments))
        }
    }
}
