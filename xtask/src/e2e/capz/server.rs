//! The API server of a management cluster: the simulated one, or etcd and kube-apiserver.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use capz_api::crd::{KINDS, definition};
use clock::Clock;
use kube::Client;
use serde_json::{Value, json};
use simulated_cluster::{HostedKubernetes, HostedKubernetesOptions, client_of};
use tokio_util::sync::CancellationToken;

use super::clusterctl::LABEL;
use super::objects::{create, define};
use crate::e2e::real_kubernetes::RealKubernetes;
use crate::e2e::service_account;
use crate::program::root;
use crate::world::SEED;

/// An API server, which ends when this value is dropped.
pub struct Server {
    /// A client with an administrator's rights.
    pub client: Client,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The kubeconfig of our manager: at a real API server it has only the rights of its manifest.
    pub manager_kubeconfig: PathBuf,
    servers: Option<RealKubernetes>,
}

impl Server {
    /// Starts an empty server; a real one with the programs in `assets`.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn empty(
        directory: &Path,
        assets: Option<&Path>,
        stop: &CancellationToken,
    ) -> anyhow::Result<Self> {
        let (servers, kubeconfig) = match assets {
            Some(assets) => {
                let servers = RealKubernetes::start(assets, directory).await.context("real Kubernetes")?;
                let kubeconfig = servers.kubeconfig().to_owned();
                (Some(servers), kubeconfig)
            }
            None => {
                let options = HostedKubernetesOptions {
                    seed: SEED,
                    directory: directory.to_owned(),
                    now: Clock::system().now(),
                    ..HostedKubernetesOptions::default()
                };
                (None, HostedKubernetes::start(options, stop).await?.kubeconfig)
            }
        };
        let client = client_of(&std::fs::read_to_string(&kubeconfig)?).await?;
        Ok(Self { client, manager_kubeconfig: kubeconfig.clone(), kubeconfig, servers })
    }

    /// Starts a server with our definitions, the namespaces of providers, and the rights of our manager.
    ///
    /// # Errors
    /// The server does not start, or refuses an object.
    pub async fn start(
        directory: &Path,
        assets: Option<&Path>,
        stop: &CancellationToken,
    ) -> anyhow::Result<Self> {
        let mut server = Self::empty(directory, assets, stop).await?;
        for kind in &KINDS {
            let mut definition = definition(kind);
            definition["metadata"]["labels"][LABEL] = "".into();
            define(&server.client, &definition).await?;
        }
        for namespace in ["capi-system", "capz-system"] {
            let object =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
            create(&server.client, &object).await?;
        }
        if let Some(servers) = &server.servers {
            server.manager_kubeconfig = of_the_manager(servers, &server.client, directory).await?;
        }
        Ok(server)
    }
}

/// A kubeconfig of the manager's service account.
async fn of_the_manager(
    servers: &RealKubernetes,
    client: &Client,
    directory: &Path,
) -> anyhow::Result<PathBuf> {
    let rights = root().join("deploy/capz/parts/40-rights.yaml");
    let applied = servers.kubectl().arg("apply").arg("-f").arg(rights).output()?;
    ensure!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    // No controller that combines aggregated roles runs here.
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "base" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "capz-base-manager-role" },
        "subjects": [{ "kind": "ServiceAccount", "name": "capz-manager", "namespace": "capz-system" }],
    });
    create(client, &binding).await?;
    let token = service_account::token(client, "capz-system", "capz-manager").await?;
    let mut kubeconfig: Value = serde_saphyr::from_str(&std::fs::read_to_string(servers.kubeconfig())?)?;
    kubeconfig["users"][0]["user"]["token"] = token.into();
    let path = directory.join("manager.kubeconfig");
    std::fs::write(&path, kubeconfig.to_string())?;
    Ok(path)
}
