//! A simulated cluster on which a program is measured.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use azure_simulator::{Azure, Journal, RequestKind};
use azure_types::ResourceId;
use clock::Clock;
use indicatif::ProgressBar;
use k8s::names::TAINT_UNINITIALIZED;
use kubernetes_simulator::{Kubernetes, Object};
use serde_json::{Value, json};
use simulated_cluster::{Credentials, HostedCluster, HostedOptions, NodePool, Ports, Shape};
use stand_ins::Pace;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Arguments;
use super::critical_path;
use crate::bench::process::{Files, Manager, Running};
use crate::bench::resident::{Memory, processor_time};

/// A node whose kubelet is silent is missed after this time. Kubernetes waits for 40 s, which no controller manager
/// can change, and which is no part of what is measured.
const GRACE: Duration = Duration::from_secs(2);
/// A program is calm when it has asked Azure nothing for this long, and nothing is under way there.
const REST: Duration = Duration::from_secs(5);
/// Longest time in which a program that has something to do asks Azure for nothing: both programs wait less after
/// a failure for the first times.
const STALL_TIMEOUT: Duration = Duration::from_secs(120);
/// In this time all stand-ins have begun to watch.
const STAND_INS_UP: Duration = Duration::from_secs(2);
/// How often is looked whether the program goes on.
const GLANCE: Duration = Duration::from_millis(200);

const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";

/// The cluster, and the program that runs over it at the time.
pub struct Stage {
    /// The simulated Azure and all that stands beside it.
    pub cluster: HostedCluster,
    /// Its Kubernetes, inside.
    pub kubernetes: Kubernetes,
    /// The scale set of all machines.
    pub scale_set: ResourceId,
    /// How many Services the bench applies.
    pub services: u32,
    /// How many Services come and go one after the other.
    pub chain: u32,
    /// How many machines the scale set has in the beginning.
    pub nodes: u64,
    /// Whether the program that runs initialises nodes; where it leaves that to node managers, a stand-in does it at once.
    pub initialises_nodes: bool,
    bar: ProgressBar,
    running: Option<Running>,
    begun: Instant,
    directory: TempDir,
    stop: CancellationToken,
    _stop: DropGuard,
}

impl Stage {
    /// Lays out a cluster without Services, and waits for its nodes.
    ///
    /// # Errors
    /// A simulator cannot be started.
    pub async fn lay_out(arguments: &Arguments, bar: ProgressBar) -> anyhow::Result<Self> {
        bar.set_message("laying out");
        let directory = tempfile::Builder::new().prefix("cerulean-bench-").tempdir()?;
        let stop = CancellationToken::new();
        let pool = NodePool::new("workers", "worker", arguments.nodes);
        let mut shape = Shape { pools: vec![pool], ..Shape::default() };
        if arguments.by_address {
            shape.settings.insert("loadBalancerBackendPoolConfigurationType".to_owned(), "nodeIP".into());
        }
        let scale_set = shape.scale_set("workers");
        let options = HostedOptions {
            shape,
            latency: arguments.latency.profile.clone(),
            seed: 1,
            pace: Pace::missed_after(GRACE),
            directory: directory.path().to_owned(),
            kubeconfig: None,
            ports: Ports::default(),
            credentials: Credentials::default(),
            now: Clock::system().now(),
        };
        let cluster = HostedCluster::start(options, &stop).await?;
        let kubernetes = cluster.kubernetes.clone().context("the cluster has a Kubernetes of its own")?;
        let mut stage = Self {
            cluster,
            kubernetes: kubernetes.clone(),
            scale_set,
            services: arguments.services,
            chain: arguments.chain(),
            nodes: arguments.nodes,
            initialises_nodes: true,
            bar,
            running: None,
            begun: Instant::now(),
            directory,
            stop: stop.clone(),
            _stop: stop.drop_guard(),
        };
        let count = usize::try_from(arguments.nodes)?;
        let registered = async { Ok(kubernetes.until("Node", |n| (n.len() == count).then_some(())).await?) };
        stage.until("nodes to register", registered).await?;
        // The stand-ins watch nodes, too: theirs must not be taken for the program's first watch.
        sleep(STAND_INS_UP).await;
        Ok(stage)
    }

    /// Says what goes on.
    pub fn tell(&self, text: impl Into<String>) {
        self.bar.set_message(text.into());
    }

    /// Time begins, and Azure forgets what it was asked.
    pub fn begin(&mut self) {
        self.cluster.azure.clear_journal();
        self.begun = Instant::now();
    }

    /// Time since then.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Starts a program.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn start(&mut self, manager: &Manager) -> anyhow::Result<()> {
        let files = &self.cluster.files;
        let files = Files {
            cloud_config: &files.azure_json,
            kubeconfig: &files.kubeconfig,
            certificate_authority: &files.certificate_authority,
            logs: self.directory.path(),
        };
        self.running = Some(Running::start(manager, &files)?);
        self.initialises_nodes = manager.initialises_nodes();
        if !self.initialises_nodes {
            let (kubernetes, azure) = (self.kubernetes.clone(), self.cluster.azure.clone());
            tokio::spawn(self.stop.clone().run_until_cancelled_owned(initialise_nodes(kubernetes, azure)));
        }
        Ok(())
    }

    /// Ends the program, where one runs.
    pub fn end(&mut self) {
        self.running = None;
    }

    /// Waits for something that the program brings about.
    ///
    /// # Errors
    /// The program ends, or asks Azure for nothing for a long time; or what is waited for fails.
    pub async fn until<T>(
        &mut self,
        what: &str,
        done: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let mut done = std::pin::pin!(done);
        let (mut asked, mut since) = (self.asked(), Instant::now());
        loop {
            tokio::select! {
                value = &mut done => return value,
                () = sleep(GLANCE) => {}
            }
            let now = self.asked();
            if now != asked || self.cluster.azure.running_operations() > 0 {
                (asked, since) = (now, Instant::now());
            }
            let Some(running) = &mut self.running else { continue };
            running.must_run()?;
            ensure!(
                since.elapsed() < STALL_TIMEOUT,
                "waited for {what}, and the program has asked Azure for nothing for {} s; the end of its output:\n{}",
                STALL_TIMEOUT.as_secs(),
                running.last_words()
            );
        }
    }

    /// Waits until the program asks Azure for nothing any more.
    ///
    /// # Errors
    /// It ends.
    pub async fn rest(&mut self) -> anyhow::Result<()> {
        let azure = self.cluster.azure.clone();
        let calm = async {
            let (mut asked, mut since) = (0, Instant::now());
            while since.elapsed() < REST {
                let now = azure.journal_after(u64::MAX).counts.requests;
                if now != asked || azure.running_operations() > 0 {
                    (asked, since) = (now, Instant::now());
                }
                sleep(Duration::from_millis(50)).await;
            }
            Ok(())
        };
        self.until("the program to come to rest", calm).await
    }

    /// When the last request came, and when the last write had ended, since time began.
    pub fn last_call_and_write(&self, journal: &Journal) -> (Option<Duration>, Option<Duration>) {
        let since_start = |millisecond: i64| {
            let now = self.cluster.azure.now().as_millisecond();
            let ago = u64::try_from(now - millisecond).unwrap_or_default();
            self.elapsed().saturating_sub(Duration::from_millis(ago))
        };
        let call = journal.entries.iter().map(|entry| entry.time.as_millisecond()).max();
        let writes =
            journal.entries.iter().filter(|e| matches!(e.kind, RequestKind::Write | RequestKind::Delete));
        let ends = writes.map(|entry| {
            let took = i64::try_from(critical_path::duration(entry).as_millis()).unwrap_or(i64::MAX);
            entry.time.as_millisecond().saturating_add(took)
        });
        (call.map(since_start), ends.max().map(since_start))
    }

    /// What the program holds.
    ///
    /// # Errors
    /// It has ended.
    pub fn memory(&self) -> anyhow::Result<Memory> {
        Memory::of(self.process()?)
    }

    /// The processor time that the program took since it was started.
    ///
    /// # Errors
    /// It has ended.
    pub fn processor_time(&self) -> anyhow::Result<Duration> {
        processor_time(self.process()?)
    }

    fn process(&self) -> anyhow::Result<u32> {
        Ok(self.running.as_ref().context("no program runs")?.id())
    }

    fn asked(&self) -> u64 {
        self.cluster.azure.journal_after(u64::MAX).counts.requests
    }

    /// The scale set's machines: number of the instance, and host name, which is the node's.
    pub fn machines(&self) -> Vec<(String, String)> {
        let machine =
            |document: &Value| Some((document["instanceId"].as_str()?.to_owned(), host_name(document)?));
        self.cluster.azure.documents_of_type(INSTANCES).iter().filter_map(machine).collect()
    }
}

/// Does for every node what its node manager does: says which machine it is, and takes the taint off.
async fn initialise_nodes(kubernetes: Kubernetes, azure: Azure) {
    loop {
        let next = |nodes: &[Arc<Object>]| nodes.iter().find(|node| !is_initialised(node)).cloned();
        let Ok(node) = kubernetes.until("Node", next).await else { return };
        let machines = azure.documents_of_type(INSTANCES);
        let machine = machines.iter().find(|machine| host_name(machine).as_deref() == Some(node.name()));
        let id = machine.and_then(|machine| machine["id"].as_str()).unwrap_or_default();
        let mut taints = node.value()["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.retain(|taint| taint["key"] != TAINT_UNINITIALIZED);
        let patch = json!({"spec": {"providerID": format!("azure://{id}"), "taints": taints}});
        // A node that has gone meanwhile needs nothing.
        let _gone = kubernetes.merge("Node", "", node.name(), &patch);
    }
}

/// Whether a cloud has described the node.
pub fn is_initialised(node: &Object) -> bool {
    let taints = node.value()["spec"]["taints"].as_array();
    taints.is_none_or(|taints| taints.iter().all(|taint| taint["key"] != TAINT_UNINITIALIZED))
}

fn host_name(machine: &Value) -> Option<String> {
    Some(machine["properties"]["osProfile"]["computerName"].as_str()?.to_ascii_lowercase())
}
