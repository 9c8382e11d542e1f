//! Both simulators on sockets, the manager as a process of its own, and the role of Cluster API's core.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::ensure;
use azure_simulator::{Journal, LatencyProfile};
use indicatif::ProgressBar;
use simulated_cluster::{HostedAzure, HostedKubernetes, Shape, WebhookServer};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::objects::{self, Application};
use super::size::Size;
use crate::bench::process::Running;
use crate::bench::simulators::{Idle, start_azure, start_kubernetes};

/// The maximum time without any progress.
const STALL_TIMEOUT: Duration = Duration::from_secs(600);
/// The interval at which the progress of clusters is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The manager counts as idle after this time without requests to Azure.
const CALM: Duration = Duration::from_secs(15);

/// The password of the application, and the same in base64.
const PASSWORD: [&str; 2] = ["bench", "YmVuY2g="];

/// When a cluster reached which state, since it was declared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Its network, or the control plane that Azure manages.
    pub base: Duration,
    /// All its machines or pools.
    pub members: Duration,
}

/// The simulators.
pub struct Place {
    pub azure: HostedAzure,
    kubernetes: HostedKubernetes,
    /// Unused: the bench creates objects that are already complete.
    webhooks: WebhookServer,
    shape: Shape,
    directory: PathBuf,
}

impl Place {
    pub async fn start(
        directory: &Path,
        latency: LatencyProfile,
        stop: &CancellationToken,
    ) -> anyhow::Result<Self> {
        let shape = Shape { region: "eastus".to_owned(), ..Shape::default() };
        let options = azure_simulator::Options { latency, ..azure_simulator::Options::default() };
        let azure = start_azure(&shape, PASSWORD[0], options, directory, stop).await?;
        let kubernetes = start_kubernetes(directory, stop).await?;
        kubernetes.serve_managed_clusters(&azure.azure)?;
        let webhooks = WebhookServer::new(directory.join("webhooks"))?;
        let place = Self { azure, kubernetes, webhooks, shape, directory: directory.to_owned() };
        objects::install(&place.kubernetes.kubernetes, &place.application())?;
        Ok(place)
    }

    fn application(&self) -> Application<'_> {
        Application {
            tenant: &self.shape.tenant,
            client_id: &self.shape.client_id,
            password: PASSWORD[1],
            subscription: &self.shape.subscription,
        }
    }

    /// Starts the manager with this sync period.
    pub fn start_manager(&self, binary: &Path, sync_period: Duration) -> anyhow::Result<Running> {
        let mut command = Command::new(binary);
        command
            .arg(format!("--kubeconfig={}", self.kubernetes.kubeconfig.display()))
            .arg(format!("--webhook-cert-dir={}", self.webhooks.certificates.display()))
            .arg(format!("--webhook-port={}", self.webhooks.port))
            .arg(format!("--sync-period={}s", sync_period.as_secs()))
            .args(["--health-addr=0", "--diagnostics-address=0"])
            .env("SSL_CERT_FILE", &self.azure.certificate_authority)
            .env("AZURE_RESOURCE_MANAGER_ENDPOINT", &self.azure.https)
            .env("AZURE_RESOURCE_MANAGER_AUDIENCE", &self.azure.https)
            .env("AZURE_AUTHORITY_HOST", &self.azure.authority);
        Running::launch("capz-controller-manager", command, &self.directory)
    }

    /// Declares clusters, all at once, plays the core for them, and waits until all their members are ready. Returns
    /// the times of each.
    pub async fn create(
        &self,
        names: &[String],
        size: Size,
        program: &mut Running,
        bar: &ProgressBar,
    ) -> anyhow::Result<Vec<Times>> {
        let (kubernetes, application) = (&self.kubernetes.kubernetes, self.application());
        let begun = Instant::now();
        for name in names {
            size.declare(kubernetes, &application, name)?;
        }
        // `None` for a cluster without its base, otherwise the members that are still missing.
        let mut open: BTreeMap<&str, Option<Vec<String>>> =
            names.iter().map(|name| (name.as_str(), None)).collect();
        let mut times: BTreeMap<&str, Times> = BTreeMap::new();
        let (mut progress, mut since) = (0, Instant::now());
        while !open.is_empty() {
            sleep(POLL_INTERVAL).await;
            program.must_run()?;
            let mut ready = 0;
            for (name, missing) in &mut open {
                match missing {
                    None => {
                        if self.is_ready(size.base(), name)? {
                            times.insert(name, Times { base: begun.elapsed(), ..Times::default() });
                            objects::provisioned(kubernetes, name)?;
                            *missing = Some(size.declare_members(kubernetes, &application, name)?);
                        }
                    }
                    Some(missing) => {
                        let mut still = Vec::new();
                        for member in std::mem::take(missing) {
                            if !self.is_ready(size.member(), &member)? {
                                still.push(member);
                            }
                        }
                        ready += size.members() - still.len();
                        if still.is_empty() {
                            times.entry(name).or_default().members = begun.elapsed();
                        }
                        *missing = still;
                    }
                }
            }
            open.retain(|_, missing| missing.as_ref().is_none_or(|missing| !missing.is_empty()));
            let done = names.len() - open.len();
            bar.set_message(format!("{} of {} clusters begun, {done} ready", times.len(), names.len()));
            let now = times.len() + done * size.members() + ready;
            if now != progress {
                (progress, since) = (now, Instant::now());
            }
            ensure!(
                since.elapsed() < STALL_TIMEOUT,
                "{done} of {} clusters, and no further for {} s; the end of the manager's output:\n{}",
                names.len(),
                STALL_TIMEOUT.as_secs(),
                program.last_words()
            );
        }
        Ok(times.into_values().collect())
    }

    fn is_ready(&self, kind: &str, name: &str) -> anyhow::Result<bool> {
        let Some(object) = self.kubernetes.kubernetes.get(kind, objects::NAMESPACE, name) else {
            return Ok(false);
        };
        if let Some(words) = objects::refusal(&object) {
            anyhow::bail!("{kind} {words}");
        }
        Ok(objects::is_ready(&object))
    }

    /// Waits until there are no more requests to Azure. Returns how long that took, without the idle time at the end.
    pub async fn rest(&self, program: &mut Running) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let mut idle = Idle::begin();
        while idle.time(&self.azure.azure) < CALM {
            sleep(POLL_INTERVAL).await;
            program.must_run()?;
        }
        Ok(begun.elapsed().saturating_sub(CALM))
    }

    /// The manager's requests to Azure since the last call, without those of Azure's own services.
    pub fn take_journal(&self) -> Journal {
        let mut journal = self.azure.azure.journal();
        journal.entries.retain(|entry| entry.principal.is_none());
        self.azure.azure.clear_journal();
        journal
    }

    /// The write requests to Kubernetes since the last call, by verb and kind.
    pub fn take_kubernetes_writes(&self) -> BTreeMap<String, usize> {
        let kubernetes = &self.kubernetes.kubernetes;
        let journal = kubernetes.journal();
        kubernetes.clear_journal();
        let mut writes = BTreeMap::new();
        for entry in journal.entries.iter().filter(|entry| entry.method != "GET") {
            *writes.entry(format!("{} {}", entry.verb, entry.resource_type)).or_default() += 1;
        }
        writes
    }
}
