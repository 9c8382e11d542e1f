//! The environment of the demo: the simulated cluster, and the programs in it.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use azure_simulator::Options;
use azure_simulator::packet::{Packet, Protocol, Source, Verdict};
use clock::Clock;
use cloud_controller_manager::environment::ProcessEnvironment;
use cloud_controller_manager::{flags, run};
use k8s::api::api::core::v1::Event;
use k8s::{Node, ObjectKey, Service};
use kube::Api;
use kube::api::ListParams;
use simulated_cluster::{HostedCluster, HostedOptions, Shape};
use stand_ins::Pace;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::programs::Programs;
use crate::screen::Screen;
use crate::simulate::latency;
use crate::watch_writes::Writes;

/// The `--cluster-name` of the demo's controller manager.
pub const CLUSTER_NAME: &str = "demo";

/// The name of the only spot machine, and of its node.
pub const SPOT_NODE: &str = "spot000000";

/// The time limit of a step; steps take a few seconds.
const STEP_TIMEOUT: Duration = Duration::from_secs(120);
/// The polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The simulated cluster and the programs in it.
pub struct Stage {
    /// Where to write.
    pub screen: Screen,
    /// The simulated cluster.
    pub cluster: HostedCluster,
    /// The initial contents of Azure.
    pub shape: Shape,
    /// What the controller manager writes.
    pub writes: Writes,
    programs: Programs,
    stop: CancellationToken,
}

impl Stage {
    /// Starts everything and waits for the nodes.
    pub async fn set(screen: Screen, shape: Shape, directory: &Path, writes: Writes) -> anyhow::Result<Self> {
        screen.heading("A cluster on Azure, in this process");
        let azure = Options { latency: latency::quick(), start: Clock::system().now(), ..Options::default() };
        let options = HostedOptions {
            pace: Pace::missed_after(Duration::from_secs(2)),
            ..HostedOptions::of(shape.clone(), azure, directory)
        };
        // The programs stop first: they release their leases at a Kubernetes that still serves.
        let (stop, mut programs) = (CancellationToken::new(), Programs::default());
        let cluster = HostedCluster::start(options, &stop).await?;
        start_controller_manager(&cluster, &mut programs)?;
        start_node_manager(&cluster, &mut programs)?;
        screen.line(format_args!("  Azure Resource Manager  {}", cluster.resource_manager));
        screen.line(format_args!("  page                    {}", cluster.page()));
        let machines: u64 = shape.pools.iter().map(|pool| pool.nodes).sum();
        let mut stage = Self { screen, cluster, shape, writes, programs, stop };
        let nodes = stage
            .until("the nodes are initialised", async |stage: &Stage| {
                let nodes = stage.nodes().await?;
                let ready =
                    nodes.iter().all(|node| !node.spec.provider_id.is_empty() && node.spec.taints.is_empty());
                Ok((nodes.len() as u64 == machines && ready).then_some(nodes))
            })
            .await?;
        let rows: Vec<[String; 4]> = nodes.iter().map(node_row).collect();
        stage.screen.table(["NODE", "ADDRESS", "ZONE", "SIZE"], &rows);
        Ok(stage)
    }

    /// All nodes, by name.
    pub async fn nodes(&self) -> anyhow::Result<Vec<Node>> {
        Ok(Api::<Node>::all(self.cluster.client.clone()).list(&ListParams::default()).await?.items)
    }

    /// One Service.
    pub async fn service(&self, key: &ObjectKey) -> anyhow::Result<Option<Service>> {
        Ok(self.services_in(&key.namespace).get_opt(&key.name).await?)
    }

    /// The text of the latest warning event for a Service; `None` without one.
    pub async fn latest_warning(&self, key: &ObjectKey, uid: &str) -> anyhow::Result<Option<String>> {
        let events: Api<Event> = Api::namespaced(self.cluster.client.clone(), &key.namespace);
        let events = events.list(&ListParams::default()).await?.items;
        let about = |event: &&Event| {
            event.type_.as_deref() == Some("Warning") && event.involved_object.uid.as_deref() == Some(uid)
        };
        let latest = events.iter().filter(about).max_by_key(|event| event.last_timestamp.clone());
        Ok(latest.map(|event| {
            let said = |text: &Option<String>| text.clone().unwrap_or_default();
            format!("{}: {}", said(&event.reason), said(&event.message))
        }))
    }

    /// The Services of a namespace.
    pub fn services_in(&self, namespace: &str) -> Api<Service> {
        Api::namespaced(self.cluster.client.clone(), namespace)
    }

    /// Waits until `condition` returns a value; fails if that takes too long or a program ends.
    pub async fn until<T>(
        &mut self,
        what: &str,
        condition: impl AsyncFn(&Stage) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let value = self.within(STEP_TIMEOUT, what, condition).await?;
        value.with_context(|| format!("gave up after {} s of waiting until {what}", STEP_TIMEOUT.as_secs()))
    }

    /// Waits for a value of `condition` with a spinner, at most for `timeout`; fails if a program ends.
    pub async fn within<T>(
        &mut self,
        timeout: Duration,
        what: &str,
        condition: impl AsyncFn(&Stage) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Option<T>> {
        let bar = self.screen.waiting(format!("waiting until {what}"));
        let deadline = Instant::now() + timeout;
        let value = loop {
            if let Err(problem) = self.programs.check().await {
                bar.finish_and_clear();
                return Err(problem);
            }
            let value = condition(self).await?;
            if value.is_some() || Instant::now() > deadline {
                break value;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        };
        bar.finish_and_clear();
        Ok(value)
    }

    /// The verdict on a packet.
    pub fn send(&self, from: Source, to: &str, port: u16, protocol: Protocol) -> anyhow::Result<Verdict> {
        let to = to.parse().with_context(|| format!("{to} is no address"))?;
        Ok(self.cluster.send(&Packet::new(from, to, port, protocol)))
    }

    /// Stops the programs, one of which releases its lease, and then everything else.
    pub async fn clear(self) -> anyhow::Result<()> {
        self.programs.end().await?;
        self.stop.cancel();
        Ok(())
    }
}

/// Starts the controller manager with the command line of production.
fn start_controller_manager(cluster: &HostedCluster, programs: &mut Programs) -> anyhow::Result<()> {
    let run = run::run(command_line(cluster)?, environment(cluster)?, programs.stop_token());
    programs.start("controller manager", async move { run.await.map(|_| ()) });
    Ok(())
}

/// Starts the node manager of the spot machine, which informs its node of Azure's announcements.
fn start_node_manager(cluster: &HostedCluster, programs: &mut Programs) -> anyhow::Result<()> {
    let arguments = [
        format!("--node-name={}", SPOT_NODE),
        format!("--kubeconfig={}", cluster.files.kubeconfig.display()),
        format!("--instance-metadata-endpoint={}/instances/{}", cluster.control, SPOT_NODE),
        "--scheduled-events=drain".to_owned(),
    ];
    let flags = cloud_node_manager::flags::parse(arguments)?;
    let variable = |name: &str| (name == "NODE_NAME").then(|| SPOT_NODE.to_owned());
    let environment = ProcessEnvironment::with_variables(variable);
    let run = cloud_node_manager::run::run(flags, environment, programs.stop_token());
    programs.start("node manager", run);
    Ok(())
}

/// The command line of production.
fn command_line(cluster: &HostedCluster) -> anyhow::Result<flags::CommandLine> {
    let arguments = [
        "azure-cloud-controller-manager".to_owned(),
        format!("--cloud-config={}", cluster.files.azure_json.display()),
        format!("--kubeconfig={}", cluster.files.kubeconfig.display()),
        format!("--cluster-name={CLUSTER_NAME}"),
        "--secure-port=0".to_owned(),
        "--node-monitor-period=1s".to_owned(),
        // The default is five minutes: a demo shows it sooner.
        "--azure-resync-period=5s".to_owned(),
    ];
    flags::parse(arguments.map(Into::into)).map_err(|instead| match instead {
        flags::EarlyExit::Print(text) | flags::EarlyExit::Refuse(text) => anyhow::anyhow!(text),
    })
}

/// An empty environment, and the simulated Azure's certificate authority.
fn environment(cluster: &HostedCluster) -> anyhow::Result<ProcessEnvironment> {
    let authority = std::fs::read_to_string(&cluster.files.certificate_authority)?;
    let mut environment = ProcessEnvironment::with_variables(|_| None);
    environment.extra_roots = vec![authority];
    Ok(environment)
}

fn node_row(node: &Node) -> [String; 4] {
    let address = node.status.addresses.iter().find(|address| address.kind == "InternalIP");
    let label = |key| node.label(key).unwrap_or_default().to_owned();
    [
        node.name().to_owned(),
        address.map(|address| address.address.clone()).unwrap_or_default(),
        label(k8s::names::LABEL_ZONE),
        label(k8s::names::LABEL_INSTANCE_TYPE),
    ]
}
