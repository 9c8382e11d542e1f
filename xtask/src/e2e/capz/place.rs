//! What the programs run against: Azure, the management cluster, and the workload clusters that come of their machines.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use azure_simulator::{LatencyProfile, Options};
use capz_api::crd::{KINDS, definition};
use clock::Clock;
use kube::Client;
use kubernetes_simulator::Token;
use serde_json::{Value, json};
use simulated_cluster::{
    Boot, HostedAzure, HostedAzureOptions, HostedKubernetes, HostedKubernetesOptions, Outcome, Part, Shape,
    WorkloadClusters, WorkloadOptions, client_of, play_cluster_api,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::objects::create;
use crate::e2e::real_kubernetes::RealKubernetes;
use crate::e2e::service_account;
use crate::program::root;

/// The secret of the application that the cluster's identity names.
pub const CLIENT_SECRET: &str = "of-the-end-to-end-test";
const SEED: u64 = 1;
/// How long Azure takes for each write.
const LATENCY: Duration = Duration::from_millis(300);

/// All of it; it ends with this value.
pub struct Place {
    /// Azure on sockets.
    pub azure: HostedAzure,
    /// A client of the management cluster, as its administrator.
    pub client: Client,
    /// How an administrator reaches it.
    pub kubeconfig: PathBuf,
    /// How our manager reaches it: a real API server gives it the rights of its manifest and no others.
    pub manager_kubeconfig: PathBuf,
    /// The clusters that come of machines.
    pub workloads: WorkloadClusters,
    /// A proxy by which programs reach their API servers.
    pub proxy: String,
    _stop: DropGuard,
    _servers: Option<RealKubernetes>,
}

impl Place {
    /// Starts it with our definitions, and with a stand-in for Cluster API, but for the parts that are `real` programs. The
    /// management cluster's API server is the simulator's or, with these programs, a real one.
    ///
    /// # Errors
    /// What does not start.
    pub async fn start(directory: &Path, assets: Option<&Path>, real: &[Part]) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let now = Clock::system().now();
        let options = Options {
            seed: SEED,
            latency: LatencyProfile::instant().with("*", "*", LATENCY),
            start: now,
            ..Options::default()
        };
        let azure = HostedAzureOptions {
            client_secret: Some(Token::new(CLIENT_SECRET)),
            ..HostedAzureOptions::of(&Shape::default(), options, directory)
        };
        let azure = HostedAzure::start(azure, &stop).await?;
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
                    now,
                    ..HostedKubernetesOptions::default()
                };
                (None, HostedKubernetes::start(options, &stop).await?.kubeconfig)
            }
        };
        let client = client_of(&std::fs::read_to_string(&kubeconfig)?).await?;
        for kind in &KINDS {
            create(&client, &definition(kind)).await?;
        }
        for namespace in ["capi-system", "capz-system"] {
            let object =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
            create(&client, &object).await?;
        }
        let manager_kubeconfig = match &servers {
            Some(servers) => of_the_manager(servers, &client, directory).await?,
            None => kubeconfig.clone(),
        };

        let boot = |_: &_| Boot {
            system: Duration::from_millis(300),
            bootstrap: Duration::from_millis(300),
            outcome: Outcome::Works,
        };
        let options = WorkloadOptions { seed: SEED, boot: Arc::new(boot), ..WorkloadOptions::default() };
        let workloads = WorkloadClusters::start(azure.azure.clone(), options, stop.clone());
        let proxy = format!("http://{}", workloads.proxy(([127, 0, 0, 1], 0).into(), None).await?);
        let parts: Vec<Part> = Part::ALL.iter().copied().filter(|part| !real.contains(part)).collect();
        let clock = Arc::new(|| Clock::system().now());
        play_cluster_api(&parts, &client, &workloads, clock, SEED, &stop).await?;
        Ok(Self {
            azure,
            client,
            kubeconfig,
            manager_kubeconfig,
            workloads,
            proxy,
            _stop: stop.drop_guard(),
            _servers: servers,
        })
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
    // Nobody here puts aggregated roles together.
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
