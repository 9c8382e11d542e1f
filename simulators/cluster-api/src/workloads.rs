//! The ways to the clusters that are made: to their APIs, as an administrator of them.

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use futures::FutureExt as _;
use futures::future::BoxFuture;

/// Leads to workload clusters.
pub trait Workloads: Send + Sync + 'static {
    /// A client for the API of the cluster `namespace/name` at `endpoint` (`host:port`), with what its kubeconfig (YAML) holds.
    /// `None` if the cluster cannot be reached. Requests of the client may fail until the cluster answers; the controllers retry
    /// them.
    fn client<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        endpoint: &'a str,
        kubeconfig: &'a str,
    ) -> BoxFuture<'a, Option<Client>>;
}

/// Goes where kubeconfigs lead, over sockets.
#[derive(Debug, Clone, Copy, Default)]
pub struct ByKubeconfig;

impl Workloads for ByKubeconfig {
    fn client<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: &'a str,
        kubeconfig: &'a str,
    ) -> BoxFuture<'a, Option<Client>> {
        async move {
            let config = Kubeconfig::from_yaml(kubeconfig).ok()?;
            let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.ok()?;
            Client::try_from(config).ok()
        }
        .boxed()
    }
}
