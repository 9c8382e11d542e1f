//! Connections to the APIs of workload clusters, as administrator.

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use futures::FutureExt as _;
use futures::future::BoxFuture;

/// Connects to workload clusters.
pub trait Workloads: Send + Sync + 'static {
    /// Returns a client for the API of the cluster `namespace/name` at `endpoint` (`host:port`), with the content of
    /// its kubeconfig (YAML), or `None` if the cluster is not reachable. Requests of the client may fail until the
    /// cluster answers; the controllers retry them.
    fn client<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        endpoint: &'a str,
        kubeconfig: &'a str,
    ) -> BoxFuture<'a, Option<Client>>;
}

/// Connects to the addresses in kubeconfigs, over sockets.
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
