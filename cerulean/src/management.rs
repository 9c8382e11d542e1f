//! A management cluster with Cluster API's core and our kinds, and the Azure for its clusters, all in this process. The
//! demos of clusters and `cerulean simulate management-cluster` start it. The manager of clusters is not part of it.

mod name;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use azure_simulator::{LatencyProfile, Options, page};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capz_api::webhooks::{Task, registration};
use clock::Clock;
use serde_json::Value;
use simulated_cluster::{
    Boot, CloudProvider, HostedAzureOptions, HostedKubernetesOptions, HostedManagement,
    HostedManagementOptions, Outcome, Part, Shape, WebhookServer, WorkloadCluster, WorkloadOptions,
    manifests,
};
use stand_ins::Pace;
use tokio_util::sync::CancellationToken;

use crate::simulate::limits::Limits;
pub use name::ClusterName;

/// The time until a silent node is missed: shorter than in production, so that it can be watched.
const NODE_GRACE: Duration = Duration::from_secs(2);

/// The extension and the first line of the kubeconfigs of workload clusters.
const WORKLOAD_ENDING: &str = "kubeconfig";
const WORKLOAD_MARK: &str = "# Written by cerulean, which removes it.";

/// Members of azure.json for other credentials of a machine than a secret.
const OTHER_PROOFS: [&str; 6] = [
    "useManagedIdentityExtension",
    "userAssignedIdentityID",
    "useFederatedWorkloadIdentityExtension",
    "aadFederatedTokenFile",
    "aadClientCertPath",
    "aadClientCertPassword",
];

/// The settings.
pub struct Settings {
    /// The Azure for the clusters. Its directory has all files, and its proxy leads to workload clusters, too.
    pub azure: HostedAzureOptions,
    /// The time that a machine takes to boot, and again for kubeadm.
    pub boot: Duration,
    /// The program that sets the provider IDs of nodes.
    pub cloud_provider: CloudProvider,
    /// The parts of Cluster API that are simulated.
    pub played: Vec<Part>,
    /// The port of the Kubernetes API; 0 for any.
    pub kubernetes_port: u16,
    /// The port of the control API of Kubernetes; 0 for any.
    pub kubernetes_control_port: u16,
    /// The port of the manager's webhooks; 0 for any.
    pub webhook_port: u16,
}

impl Settings {
    /// The settings of a demo: all of Cluster API is simulated, boots take two seconds, and nodes wait for a cloud
    /// controller manager.
    pub fn of_demo(region: String, limits: Limits, directory: &Path) -> Self {
        let shape = Shape { region, ..Shape::default() };
        let azure =
            Options { latency: watchable(), limits, start: Clock::system().now(), ..Options::default() };
        Self {
            azure: HostedAzureOptions::of(&shape, azure, directory),
            boot: Duration::from_secs(1),
            cloud_provider: CloudProvider::Awaited,
            played: Part::ALL.to_vec(),
            kubernetes_port: 0,
            kubernetes_control_port: 0,
            webhook_port: 0,
        }
    }
}

/// The whole environment. It stops with the token that it was started with.
#[derive(Debug)]
pub struct Management {
    /// The simulators.
    pub hosted: HostedManagement,
    /// The address at which the manager should serve its webhooks.
    pub webhooks: WebhookServer,
    subscription: String,
}

impl Management {
    /// Starts it, with the definitions of our kinds.
    ///
    /// # Errors
    /// The first failure.
    pub async fn start(settings: Settings, stop: &CancellationToken) -> anyhow::Result<Self> {
        let Settings {
            mut azure,
            boot,
            cloud_provider,
            played,
            kubernetes_port,
            kubernetes_control_port,
            webhook_port,
        } = settings;
        let (directory, subscription) = (azure.directory.clone(), azure.azure.subscription.clone());
        let boot = move |_: &_| Boot { system: boot, bootstrap: boot, outcome: Outcome::Works };
        let options = HostedManagementOptions {
            kubernetes: HostedKubernetesOptions {
                seed: azure.azure.seed,
                directory: directory.clone(),
                port: kubernetes_port,
                control_port: kubernetes_control_port,
                now: azure.azure.start,
                ..HostedKubernetesOptions::default()
            },
            workloads: WorkloadOptions {
                boot: Arc::new(boot),
                pace: Pace::missed_after(NODE_GRACE),
                cloud_provider,
                ..WorkloadOptions::default()
            },
            played,
            proxy_port: std::mem::take(&mut azure.proxy_port),
            azure,
        };
        let hosted = HostedManagement::start(options, stop).await?;
        let kinds: Vec<Value> = capz_api::crd::KINDS.iter().map(capz_api::crd::definition).collect();
        manifests::apply(&hosted.client, &kinds).await?;
        let webhooks = WebhookServer::at(directory.join("webhooks"), webhook_port)?;
        Ok(Self { hosted, webhooks, subscription })
    }

    /// Registers the manager's webhooks at the API server. Until the manager serves them, objects of our kinds cannot
    /// be written.
    ///
    /// # Errors
    /// The API server's error.
    pub async fn register_webhooks(&self) -> anyhow::Result<()> {
        for task in [Task::Default, Task::Validate] {
            manifests::apply(&self.hosted.client, &[self.webhooks.registration(registration(task))]).await?;
        }
        Ok(())
    }

    /// The command line arguments with which `capz-controller-manager` finds it.
    pub fn arguments(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", self.hosted.kubernetes.kubeconfig.display()),
            format!("--webhook-cert-dir={}", self.webhooks.certificates.display()),
            format!("--webhook-port={}", self.webhooks.port),
        ]
    }

    /// The environment variables with which the manager finds it: the proxy to Azure under its own names and to
    /// workload clusters under their endpoints, and Azure's certificates.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let azure = &self.hosted.azure;
        vec![
            ("HTTPS_PROXY", self.hosted.proxy.clone()),
            ("NO_PROXY", "127.0.0.1".to_owned()),
            ("SSL_CERT_FILE", azure.certificate_authority.display().to_string()),
            ("AZURE_FEDERATED_TOKEN_FILE", self.hosted.federated_token.display().to_string()),
            ("AZURE_SUBSCRIPTION_ID", self.subscription.clone()),
        ]
    }

    /// The current workload clusters, by their Clusters. They are identified by the certificate authority in the Cluster's
    /// kubeconfig, which is created for one cluster; names and private endpoints are not unique.
    pub fn workloads(&self) -> BTreeMap<ClusterName, WorkloadCluster> {
        let secrets = self.list("Secret");
        let authorities: Vec<(ClusterName, Vec<u8>)> = secrets
            .iter()
            .filter_map(|secret| {
                let text = |member: &str| secret["metadata"][member].as_str();
                let name = text("name")?.strip_suffix("-kubeconfig")?.to_owned();
                let namespace = text("namespace")?.to_owned();
                let config = STANDARD.decode(secret["data"]["value"].as_str()?).ok()?;
                let config: Value = serde_saphyr::from_str(std::str::from_utf8(&config).ok()?).ok()?;
                let cluster = &config["clusters"][0]["cluster"];
                let certificate = STANDARD.decode(cluster["certificate-authority-data"].as_str()?).ok()?;
                Some((ClusterName { namespace, name }, certificate))
            })
            .collect();
        let named = |cluster: WorkloadCluster| {
            let own = cluster.authority.0.trim().as_bytes();
            let (name, _) = authorities.iter().find(|(_, it)| it.trim_ascii() == own)?;
            Some((name.clone(), cluster))
        };
        self.hosted.workloads.clusters().into_iter().filter_map(named).collect()
    }

    /// Serves the API of a workload cluster on this machine, and writes a kubeconfig for it. Returns its path.
    ///
    /// # Errors
    /// There is no such cluster, or the file cannot be written.
    pub async fn serve_workload(&self, directory: &Path, name: &ClusterName) -> anyhow::Result<PathBuf> {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let found = self.workloads().remove(name);
        let cluster = found.with_context(|| format!("there is no API server of cluster {name}"))?;
        let text = self.hosted.workloads.serve(&cluster, &name.file(), loopback).await?;
        let path = workload_kubeconfig(directory, name);
        write_secret(&path, &format!("{WORKLOAD_MARK}\n{text}"))?;
        Ok(path)
    }

    /// Puts the application that the simulated Azure accepts into an azure.json, whatever credentials machines would
    /// use: they have no metadata service here.
    ///
    /// # Errors
    /// Its secret cannot be read.
    pub fn use_own_application(&self, azure_json: &mut Value) -> anyhow::Result<()> {
        let credentials: Value =
            serde_json::from_str(&std::fs::read_to_string(&self.hosted.azure.credentials)?)?;
        for member in ["tenantId", "aadClientId", "aadClientSecret"] {
            azure_json[member] = credentials[member].clone();
        }
        if let Some(members) = azure_json.as_object_mut() {
            for member in OTHER_PROOFS {
                members.remove(member);
            }
        }
        Ok(())
    }

    /// The URL of the page.
    pub fn page(&self) -> String {
        format!("{}{}", self.hosted.azure.http, page::PATH)
    }

    /// Objects of a kind in the management cluster.
    pub fn list(&self, kind: &str) -> Vec<Value> {
        let listed = self.hosted.kubernetes.kubernetes.list(kind);
        listed.iter().map(|object| object.value().clone()).collect()
    }
}

/// The path of the kubeconfig of a workload cluster.
pub fn workload_kubeconfig(directory: &Path, cluster: &ClusterName) -> PathBuf {
    directory.join(format!("{}.{WORKLOAD_ENDING}", cluster.file()))
}

/// Removes the kubeconfigs of workload clusters that an earlier process has left in a folder. Other files stay.
///
/// # Errors
/// One cannot be removed.
pub fn remove_stale_kubeconfigs(directory: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        let is_ours = path.extension().is_some_and(|ending| ending == WORKLOAD_ENDING)
            && std::fs::read_to_string(&path).is_ok_and(|text| text.starts_with(WORKLOAD_MARK));
        if is_ours {
            std::fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

/// Writes a file that only its owner can read.
pub fn write_secret(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| path.display().to_string())
}

/// A latency profile that is long enough to see and short enough to wait for.
pub fn watchable() -> LatencyProfile {
    LatencyProfile::instant()
        .with("*", "Microsoft.Network/*", Duration::from_millis(500))
        .with("*", "Microsoft.Compute/*", Duration::from_millis(1000))
        .with("*", "Microsoft.ContainerService/*", Duration::from_millis(2000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kubeconfigs_that_were_written_here_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("quay.kubeconfig", &format!("{WORKLOAD_MARK}\napiVersion: v1\n"));
        write("mine.kubeconfig", "apiVersion: v1\n");
        write("kubeconfig", WORKLOAD_MARK);
        remove_stale_kubeconfigs(folder.path()).unwrap();
        let left = |name: &str| folder.path().join(name).exists();
        assert!(!left("quay.kubeconfig") && left("mine.kubeconfig") && left("kubeconfig"));
    }
}
