//! The environment of the programs: Azure, the management cluster, Cluster API, and the clusters of its machines.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use azure_simulator::packet::Source;
use kube::Client;
use kubernetes_simulator::{Kubernetes, Options};
use simulated_cluster::{HostedKubernetes, HostedKubernetesOptions, Shape, client_of, spawn_stand_ins};
use stand_ins::Pace;

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

    /// Starts the Kubernetes behind the clusters that Azure manages. It serves all of them, and the machines of their
    /// pools are its nodes.
    ///
    /// # Errors
    /// It does not start.
    pub async fn serve_managed_clusters(&self, directory: &Path) -> anyhow::Result<()> {
        let (azure, stop) = (&self.world.azure.azure, &self.world.stop);
        let directory = directory.join("managed-clusters");
        std::fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
        let now = azure.now();
        let options =
            HostedKubernetesOptions { seed: SEED, directory, now, ..HostedKubernetesOptions::default() };
        let behind = HostedKubernetes::start(options, stop).await?;
        behind.serve_managed_clusters(azure)?;
        // They end with the token.
        let _nodes =
            spawn_stand_ins(azure, &client_of(&behind.kubeconfig_text).await?, Pace::default(), stop);
        Ok(())
    }
}
