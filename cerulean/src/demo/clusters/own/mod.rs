//! `cerulean demo clusters -f PATH`: the user's own manifests, from their application until Ctrl-C.
//!
//! Changes by kubectl are followed. Workload clusters are served on this machine; those on machines get our
//! `azure-cloud-controller-manager`.

mod applied;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use azure_simulator::view::ClusterView;
use azure_types::ResourceId;
use indicatif::ProgressBar;
use serde_json::Value;
use simulated_cluster::Shape;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{programs, tree};
use crate::demo::programs::Programs;
use crate::management::{ClusterName, Management, Settings, workload_kubeconfig};
use crate::manifests::Manifest;
use crate::screen::{Screen, Tone};
use crate::simulate::limits;
use report::{LastingProblems, News, ReportHistory};

/// The polling interval.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// The time without changes after which the demo prints what it waits for. Programs retry every 10 s.
const QUIET: Duration = Duration::from_secs(15);

/// How long something is missing or wrong before it is reported: less than [`QUIET`], so that the user knows the reason.
const PATIENCE: Duration = Duration::from_secs(10);

/// Objects that report a missing reference or a missing API server.
const REFERRING: [&str; 5] =
    ["Cluster", "KubeadmControlPlane", "MachineDeployment", "MachineSet", "MachinePool"];
/// Objects that report their own problems.
const REPORTING: [&str; 8] = [
    "AzureCluster",
    "AzureMachine",
    "AzureMachinePool",
    "AzureMachinePoolMachine",
    "KubeadmConfig",
    "KubeadmControlPlane",
    "Machine",
    "MachinePool",
];

/// Objects whose problems count if they last: a managed cluster needs its pools, which are applied after it.
const NEEDING_OTHERS: [&str; 5] = [
    "AzureASOManagedCluster",
    "AzureASOManagedControlPlane",
    "AzureASOManagedMachinePool",
    "AzureManagedControlPlane",
    "AzureManagedMachinePool",
];

/// Runs until `stop`.
///
/// # Errors
/// The simulators or the manager do not start, or the manager ends.
pub async fn play(
    screen: Screen,
    directory: &Path,
    manifests: &[Manifest],
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    screen.heading("A management cluster and an Azure, in this process");
    let everything = CancellationToken::new();
    let settings = Settings::of_demo(region(manifests), limits::enough_cores(), directory);
    let management = Management::start(settings, &everything).await?;
    let mut managers = Programs::default();
    programs::start_manager(&management, &mut managers).await?;
    screen.line(format_args!("  page                {}", management.page()));
    let kubeconfig = management.hosted.kubernetes.kubeconfig.display();
    screen.line(format_args!("  management cluster  export KUBECONFIG={kubeconfig}"));

    screen.heading("Applying the manifests");
    let left = applied::apply(screen, &management.hosted.client, manifests).await;
    for id in management.hosted.made_for_machines() {
        let name = id.rsplit('/').next().unwrap_or_default();
        screen.line(format_args!("  user-assigned identity {name} is not in Azure: made for its machines"));
    }
    for (count, what) in [
        (left.not_served, "left out, because they are not supported here"),
        (left.refused, "refused: correct them, and kubectl apply them"),
        (left.unanswered, "not applied, because there was no answer: kubectl apply them again"),
    ] {
        if count > 0 {
            screen.line(format_args!("  {count} of {} {what}", manifests.len()));
        }
    }

    screen.heading("The clusters");
    let before = resources(&management);
    let begun = Instant::now();
    let mut own = Own {
        screen,
        directory: directory.to_owned(),
        management,
        managers,
        workloads: BTreeMap::new(),
        before,
        history: ReportHistory::default(),
        lasting_problems: LastingProblems::default(),
        begun,
        changed: begun,
        last: Vec::new(),
        stage: Stage::Coming,
        explained: false,
        bar: None,
    };
    let followed = own.follow(stop).await;
    own.drop_bar();
    let cleared = own.clear().await;
    everything.cancel();
    followed.and(cleared)
}

/// The region of the first cluster; that of our examples if no cluster has one.
fn region(manifests: &[Manifest]) -> String {
    let said = manifests.iter().find_map(|it| {
        let whole = it.object.pointer("/spec/resources").and_then(Value::as_array);
        let location = match it.kind() {
            "AzureCluster" | "AzureManagedControlPlane" => it.text("/spec/location"),
            "AzureASOManagedCluster" | "AzureASOManagedControlPlane" => {
                let mut resources = whole.into_iter().flatten();
                resources.find_map(|resource| resource["spec"]["location"].as_str()).unwrap_or_default()
            }
            _ => "",
        };
        (!location.is_empty()).then(|| location.to_lowercase().replace(' ', ""))
    });
    said.unwrap_or_else(|| Shape::default().region)
}

/// The combined progress of all clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Something is not ready yet.
    Coming,
    /// Something is not ready yet, and the demo has printed what it waits for.
    Waiting,
    /// Everything is ready.
    Ready,
    /// There is no cluster any more.
    Gone,
}

/// A workload cluster that is served here.
#[derive(Default)]
struct Workload {
    cloud: Programs,
    has_cloud: bool,
}

struct Own {
    screen: Screen,
    directory: PathBuf,
    management: Management,
    managers: Programs,
    workloads: BTreeMap<ClusterName, Workload>,
    /// The initial resources in Azure.
    before: Vec<String>,
    history: ReportHistory,
    lasting_problems: LastingProblems,
    begun: Instant,
    /// The time of the last change.
    changed: Instant,
    last: Vec<ClusterView>,
    stage: Stage,
    /// Whether the demo has explained how to inspect everything.
    explained: bool,
    bar: Option<ProgressBar>,
}

impl Own {
    async fn follow(&mut self, stop: &CancellationToken) -> anyhow::Result<()> {
        loop {
            self.managers.check().await?;
            self.look_at_workloads().await?;
            let clusters = self.management.hosted.clusters();
            let troubles = self.troubles();
            let news = self.history.news(&clusters, troubles);
            if clusters != self.last {
                self.changed = Instant::now();
            }
            let were_some = !self.last.is_empty();
            self.last.clone_from(&clusters);
            self.print(&news);
            self.judge(&clusters, were_some);
            self.draw(&clusters);
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
            }
        }
    }

    /// Prints the combined progress of all clusters, if it has changed.
    fn judge(&mut self, clusters: &[ClusterView], were_some: bool) {
        let quiet = self.changed.elapsed() > QUIET;
        let next = match self.stage {
            _ if report::is_ready(clusters) => Stage::Ready,
            Stage::Gone if clusters.is_empty() => Stage::Gone,
            _ if clusters.is_empty() && were_some => Stage::Gone,
            _ if quiet => Stage::Waiting,
            Stage::Waiting if !quiet => Stage::Coming,
            Stage::Ready | Stage::Gone => Stage::Coming,
            same => same,
        };
        if next == self.stage {
            return;
        }
        self.stage = next;
        self.drop_bar();
        match next {
            Stage::Coming => return,
            Stage::Waiting => self.say_what_is_open(clusters),
            Stage::Ready => self.moment("everything is ready"),
            Stage::Gone => {
                let left: Vec<String> =
                    resources(&self.management).into_iter().filter(|id| !self.before.contains(id)).collect();
                self.moment(&match left.first() {
                    None => "there is no cluster any more, and Azure is as before".to_owned(),
                    Some(first) => format!(
                        "there is no cluster any more; {} resources are left in Azure, such as {first}",
                        left.len()
                    ),
                });
            }
        }
        if !self.explained {
            self.explained = true;
            self.explain();
        }
    }

    fn say_what_is_open(&self, clusters: &[ClusterView]) {
        let screen = self.screen;
        let open = report::open(clusters);
        if clusters.is_empty() {
            self.moment("there is no Cluster: apply one");
            return;
        }
        let text = format!("nothing has changed for {} s; still to come:", QUIET.as_secs());
        self.moment(&text);
        for line in open {
            screen.line(format_args!("            {line}"));
        }
    }

    /// Prints how to inspect the clusters, and how to stop.
    fn explain(&self) {
        let screen = self.screen;
        screen.heading("Have a look");
        let kubeconfig = self.management.hosted.kubernetes.kubeconfig.display();
        screen.line(format_args!("  export KUBECONFIG={kubeconfig}"));
        screen.line("  kubectl get cluster,azurecluster,machines,machinepools");
        if self.workloads.is_empty() {
            screen.line("  kubeconfigs of workload clusters are shown here once their API servers answer");
        }
        for name in self.workloads.keys() {
            let path = workload_kubeconfig(&self.directory, name);
            screen.line(format_args!("  kubectl --kubeconfig {} get nodes", path.display()));
        }
        screen.line(format_args!("  page: {}", self.management.page()));
        screen.line("  What you do with kubectl is followed here. Stop with Ctrl-C.\n");
    }

    fn print(&mut self, news: &News) {
        if news == &News::default() {
            return;
        }
        let (screen, since) = (self.screen, self.begun.elapsed());
        let say = || {
            for text in &news.done {
                screen.moment(since, text);
            }
            for text in &news.troubles {
                screen.moment(since, screen.paint(Tone::Bad, text));
            }
        };
        match &self.bar {
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }

    fn wrong(&self, text: &str) {
        self.moment(&self.screen.paint(Tone::Bad, text));
    }

    fn moment(&self, text: &str) {
        let since = self.begun.elapsed();
        match &self.bar {
            Some(bar) => bar.suspend(|| self.screen.moment(since, text)),
            None => self.screen.moment(since, text),
        }
    }

    /// On a terminal, draws the tree below the output while something is not ready yet.
    fn draw(&mut self, clusters: &[ClusterView]) {
        if matches!(self.stage, Stage::Ready | Stage::Gone) {
            return;
        }
        let screen = self.screen;
        let bar = self.bar.get_or_insert_with(|| screen.waiting(""));
        let lines = clusters.iter().flat_map(|cluster| tree::draw(&cluster.parts, |_, mark| mark.to_owned()));
        let lines: Vec<String> = lines.map(|line| format!("\n  {line}")).collect();
        bar.set_message(format!("waiting until everything is ready{}", lines.concat()));
    }

    fn drop_bar(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Serves new workload clusters, starts their cloud controller managers, and ends those of deleted clusters.
    async fn look_at_workloads(&mut self) -> anyhow::Result<()> {
        let there: Vec<ClusterName> = self.management.workloads().into_keys().collect();
        let gone: Vec<ClusterName> =
            self.workloads.keys().filter(|name| !there.contains(name)).cloned().collect();
        for name in gone {
            if let Some(workload) = self.workloads.remove(&name) {
                // It has lost its API server, and may report that.
                let _end = tokio::spawn(workload.cloud.end());
            }
        }
        for name in there {
            if !self.workloads.contains_key(&name) {
                let served = self.management.serve_workload(&self.directory, &name).await;
                // The cluster may have been deleted meanwhile.
                if !self.management.workloads().contains_key(&name) {
                    continue;
                }
                let path = served?;
                self.workloads.insert(name.clone(), Workload::default());
                let how = match self.explained {
                    true => format!(": kubectl --kubeconfig {} get nodes", path.display()),
                    false => String::new(),
                };
                self.moment(&format!("{name}: its API server answers{how}"));
            }
            if let Err(problem) = self.start_cloud_controller_manager(&name) {
                self.wrong(&format!("{name}: azure-cloud-controller-manager does not start: {problem:#}"));
            }
        }
        let mut ended = Vec::new();
        for (name, workload) in &mut self.workloads {
            if let Err(problem) = workload.cloud.check().await {
                workload.cloud = Programs::default();
                ended.push(format!("{name}: {problem:#}; it is not started again"));
            }
        }
        ended.iter().for_each(|text| self.wrong(text));
        Ok(())
    }

    fn start_cloud_controller_manager(&mut self, name: &ClusterName) -> anyhow::Result<()> {
        let Some(workload) = self.workloads.get_mut(name).filter(|workload| !workload.has_cloud) else {
            return Ok(());
        };
        let found = programs::azure_json(&self.management, name);
        // One attempt: to repair what was wrong, the user creates the cluster anew.
        workload.has_cloud = !matches!(found, Ok(None));
        let Some(mut azure_json) = found? else { return Ok(()) };
        self.management.use_own_application(&mut azure_json)?;
        let (management, directory) = (&self.management, &self.directory);
        programs::start_cloud_controller_manager(
            management,
            directory,
            name,
            &azure_json,
            &mut workload.cloud,
        )?;
        self.moment(&format!("{name}: azure-cloud-controller-manager runs"));
        Ok(())
    }

    /// All current problems.
    fn troubles(&mut self) -> Vec<String> {
        let objects: Vec<Value> = REPORTING.iter().flat_map(|kind| self.management.list(kind)).collect();
        let needing: Vec<Value> = NEEDING_OTHERS.iter().flat_map(|kind| self.management.list(kind)).collect();
        let (mut of_needing, events): (Vec<Value>, Vec<Value>) =
            self.management.list("Event").into_iter().partition(|event| {
                NEEDING_OTHERS.iter().any(|kind| event["involvedObject"]["kind"] == *kind)
            });
        // An event outlives its problem.
        of_needing.retain(|event| {
            let about = &event["involvedObject"];
            needing.iter().any(|it| it["metadata"]["uid"] == about["uid"] && it["status"]["ready"] != true)
        });
        let mut troubles = report::troubles(&objects, &events);
        let core: Vec<Value> = REFERRING.iter().flat_map(|kind| self.management.list(kind)).collect();
        let mut lasting = report::missing(&core);
        lasting.extend(report::troubles(&needing, &of_needing));
        troubles.extend(self.lasting_problems.lasting(lasting, Instant::now(), PATIENCE));
        for cluster in self.management.list("Cluster") {
            if !cluster["spec"]["topology"].is_null() {
                let title = report::title(&cluster);
                troubles.push(format!(
                    "{title}: spec.topology: classes of clusters are not played here; take a template without one"
                ));
            }
        }
        for machine in
            objects.iter().filter(|it| it["kind"].as_str().is_some_and(|kind| kind.starts_with("Azure")))
        {
            let id = machine["spec"]["providerID"].as_str().and_then(|id| id.strip_prefix("azure://"));
            let id = id.and_then(|id| ResourceId::parse(id).ok());
            if let Some(Err(why)) = id.and_then(|id| self.management.hosted.workloads.bootstrapped(&id)) {
                let name = machine["metadata"]["name"].as_str().unwrap_or_default();
                troubles.push(format!("{name} does not become a node: {why}"));
            }
        }
        troubles
    }

    async fn clear(self) -> anyhow::Result<()> {
        for workload in self.workloads.into_values() {
            workload.cloud.end().await?;
        }
        self.managers.end().await
    }
}

/// The IDs of all resources in Azure.
fn resources(management: &Management) -> Vec<String> {
    let documents = management.hosted.azure.azure.documents();
    documents.iter().filter_map(|document| document["id"].as_str().map(str::to_owned)).collect()
}
