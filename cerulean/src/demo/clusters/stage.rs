//! Where the demo of clusters plays: a management cluster, an Azure, the manager of clusters; and later the cloud controller
//! manager of the cluster that comes of it.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use azure_simulator::view::{ClusterPart, Stand};
use azure_simulator::{LatencyProfile, Options};
use capz_api::webhooks::{Task, registration};
use capz_controller_manager::flags::{self, Start};
use clock::Clock;
use cloud_controller_manager::surroundings::Surroundings;
use k8s::Node;
use k8s::api::api::core::v1::Secret;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};
use simulated_cluster::{
    Boot, CloudProvider, HostedAzureOptions, HostedKubernetesOptions, HostedManagement,
    HostedManagementOptions, Outcome, Shape, WebhookServer, WorkloadOptions, manifests,
};
use stand_ins::Pace;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::tree;
use crate::demo::programs::Programs;
use crate::screen::{Screen, Tone};

/// The namespace of the examples.
pub const NAMESPACE: &str = "default";
/// The cluster of the examples.
pub const CLUSTER: &str = "harbour";
/// The Secret with the secret of the application that makes the cluster.
const IDENTITY_SECRET: &str = "azure-identity";

/// How long a step may take before the demo gives up; the longest, a pool whose machines are replaced one by one, takes some
/// half a minute.
const STEP_TIMEOUT: Duration = Duration::from_secs(300);
/// How often it is looked at what there is.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Everything that runs.
pub struct Stage {
    /// Where to write.
    pub screen: Screen,
    /// The simulated management cluster and Azure.
    pub management: HostedManagement,
    /// What Azure held before.
    before: Vec<Value>,
    directory: PathBuf,
    managers: Programs,
    cloud: Programs,
    begun: Instant,
    /// What was told to be done already.
    told: BTreeSet<String>,
    stop: CancellationToken,
}

/// Long enough to see, short enough to wait for.
fn latency() -> LatencyProfile {
    LatencyProfile::instant().with("*", "Microsoft.Network/*", Duration::from_millis(500)).with(
        "*",
        "Microsoft.Compute/*",
        Duration::from_millis(1000),
    )
}

impl Stage {
    /// Starts everything but the cloud controller manager, which needs a cluster.
    pub async fn set(screen: Screen, directory: &Path) -> anyhow::Result<Self> {
        screen.heading("A management cluster and an Azure, in this process");
        let now = Clock::system().now();
        let boot = |_: &_| Boot {
            system: Duration::from_secs(1),
            bootstrap: Duration::from_secs(1),
            outcome: Outcome::Works,
        };
        let options = HostedManagementOptions {
            azure: HostedAzureOptions::of(
                &Shape::default(),
                Options { seed: 1, latency: latency(), start: now, ..Options::default() },
                &directory.join("azure"),
            ),
            kubernetes: HostedKubernetesOptions {
                seed: 1,
                directory: directory.join("management"),
                now,
                ..HostedKubernetesOptions::default()
            },
            workloads: WorkloadOptions {
                boot: std::sync::Arc::new(boot),
                pace: Pace::missed_after(Duration::from_secs(2)),
                cloud_provider: CloudProvider::Awaited,
                ..WorkloadOptions::default()
            },
        };
        std::fs::create_dir_all(directory.join("management"))?;
        let stop = CancellationToken::new();
        let management = HostedManagement::start(options, &stop).await?;
        screen.line(format_args!("  Azure Resource Manager  {}", management.azure.https));
        screen.line(format_args!("  management cluster      {}", management.kubernetes.url));
        let page = format!("{}{}", management.azure.http, azure_simulator::page::PATH);
        screen.line(format_args!("  page                    {page}"));
        let mut stage = Self {
            screen,
            before: management.azure.azure.documents(),
            management,
            directory: directory.to_owned(),
            managers: Programs::default(),
            cloud: Programs::default(),
            begun: Instant::now(),
            told: BTreeSet::new(),
            stop,
        };
        stage.start_manager().await?;
        Ok(stage)
    }

    /// Installs the kinds and webhooks of `capz-controller-manager`, and starts it with the command line of its manifest.
    async fn start_manager(&mut self) -> anyhow::Result<()> {
        let client = &self.management.client;
        let kinds: Vec<Value> = capz_api::crd::KINDS.iter().map(capz_api::crd::definition).collect();
        manifests::apply(client, &kinds).await?;
        manifests::apply(client, &[identity_secret(&self.management.azure.credentials)?]).await?;

        let webhooks = WebhookServer::new(self.directory.join("webhooks"))?;
        let arguments = [
            "capz-controller-manager".to_owned(),
            format!("--kubeconfig={}", self.management.kubernetes.kubeconfig.display()),
            format!("--webhook-cert-dir={}", webhooks.certificates.display()),
            format!("--webhook-port={}", webhooks.port),
            "--health-addr=0".to_owned(),
            "--diagnostics-address=0".to_owned(),
            "--debouncing-timer=1s".to_owned(),
            "--reconciler-requeue=2s".to_owned(),
            "--sync-period=10s".to_owned(),
        ];
        let line = match flags::parse(arguments.map(Into::into)) {
            Ok(Start::Manager(line)) => *line,
            Ok(Start::MigrateAsoCrds) => bail!("the manager of clusters was not started"),
            Err(instead) => bail!("the manager of clusters refuses its command line: {instead:?}"),
        };
        let run = capz_controller_manager::run::run(line, self.surroundings()?, self.managers.stop_token());
        self.managers.start("manager of clusters", run);

        for task in [Task::Default, Task::Validate] {
            manifests::apply(client, &[webhooks.registration(registration(task))]).await?;
        }
        let deadline = Instant::now() + STEP_TIMEOUT;
        while !webhooks.listens().await {
            self.managers.check().await?;
            anyhow::ensure!(
                Instant::now() < deadline,
                "the webhooks of the manager of clusters do not answer"
            );
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        self.screen.line(format_args!("  webhooks                https://127.0.0.1:{}", webhooks.port));
        Ok(())
    }

    /// Starts the cloud controller manager for the cluster, with the azure.json that was made for its control plane.
    pub async fn start_cloud_controller_manager(&mut self) -> anyhow::Result<()> {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let kubeconfig = self.management.workloads.serve(CLUSTER, loopback).await?;
        std::fs::write(self.workload_kubeconfig(), kubeconfig)?;
        let secrets: Api<Secret> = Api::namespaced(self.management.client.clone(), NAMESPACE);
        let secret = secrets.get(&format!("{CLUSTER}-control-plane-azure-json")).await?;
        let data = secret.data.unwrap_or_default();
        let text =
            data.get("control-plane-azure.json").context("there is no azure.json for the control plane")?;
        let azure_json = self.directory.join("azure.json");
        std::fs::write(&azure_json, &text.0)?;
        let arguments = [
            "azure-cloud-controller-manager".to_owned(),
            format!("--cloud-config={}", azure_json.display()),
            format!("--kubeconfig={}", self.workload_kubeconfig().display()),
            format!("--cluster-name={CLUSTER}"),
            "--secure-port=0".to_owned(),
            "--node-monitor-period=1s".to_owned(),
            // There is no other one, and a machine that is busy may not answer for ten seconds.
            "--leader-elect=false".to_owned(),
        ];
        let line = cloud_controller_manager::flags::parse(arguments.map(Into::into));
        let line = line.map_err(|instead| match instead {
            cloud_controller_manager::flags::Instead::Print(text)
            | cloud_controller_manager::flags::Instead::Refuse(text) => anyhow::anyhow!(text),
        })?;
        let run = cloud_controller_manager::run::run(line, self.surroundings()?, self.cloud.stop_token());
        self.cloud.start("cloud controller manager", async move { run.await.map(|_| ()) });
        Ok(())
    }

    /// Ends the cloud controller manager, as it ends with the machines on which it runs.
    pub async fn end_cloud_controller_manager(&mut self) -> anyhow::Result<()> {
        std::mem::take(&mut self.cloud).end().await
    }

    /// Azure under its own names: a proxy leads to the simulated one.
    fn surroundings(&self) -> anyhow::Result<Surroundings> {
        let azure = &self.management.azure;
        let proxy = azure.proxy.clone();
        let mut surroundings = Surroundings::with_variables(move |name| match name {
            "HTTPS_PROXY" => Some(proxy.clone()),
            "NO_PROXY" => Some("127.0.0.1".to_owned()),
            _ => None,
        });
        surroundings.extra_roots = vec![std::fs::read_to_string(&azure.certificate_authority)?];
        Ok(surroundings)
    }

    /// The kubeconfig of the cluster that was made.
    pub fn workload_kubeconfig(&self) -> PathBuf {
        self.directory.join("kubeconfig")
    }

    /// A client of the cluster that was made.
    pub fn workload(&self) -> anyhow::Result<Client> {
        Ok(self.management.workloads.cluster(CLUSTER).context("the cluster is gone")?.client())
    }

    /// Objects of a kind in the management cluster.
    pub fn list(&self, kind: &str) -> Vec<Value> {
        let listed = self.management.kubernetes.kubernetes.list(kind);
        listed.iter().map(|object| object.value().clone()).collect()
    }

    /// Nodes of the cluster that was made.
    pub fn nodes(&self) -> anyhow::Result<Vec<Node>> {
        let cluster = self.management.workloads.cluster(CLUSTER);
        let listed = cluster.map(|cluster| cluster.kubernetes.list("Node")).unwrap_or_default();
        listed.iter().map(|object| Ok(serde_json::from_value(object.value().clone())?)).collect()
    }

    /// Changes an object, as a user does.
    pub async fn change(&self, kind: &str, name: &str, patch: Value) -> anyhow::Result<()> {
        self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(())
    }

    /// The API of a kind of ours, or of Cluster API's core.
    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        let ours = capz_api::crd::Kind::named(kind).is_some();
        let group = if ours { capz_api::crd::GROUP } else { "cluster.x-k8s.io" };
        let kind = GroupVersionKind::gvk(group, "v1beta1", kind);
        let resource = ApiResource::from_gvk(&kind);
        Api::namespaced_with(self.management.client.clone(), NAMESPACE, &resource)
    }

    /// The resources of a type in Azure.
    pub fn in_azure(&self, resource_type: &str) -> Vec<Value> {
        self.management.azure.azure.documents_of_type(resource_type)
    }

    /// What Azure holds that it did not hold before.
    pub fn left_in_azure(&self) -> Vec<String> {
        let now = self.management.azure.azure.documents();
        let new = now.iter().filter(|document| !self.before.contains(document));
        new.map(|document| document["id"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Whether Azure holds what it held before, and nothing else.
    pub fn azure_is_as_before(&self) -> bool {
        self.management.azure.azure.documents() == self.before
    }

    /// How far the cluster is.
    pub fn tree(&self) -> Vec<ClusterPart> {
        self.management.clusters().into_iter().flat_map(|cluster| cluster.parts).collect()
    }

    /// Draws the tree.
    pub fn draw(&self, lines: &[ClusterPart]) -> Vec<String> {
        tree::draw(lines, |stand, mark| match stand {
            Stand::Done => self.screen.paint(Tone::Good, mark),
            Stand::Works => mark.to_owned(),
            Stand::Waits => self.screen.paint(Tone::Quiet, mark),
        })
    }

    /// Waits until `condition` gives a value, says so, and tells of every part of the tree once it is done. On a terminal the
    /// tree is drawn meanwhile. Fails if it takes too long or a program ends.
    pub async fn until<T>(
        &mut self,
        what: &str,
        condition: impl AsyncFn(&mut Stage) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let bar = self.screen.waiting(format!("waiting until {what}"));
        let deadline = Instant::now() + STEP_TIMEOUT;
        let value = loop {
            let programs = async {
                self.managers.check().await?;
                self.cloud.check().await
            };
            let done = match programs.await {
                Ok(()) => condition(self).await,
                Err(problem) => Err(problem),
            };
            let lines = self.tree();
            let news: Vec<String> = self.news(&lines);
            if !news.is_empty() {
                let (screen, since) = (self.screen, self.begun.elapsed());
                bar.suspend(|| news.iter().for_each(|text| screen.moment(since, text)));
            }
            match done {
                Ok(Some(value)) => {
                    bar.suspend(|| self.screen.moment(self.begun.elapsed(), what));
                    break Ok(value);
                }
                Ok(None) if Instant::now() > deadline => {
                    break Err(anyhow::anyhow!(
                        "gave up after {} s of waiting until {what}",
                        STEP_TIMEOUT.as_secs()
                    ));
                }
                Ok(None) => {}
                Err(problem) => break Err(problem),
            }
            let drawn: Vec<String> = self.draw(&lines).iter().map(|line| format!("\n  {line}")).collect();
            bar.set_message(format!("waiting until {what}{}", drawn.concat()));
            tokio::time::sleep(POLL_INTERVAL).await;
        };
        bar.finish_and_clear();
        if value.is_err() {
            for line in self.draw(&self.tree()) {
                self.screen.line(format_args!("  {line}"));
            }
        }
        value
    }

    /// What is done now and was not told before.
    fn news(&mut self, lines: &[ClusterPart]) -> Vec<String> {
        let mut news: Vec<(usize, String)> = Vec::new();
        let mut above = "";
        for line in lines {
            if line.depth == 1 {
                above = &line.name;
            }
            // A part of an object has its name beside it; machines have names of their own.
            let name = if line.depth == 2 && above.starts_with("AzureCluster") {
                format!("{above}: {}", line.name)
            } else {
                line.name.clone()
            };
            let text = format!("{name}: {}", line.words);
            if line.stand == Stand::Done && self.told.insert(text.clone()) {
                news.push((line.depth, text));
            }
        }
        // What is above is done once what is below is.
        news.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
        news.into_iter().map(|(_, text)| text).collect()
    }

    /// How long all of it has taken so far.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Stops the programs, and then everything else.
    pub async fn clear(self) -> anyhow::Result<()> {
        self.cloud.end().await?;
        self.managers.end().await?;
        self.stop.cancel();
        Ok(())
    }
}

/// The Secret that the examples' identity names, with the secret of the simulated Azure.
fn identity_secret(credentials: &Path) -> anyhow::Result<Value> {
    let credentials: Value = serde_json::from_str(&std::fs::read_to_string(credentials)?)?;
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": IDENTITY_SECRET, "namespace": NAMESPACE },
        "stringData": { "clientSecret": credentials["aadClientSecret"] },
    }))
}
