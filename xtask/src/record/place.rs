//! The environment of the programs: Azure, the management cluster, Cluster API, and the clusters of its machines.

use std::path::{Path, PathBuf};

use azure_simulator::packet::Source;
use kube::Client;
use kubernetes_simulator::{Kubernetes, Options};
use simulated_cluster::Shape;

use crate::world::{SEED, World};

/// Azure with a simulated management cluster; both end when this value is dropped.
pub struct Place {
    /// Azure, and the clusters in it.
    pub world: World,
    /// The management cluster.
    pub kubernetes: Kubernetes,
    /// A client of it.
    pub client: Client,
    /// The kubeconfig of programs.
    pub kubeconfig: PathBuf,
}

impl Place {
    /// Starts Azure and the management cluster in the subscription, tenant and region of `shape`; managers of clusters
    /// reach their API servers from `management`.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start(directory: &Path, shape: &Shape, management: Source) -> anyhow::Result<Self> {
        let world = World::start(directory, shape, management, azure_simulator::Options::default()).await?;
        let kubernetes = Kubernetes::new(Options { seed: SEED, ..Options::default() });
        let address = kubernetes.serve_https(([127, 0, 0, 1], 0).into(), world.stop.clone()).await?;
        let kubeconfig = directory.join("kubeconfig");
        std::fs::write(&kubeconfig, kubernetes.kubeconfig(&format!("https://{address}"))?)?;
        let client = Client::new(kubernetes.router(), "default");
        world.play_cluster_api(&client, kubernetes.clock()).await?;
        Ok(Self { world, kubernetes, client, kubeconfig })
    }
}
