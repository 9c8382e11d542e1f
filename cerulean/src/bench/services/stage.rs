//! A simulated cluster in which a program is measured.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use azure_simulator::{Journal, Options, RequestKind};
use azure_types::ResourceId;
use clock::Clock;
use indicatif::ProgressBar;
use kubernetes_simulator::Kubernetes;
use serde_json::Value;
use simulated_cluster::{HostedCluster, HostedOptions, NodePool, Shape};
use stand_ins::Pace;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::arguments::Arguments;
use super::critical_path;
use crate::bench::process::{Files, Manager, Running};
use crate::bench::resident::{Memory, processor_time};
use crate::bench::simulators::{INSTANCES, Idle, host_name, initialise_nodes};

/// The time until a silent kubelet's node is missed. In Kubernetes it is 40 s, which no controller manager can change,
/// and which is not part of the measurement.
const GRACE: Duration = Duration::from_secs(2);
/// A program is idle after this time without requests to Azure and without running operations there.
const REST: Duration = Duration::from_secs(5);
/// The maximum time without requests to Azure while a program has something to do: both programs wait less after the
/// first failures.
const STALL_TIMEOUT: Duration = Duration::from_secs(120);
/// All stand-ins have started their watches within this time.
const STAND_INS_UP: Duration = Duration::from_secs(2);
/// The interval at which progress is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The cluster, and the program that currently runs in it.
pub struct Stage {
    /// The simulated Azure and everything around it.
    pub cluster: HostedCluster,
    /// The simulated Kubernetes.
    pub kubernetes: Kubernetes,
    /// The scale set of all machines.
    pub scale_set: ResourceId,
    /// How many Services the bench applies.
    pub services: u32,
    /// How many Services are created and deleted one after the other.
    pub chain: u32,
    /// The initial number of machines of the scale set.
    pub nodes: u64,
    /// Whether the running program initialises nodes; if it leaves that to node managers, a stand-in does it at once.
    pub initialises_nodes: bool,
    bar: ProgressBar,
    running: Option<Running>,
    begun: Instant,
    directory: TempDir,
    stop: CancellationToken,
    _stop: DropGuard,
}

impl Stage {
    /// Creates a cluster without Services, and waits for its nodes.
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
        let latency = arguments.latency.profile.clone();
        let azure = Options { latency, start: Clock::system().now(), ..Options::default() };
        let options = HostedOptions {
            pace: Pace::missed_after(GRACE),
            ..HostedOptions::of(shape, azure, directory.path())
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
        // The stand-ins watch nodes, too: their watches must not be mistaken for the program's first one.
        sleep(STAND_INS_UP).await;
        Ok(stage)
    }

    /// Shows the current activity.
    pub fn tell(&self, text: impl Into<String>) {
        self.bar.set_message(text.into());
    }

    /// Starts the clock, and clears Azure's journal.
    pub fn begin(&mut self) {
        self.cluster.azure.clear_journal();
        self.begun = Instant::now();
    }

    /// The time since then.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Starts a program.
    ///
    /// # Errors
    /// It cannot be started.
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

    /// Ends the running program, if any.
    pub fn end(&mut self) {
        self.running = None;
    }

    /// Waits for an effect of the program.
    ///
    /// # Errors
    /// The program ends, or sends no requests to Azure for a long time; or the condition fails.
    pub async fn until<T>(
        &mut self,
        what: &str,
        done: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let mut done = std::pin::pin!(done);
        let mut idle = Idle::begin();
        loop {
            tokio::select! {
                value = &mut done => return value,
                () = sleep(POLL_INTERVAL) => {}
            }
            let idle = idle.time(&self.cluster.azure);
            let Some(running) = &mut self.running else { continue };
            running.must_run()?;
            ensure!(
                idle < STALL_TIMEOUT,
                "waited for {what}, and the program has sent no request to Azure for {} s; the end of its output:\n{}",
                STALL_TIMEOUT.as_secs(),
                running.last_words()
            );
        }
    }

    /// Waits until the program sends no more requests to Azure.
    ///
    /// # Errors
    /// It ends.
    pub async fn rest(&mut self) -> anyhow::Result<()> {
        let azure = self.cluster.azure.clone();
        let calm = async {
            let mut idle = Idle::begin();
            while idle.time(&azure) < REST {
                sleep(Duration::from_millis(50)).await;
            }
            Ok(())
        };
        self.until("the program to become idle", calm).await
    }

    /// The times of the last request and of the end of the last write, since the clock started.
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

    /// The program's memory.
    ///
    /// # Errors
    /// It has ended.
    pub fn memory(&self) -> anyhow::Result<Memory> {
        Memory::of(self.process()?)
    }

    /// The program's processor time since it was started.
    ///
    /// # Errors
    /// It has ended.
    pub fn processor_time(&self) -> anyhow::Result<Duration> {
        processor_time(self.process()?)
    }

    fn process(&self) -> anyhow::Result<u32> {
        Ok(self.running.as_ref().context("no program runs")?.id())
    }

    /// The scale set's machines: instance number and host name, which is the node's name.
    pub fn machines(&self) -> Vec<(String, String)> {
        let machine =
            |document: &Value| Some((document["instanceId"].as_str()?.to_owned(), host_name(document)?));
        self.cluster.azure.documents_of_type(INSTANCES).iter().filter_map(machine).collect()
    }
}
