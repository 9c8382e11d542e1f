//! `cerulean bench`: figures, measured here and now.
//!
//! There is no pass or fail: the tables are for people and for comparing runs.

mod clusters;
mod credentials;
mod kubernetes;
mod node_manager;
mod nodes;
mod parallel;
mod planning;
mod process;
mod resident;
mod services;
mod simulator;
mod simulators;
mod statistics;
mod turnover;
mod volumes;

use clap::Subcommand;

use crate::screen::Screen;

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// The manager of clusters: how long one cluster takes, compared with its critical path, and a hundred clusters
    /// with a thousand machines: time, calls to Azure, memory.
    Clusters(clusters::Arguments),
    /// One call of the kubelet's credential provider for container registries: time and memory.
    Credentials(credentials::Arguments),
    /// The simulated Kubernetes under 5,000 nodes and 20,000 pods: lists, writes a second on one core, watches, memory.
    Kubernetes(kubernetes::Arguments),
    /// The node manager: from its start to a node that is initialised, and its memory.
    NodeManager(node_manager::Arguments),
    /// The controller manager with 5,000 nodes and 1,000 Services: memory, and what it reads of Azure.
    Nodes(nodes::Arguments),
    /// Planning for 1,000 Services on 1,000 nodes, and what one change costs there.
    Planning(planning::Arguments),
    /// The controller manager from its start to a restart, with Services, a new node and a dead one: times, calls,
    /// memory, compared with the program that it replaces.
    Services(services::Arguments),
    /// The simulated Azure under 5,000 machines: lists, requests a second on one core, memory.
    Simulator(simulator::Arguments),
    /// The driver for disks: volumes created, attached, moved and deleted at once: times, calls, memory of both roles,
    /// compared with the driver that it replaces.
    Volumes(volumes::Arguments),
}

/// Measures and prints a table.
///
/// # Errors
/// The measured program fails.
pub fn run(screen: Screen, bench: Bench) -> anyhow::Result<()> {
    match bench {
        Bench::Clusters(arguments) => clusters::run(screen, &arguments),
        Bench::Credentials(arguments) => credentials::run(screen, &arguments),
        Bench::Kubernetes(arguments) => kubernetes::run(screen, &arguments),
        Bench::NodeManager(arguments) => node_manager::run(screen, &arguments),
        Bench::Nodes(arguments) => nodes::run(screen, arguments),
        Bench::Planning(arguments) => planning::run(screen, &arguments),
        Bench::Services(arguments) => services::run(screen, arguments),
        Bench::Simulator(arguments) => simulator::run(screen, &arguments),
        Bench::Volumes(arguments) => volumes::run(screen, &arguments),
    }
}
