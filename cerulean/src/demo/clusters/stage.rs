//! The environment of the demo of clusters: a management cluster, an Azure, the manager of clusters, and later the
//! cloud controller manager of the resulting cluster.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use azure_simulator::view::{ClusterPart, Stand};
use k8s::Node;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};
use simulated_cluster::{Shape, WorkloadCluster, manifests};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{programs, tree};
use crate::demo::programs::Programs;
use crate::management::{self, ClusterName, Management, Settings};
use crate::screen::{Screen, Tone};
use crate::simulate::limits::Limits;

/// The namespace of the examples.
pub const NAMESPACE: &str = "default";
/// The cluster of the examples whose machines run its API server.
pub const CLUSTER: &str = "harbour";
/// The Secret with the secret of the application that creates the clusters.
const IDENTITY_SECRET: &str = "azure-identity";

/// The time limit of a step; the longest, replacing a pool's machines one by one, takes about half a minute.
const STEP_TIMEOUT: Duration = Duration::from_secs(300);
/// The polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Everything that runs.
pub struct Stage {
    /// Where to write.
    pub screen: Screen,
    /// The simulated management cluster and Azure.
    pub management: Management,
    /// The initial contents of Azure.
    before: Vec<Value>,
    directory: PathBuf,
    managers: Programs,
    cloud: Programs,
    begun: Instant,
    /// The completed parts that were already reported.
    reported: BTreeSet<String>,
    stop: CancellationToken,
}

impl Stage {
    /// Starts everything but the cloud controller manager, which needs a cluster.
    pub async fn set(screen: Screen, directory: &Path) -> anyhow::Result<Self> {
        screen.heading("A management cluster and an Azure, in this process");
        let settings = Settings::of_demo(Shape::default().region, Limits::default(), directory);
        let stop = CancellationToken::new();
        let management = Management::start(settings, &stop).await?;
        let hosted = &management.hosted;
        screen.line(format_args!("  Azure Resource Manager  {}", hosted.azure.https));
        screen.line(format_args!("  management cluster      {}", hosted.kubernetes.url));
        screen.line(format_args!("  page                    {}", management.page()));
        let secret = identity_secret(&hosted.azure.credentials)?;
        manifests::apply(&hosted.client, &[secret]).await?;
        let mut managers = Programs::default();
        programs::start_manager(&management, &mut managers).await?;
        screen.line(format_args!("  webhooks                https://127.0.0.1:{}", management.webhooks.port));
        Ok(Self {
            screen,
            before: management.hosted.azure.azure.documents(),
            management,
            directory: directory.to_owned(),
            managers,
            cloud: Programs::default(),
            begun: Instant::now(),
            reported: BTreeSet::new(),
            stop,
        })
    }

    /// Starts the cloud controller manager for the cluster, with the azure.json of its control plane.
    pub async fn start_cloud_controller_manager(&mut self) -> anyhow::Result<()> {
        let name = ClusterName::in_default(CLUSTER);
        self.serve(CLUSTER).await?;
        let azure_json = programs::azure_json(&self.management, &name)?;
        let azure_json = azure_json.context("there is no azure.json for the control plane")?;
        let (management, directory) = (&self.management, &self.directory);
        programs::start_cloud_controller_manager(management, directory, &name, &azure_json, &mut self.cloud)
    }

    /// Ends the cloud controller manager, which in production ends with its machines.
    pub async fn end_cloud_controller_manager(&mut self) -> anyhow::Result<()> {
        std::mem::take(&mut self.cloud).end().await
    }

    /// Serves the API of a created cluster on this machine, and writes its kubeconfig.
    pub async fn serve(&self, cluster: &str) -> anyhow::Result<()> {
        let name = ClusterName::in_default(cluster);
        self.management.serve_workload(&self.directory, &name).await.map(drop)
    }

    /// The kubeconfig of a created cluster.
    pub fn workload_kubeconfig(&self, cluster: &str) -> PathBuf {
        management::workload_kubeconfig(&self.directory, &ClusterName::in_default(cluster))
    }

    /// A client of the created cluster whose machines run its API server.
    pub fn workload(&self) -> anyhow::Result<Client> {
        Ok(self.workload_cluster(CLUSTER)?.client())
    }

    /// A created cluster.
    pub fn workload_cluster(&self, name: &str) -> anyhow::Result<WorkloadCluster> {
        let found = self.management.hosted.workloads.cluster(name);
        found.with_context(|| format!("cluster {name} is gone"))
    }

    /// Objects of a kind in the management cluster.
    pub fn list(&self, kind: &str) -> Vec<Value> {
        self.management.list(kind)
    }

    /// An object of the examples in the management cluster; null if there is none.
    pub fn object(&self, kind: &str, name: &str) -> Value {
        let found = self.list(kind).into_iter().find(|object| object["metadata"]["name"] == name);
        found.unwrap_or_default()
    }

    /// Nodes of the created cluster whose machines run its API server.
    pub fn nodes(&self) -> anyhow::Result<Vec<Node>> {
        let cluster = self.management.hosted.workloads.cluster(CLUSTER);
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
        Api::namespaced_with(self.management.hosted.client.clone(), NAMESPACE, &resource)
    }

    /// The resources of a type in Azure.
    pub fn in_azure(&self, resource_type: &str) -> Vec<Value> {
        self.management.hosted.azure.azure.documents_of_type(resource_type)
    }

    /// The contents of Azure in addition to the initial ones.
    pub fn left_in_azure(&self) -> Vec<String> {
        let now = self.management.hosted.azure.azure.documents();
        let new = now.iter().filter(|document| !self.before.contains(document));
        new.map(|document| document["id"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Whether the contents of Azure are the initial ones.
    pub fn azure_is_as_before(&self) -> bool {
        self.management.hosted.azure.azure.documents() == self.before
    }

    /// The progress of the clusters.
    pub fn tree(&self) -> Vec<ClusterPart> {
        self.management.hosted.clusters().into_iter().flat_map(|cluster| cluster.parts).collect()
    }

    /// Draws the tree.
    pub fn draw(&self, lines: &[ClusterPart]) -> Vec<String> {
        tree::draw(lines, |stand, mark| match stand {
            Stand::Done => self.screen.paint(Tone::Good, mark),
            Stand::Works => mark.to_owned(),
            Stand::Waits => self.screen.paint(Tone::Quiet, mark),
        })
    }

    /// Waits until `condition` returns a value, prints that, and reports every part of the tree once it is done. On a
    /// terminal the tree is drawn meanwhile. Fails if it takes too long or a program ends.
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

    /// The parts that are done now and were not reported before.
    fn news(&mut self, lines: &[ClusterPart]) -> Vec<String> {
        let mut news: Vec<(usize, String)> = Vec::new();
        let mut above = "";
        for line in lines {
            if line.depth == 1 {
                above = &line.name;
            }
            // A part of an object gets the object's name; machines have names of their own.
            let name = if line.depth == 2 && above.starts_with("Azure") {
                format!("{above}: {}", line.name)
            } else {
                line.name.clone()
            };
            let text = format!("{name}: {}", line.words);
            if line.stand == Stand::Done && self.reported.insert(text.clone()) {
                news.push((line.depth, text));
            }
        }
        // A parent is done once its parts are.
        news.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
        news.into_iter().map(|(_, text)| text).collect()
    }

    /// The time elapsed so far.
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
