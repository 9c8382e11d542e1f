//! A simulated cluster for a driver: two scale sets, whose machines are nodes.

use std::time::Duration;

use anyhow::Context as _;
use azure_simulator::Options;
use azure_types::ResourceId;
use clock::Clock;
use kubernetes_simulator::Kubernetes;
use simulated_cluster::{HostedCluster, HostedOptions, NodePool, Shape};
use tempfile::TempDir;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::arguments::Arguments;
use super::driver::Files;
use crate::bench::simulators::{initialise_nodes, is_initialised};
use crate::simulate::limits;

/// The size of the machines, and the data disks that it takes.
const SIZE: &str = "Standard_D32s_v5";
/// See [`SIZE`].
pub const SLOTS: u32 = 32;

/// The time within which all nodes are there.
const NODES_TIMEOUT: Duration = Duration::from_secs(60);

/// The cluster. It stops on drop.
pub struct Stage {
    /// The simulated Azure and everything around it.
    pub cluster: HostedCluster,
    /// The simulated Kubernetes.
    pub kubernetes: Kubernetes,
    /// The resource group of everything.
    pub group: ResourceId,
    /// The nodes that volumes are attached to.
    pub first: Vec<String>,
    /// The nodes that they move to.
    pub second: Vec<String>,
    directory: TempDir,
    _stop: DropGuard,
}

impl Stage {
    /// Creates a cluster with two scale sets of so many machines, and waits for its nodes.
    ///
    /// # Errors
    /// A simulator cannot be started.
    pub async fn lay_out(arguments: &Arguments, machines: u32) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("cerulean-bench-").tempdir()?;
        let stop = CancellationToken::new();
        let pool = |name: &str| NodePool::new(name, name, machines.into()).of_size(SIZE);
        let shape = Shape { pools: vec![pool("first"), pool("second")], ..Shape::default() };
        let group = shape.group();
        let azure = Options {
            latency: arguments.latency.profile.clone(),
            limits: limits::enough_cores(),
            start: Clock::system().now(),
            ..Options::default()
        };
        let options = HostedOptions::of(shape, azure, directory.path());
        let cluster = HostedCluster::start(options, &stop).await?;
        let kubernetes = cluster.kubernetes.clone().context("the cluster has a Kubernetes of its own")?;
        let initialise = initialise_nodes(kubernetes.clone(), cluster.azure.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(initialise));
        let count = usize::try_from(machines)? * 2;
        let all = kubernetes.until("Node", |nodes| {
            let are_all = nodes.len() == count && nodes.iter().all(|node| is_initialised(node));
            are_all.then(|| nodes.iter().map(|node| node.name().to_owned()).collect::<Vec<_>>())
        });
        let nodes = timeout(NODES_TIMEOUT, all).await.context("the nodes do not come")??;
        let (first, second) = nodes.into_iter().partition(|name| name.starts_with("first"));
        Ok(Self { cluster, kubernetes, group, first, second, directory, _stop: stop.drop_guard() })
    }

    /// The files for a driver.
    pub fn files(&self) -> Files<'_> {
        let files = &self.cluster.files;
        Files {
            cloud_config: &files.azure_json,
            kubeconfig: &files.kubeconfig,
            certificate_authority: &files.certificate_authority,
            directory: self.directory.path(),
        }
    }
}
