//! Starts and ends the enabled controllers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cloud::{ClusterState, LoadBalancers, Machines, NodeRanges, Routes};
use freshness::AgeLimits;
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::api::with_few_connections;
use crate::draining::DrainingNodes;
use crate::events;
use crate::health::HealthChecks;
use crate::ipam::{Ipam, RangeOptions};
use crate::local_pools::{LocalPools, MovedEndpoints};
use crate::node::{self, NodeController};
use crate::node_lifecycle::NodeLifecycle;
use crate::node_sync::NodeSync;
use crate::observer::{NoObserver, Observer};
use crate::out_of_service::OutOfService;
use crate::preemption::Preemption;
use crate::queue::{Backoff, Queue, propagate_panic};
use crate::resource_lease::ResourceLease;
use crate::resync::Resync;
use crate::routes::RouteController;
use crate::service::ServiceController;
use crate::tasks::{MAX_PARALLEL_NODES, Queues, Tasks, wait_for};
use crate::watch::with_answer_timeout;
use clock::Clock;

/// Maximum number of Services that are reconciled in parallel. They wait for the cloud, which merges them into few
/// writes, and for the API server's answers; each takes a few kilobytes meanwhile.
const MAX_PARALLEL_SERVICES: usize = 512;

/// How long it may take to release leases and send the last events after the controllers have ended. With the default
/// of [`Options::drain`] and the time that a leader takes to release its Lease, a stop takes less than 20 s, of the 30
/// s that Kubernetes gives a terminating pod.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(4);

/// The enabled controllers (`--controllers`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Controllers {
    /// `service-lb-controller`: load balancers.
    pub service: bool,
    /// `cloud-node-controller`: describes new nodes. Upstream's does nothing because of a defect; the Helm chart
    /// disables it, because the node manager does the same on each node.
    pub cloud_node: bool,
    /// `cloud-node-lifecycle-controller`: deletes nodes whose machine does not exist.
    pub cloud_node_lifecycle: bool,
    /// `node-route-controller`: routes to the pods of nodes, if the cloud has any ([`Cloud::with_routes`]).
    pub route: bool,
    /// `node-ipam`: assigns pod ranges to nodes, if there are any ([`Options::ranges`]).
    pub node_ipam: bool,
}

impl Controllers {
    /// None of them.
    pub const NONE: Self = Self {
        service: false,
        cloud_node: false,
        cloud_node_lifecycle: false,
        route: false,
        node_ipam: false,
    };
}

impl Default for Controllers {
    /// All of them.
    fn default() -> Self {
        Self { service: true, cloud_node: true, cloud_node_lifecycle: true, route: true, node_ipam: true }
    }
}

/// Options of the controllers.
#[derive(Clone)]
pub struct Options {
    /// The enabled controllers.
    pub controllers: Controllers,
    /// The lifecycle controller's pause after the first lookup of the machine of a node that is not ready
    /// (`--node-monitor-period`). Later pauses are longer.
    pub node_monitor_period: Duration,
    /// Interval of the route controller's comparisons of all routes (`--route-reconciliation-period`).
    pub route_reconciliation_period: Duration,
    /// The source of nodes' pod ranges, if this program assigns them (`--allocate-node-cidrs`).
    pub ranges: Option<RangeOptions>,
    /// Interval of the node controller's comparisons of all addresses (`--node-status-update-frequency`).
    pub node_status_update_frequency: Duration,
    /// Interval of comparisons of everything that Services have in Azure (`--azure-resync-period`); zero for
    /// comparisons only on events.
    pub azure_resync_period: Duration,
    /// A label selector for nodes (`--node-filter-requirements`); `None` for all.
    pub node_selector: Option<String>,
    /// Pause between the starts of controllers, plus up to as much again at random (`--controller-start-interval`).
    pub start_interval: Duration,
    /// Maximum number of Services that are reconciled in parallel, at least one. The cloud merges them into few writes,
    /// which is why this is large.
    pub service_parallelism: usize,
    /// Whether writes require the lease that this program shares with AKS (LB-039 to LB-043).
    pub resource_lease: bool,
    /// How long running tasks may take to end after a stop.
    pub drain: Duration,
    /// The host's name, part of the source of events; may be empty.
    pub host: String,
    /// The wall clock.
    pub clock: Clock,
    /// Seed of all randomness.
    pub seed: u64,
    /// Where controllers add health checks as they start.
    pub health: HealthChecks,
    /// Receives metrics.
    pub observer: Arc<dyn Observer>,
}

impl Default for Options {
    /// Upstream's defaults.
    fn default() -> Self {
        Self {
            controllers: Controllers::default(),
            node_monitor_period: Duration::from_secs(5),
            route_reconciliation_period: Duration::from_secs(10),
            ranges: None,
            node_status_update_frequency: Duration::from_secs(300),
            azure_resync_period: Duration::from_secs(300),
            node_selector: None,
            start_interval: Duration::ZERO,
            service_parallelism: MAX_PARALLEL_SERVICES,
            resource_lease: true,
            drain: Duration::from_secs(12),
            host: String::new(),
            clock: Clock::system(),
            seed: 0,
            health: HealthChecks::default(),
            observer: Arc::new(NoObserver),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("controllers", &self.controllers)
            .field("node_monitor_period", &self.node_monitor_period)
            .field("node_status_update_frequency", &self.node_status_update_frequency)
            .field("node_selector", &self.node_selector)
            .field("service_parallelism", &self.service_parallelism)
            .field("resource_lease", &self.resource_lease)
            .finish_non_exhaustive()
    }
}

/// Why the controllers cannot run.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// An invalid value; the text names the flag and the remedy.
    #[error("{0}")]
    Options(String),
}

impl Options {
    fn validate(&self) -> Result<(), Error> {
        for (flag, period) in [
            ("--node-monitor-period", self.node_monitor_period),
            ("--route-reconciliation-period", self.route_reconciliation_period),
            ("--node-status-update-frequency", self.node_status_update_frequency),
        ] {
            if period.is_zero() {
                return Err(Error::Options(format!("{flag}=0s would never rest; give a longer time")));
            }
        }
        Ok(())
    }
}

/// The cloud that the controllers work with, and the shared state of the cluster.
#[derive(Clone)]
pub struct Cloud {
    /// Load balancers for Services.
    pub load_balancers: Arc<dyn LoadBalancers>,
    /// The machines of Nodes.
    pub machines: Arc<dyn Machines>,
    /// Routes to the pods of Nodes; `None` if none are written.
    pub routes: Option<Arc<dyn Routes>>,
    /// The sizes of Nodes' pod ranges; `None` if the cloud does not define them.
    pub node_ranges: Option<Arc<dyn NodeRanges>>,
    /// The Services and Nodes: the controllers' watches write them, and the cloud reads them.
    pub state: ClusterState,
}

impl Cloud {
    /// A cloud whose load balancers and machines are implemented by one value.
    pub fn of<C: LoadBalancers + Machines>(cloud: C, state: ClusterState) -> Self {
        let cloud = Arc::new(cloud);
        let load_balancers = Arc::clone(&cloud) as _;
        Self { load_balancers, machines: cloud, routes: None, node_ranges: None, state }
    }

    /// Adds routes to the pods of Nodes.
    #[must_use]
    pub fn with_routes(self, routes: impl Routes) -> Self {
        Self { routes: Some(Arc::new(routes)), ..self }
    }

    /// Adds the sizes of Nodes' pod ranges.
    #[must_use]
    pub fn with_node_ranges(self, ranges: impl NodeRanges) -> Self {
        Self { node_ranges: Some(Arc::new(ranges)), ..self }
    }
}

impl fmt::Debug for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cloud").field("state", &self.state).finish_non_exhaustive()
    }
}

/// Runs the enabled controllers until `stop`. Then, in this order:
///
/// 1. no new work is started, and running tasks may end within [`Options::drain`];
/// 2. tasks that still run are abandoned immediately, without events: the next process continues;
/// 3. the cloud stops writing ([`LoadBalancers::stop`]);
/// 4. leases are released, and queued events are sent.
///
/// Dropping the returned future instead abandons everything immediately.
pub async fn run(
    client: Client,
    cloud: Cloud,
    options: Options,
    stop: CancellationToken,
) -> Result<(), Error> {
    options.validate()?;
    let controllers = options.controllers;
    let ranges = options.ranges.as_ref().filter(|_| controllers.node_ipam);
    if ranges.is_some_and(|ranges| ranges.masks.is_none()) && cloud.node_ranges.is_none() {
        let problem = "--cidr-allocator-type=CloudAllocator: the cloud does not say how large ranges are; \
                       use RangeAllocator";
        return Err(Error::Options(problem.to_owned()));
    }
    let load_balancers = Arc::clone(&cloud.load_balancers);
    // These outlive the controllers, which use them to the end.
    let ended = CancellationToken::new();
    let (recorder, writer) = events::recorder(
        client.clone(),
        options.clock.clone(),
        options.host.clone(),
        "cloud-controller-manager",
        Arc::clone(&options.observer),
    );
    let mut services = JoinSet::new();
    services.spawn(writer.run(ended.clone()));
    let mut tasks = Tasks::new(&options, stop.clone());

    let lease = (controllers.service && options.resource_lease).then(|| {
        ResourceLease::new(client.clone(), options.clock.clone(), Arc::clone(&cloud.load_balancers))
    });
    if let Some(lease) = &lease {
        services.spawn(lease.clone().keep(ended.clone()));
    }

    let age_limits = Arc::new(AgeLimits::default());
    let drains = controllers.service && load_balancers.drains_nodes();
    let has_routes = controllers.route && cloud.routes.is_some();
    let queue = |name| Queue::new(name, Backoff::NODES, Arc::clone(&options.observer));
    let ipam = ranges.map(|ranges| {
        let recorder = recorder.speaking_for("cidrAllocator");
        let (machines, state) = (cloud.node_ranges.clone(), cloud.state.clone());
        let (age_limits, observer) = (Arc::clone(&age_limits), Arc::clone(&options.observer));
        Arc::new(Ipam::new(client.clone(), ranges, machines, state, age_limits, recorder, observer))
    });
    let queues = Queues {
        services: Queue::new("service", Backoff::SERVICES, Arc::clone(&options.observer)),
        served: Arc::default(),
        refusals: Arc::default(),
        node_set: Queue::new("node", Backoff::SERVICES, Arc::clone(&options.observer)),
        node_set_changes: Arc::default(),
        nodes: controllers.cloud_node.then(|| queue("Nodes")),
        lifecycle: controllers.cloud_node_lifecycle.then(|| queue("node-lifecycle")),
        out_of_service: queue("out-of-service"),
        routes: has_routes.then(|| Queue::new("Routes", Backoff::NODES, Arc::clone(&options.observer))),
        route_changes: Arc::default(),
        ipam: ipam.map(|ipam| (queue("node-ipam"), ipam)),
        draining: drains.then(|| Queue::new("draining", Backoff::SERVICES, Arc::clone(&options.observer))),
    };
    let labels = load_balancers.follows_labels();
    let local_pool_interval = load_balancers.local_pool_interval().filter(|_| controllers.service);
    let (nodes_synced, services_synced) = (watch::Sender::new(false), watch::Sender::new(false));
    let namespaces_synced = watch::Sender::new(!labels.of_namespaces);
    // If no Service has a pool of its own, endpoints are not needed.
    let endpoints_synced = watch::Sender::new(local_pool_interval.is_none());
    let nodes_known = wait_for(&nodes_synced);
    let nodes_known_for_draining = wait_for(&nodes_synced);
    let nodes_known_for_routes = wait_for(&nodes_synced);
    let nodes_known_for_ipam = wait_for(&nodes_synced);
    let all_known = || {
        let (nodes, services) = (wait_for(&nodes_synced), wait_for(&services_synced));
        let (namespaces, endpoints) = (wait_for(&namespaces_synced), wait_for(&endpoints_synced));
        async move { _ = tokio::join!(nodes, services, namespaces, endpoints) }
    };
    let (all_known, all_known_for_resync) = (all_known(), all_known());
    let watching = with_answer_timeout(&client);
    let client = with_few_connections(&client);
    tasks.watch_nodes(&watching, &cloud.state, &queues, labels, nodes_synced);
    if controllers.service {
        tasks.watch_services(&watching, &cloud.state, &queues, labels, services_synced);
        if labels.of_namespaces {
            tasks.watch_namespaces(&watching, &cloud.state, &queues, namespaces_synced);
        }
    }
    let moved_endpoints: Arc<MovedEndpoints> = Arc::default();
    if local_pool_interval.is_some() {
        tasks.watch_endpoints(&watching, &cloud.state, &moved_endpoints, endpoints_synced);
    }

    tasks.spawn({
        let work = Arc::new(OutOfService::new(client.clone(), cloud.state.clone(), recorder.clone()));
        let (queue, stop, drain) = (queues.out_of_service.clone(), stop.clone(), options.drain);
        queue.work(MAX_PARALLEL_NODES, stop, drain, move |name: String| {
            let work = Arc::clone(&work);
            async move { work.reconcile(&name).await }
        })
    });
    if controllers.service && tasks.pause().await {
        let controller = Arc::new(ServiceController::new(
            client.clone(),
            Arc::clone(&load_balancers),
            cloud.state.clone(),
            lease.clone(),
            &recorder,
            Arc::clone(&queues.served),
            Arc::clone(&queues.refusals),
        ));
        let sync = NodeSync::new(
            Arc::clone(&load_balancers),
            cloud.state.clone(),
            Arc::clone(&queues.node_set_changes),
            Arc::clone(&controller),
            queues.services.clone(),
            Arc::clone(&age_limits),
            Arc::clone(&options.observer),
        );
        tasks.start_services(&queues, controller, Arc::new(sync), all_known);
        let resync = Resync::new(
            Arc::clone(&load_balancers),
            cloud.state.clone(),
            lease.clone(),
            recorder.speaking_for("azure-cloud-provider"),
            Arc::clone(&options.observer),
            queues.services.clone(),
            options.azure_resync_period,
        );
        let until = tasks.stop.clone();
        tasks.spawn(async move { _ = until.run_until_cancelled(resync.run(all_known_for_resync)).await });
        if let Some(interval) = local_pool_interval {
            let local_pools = LocalPools::new(
                Arc::clone(&load_balancers),
                cloud.state.clone(),
                lease.clone(),
                recorder.speaking_for("service-controller"),
                Arc::clone(&options.observer),
                interval,
                moved_endpoints,
            );
            let stop = tasks.stop.clone();
            tasks.spawn(async move { _ = stop.run_until_cancelled(local_pools.run()).await });
        }
        if let Some(queue) = queues.draining.clone() {
            let recorder = recorder.speaking_for("service-controller");
            let (cloud, state) = (Arc::clone(&load_balancers), cloud.state.clone());
            let draining =
                DrainingNodes::new(cloud, state.clone(), lease, recorder, Arc::clone(&options.observer));
            let preemption = Preemption::new(client.clone(), state);
            tasks.start_draining(queue, draining, preemption, watching, nodes_known_for_draining);
        }
    }
    if let Some(queue) = queues.nodes.clone()
        && tasks.pause().await
    {
        let controller = NodeController::new(
            client.clone(),
            Arc::clone(&cloud.machines),
            cloud.state.clone(),
            Arc::clone(&age_limits),
            Some(recorder.speaking_for("cloud-node-controller")),
            Arc::clone(&options.observer),
            options.clock.clone(),
            node::Policy::CONTROLLER,
        );
        tasks.start_cloud_node(queue, Arc::new(controller), nodes_known);
    }
    let machines_of_routes = Arc::clone(&cloud.machines);
    if let Some(queue) = queues.lifecycle.clone()
        && tasks.pause().await
    {
        let recorder = recorder.speaking_for("cloud-node-lifecycle-controller");
        let period = options.node_monitor_period;
        let (client, age_limits) = (client.clone(), Arc::clone(&age_limits));
        let lifecycle =
            NodeLifecycle::new(client, cloud.machines, cloud.state.clone(), age_limits, period, recorder);
        tasks.start_lifecycle(queue, Arc::new(lifecycle));
    }
    if let Some((queue, ipam)) = queues.ipam.clone()
        && tasks.pause().await
    {
        tasks.start_ipam(queue, ipam, nodes_known_for_ipam);
    }
    if let (Some(queue), Some(routes)) = (queues.routes.clone(), cloud.routes)
        && tasks.pause().await
    {
        let controller = RouteController::new(
            client,
            routes,
            machines_of_routes,
            cloud.state,
            Arc::clone(&queues.route_changes),
            age_limits,
            recorder.speaking_for("route_controller"),
            Arc::clone(&options.observer),
            options.clock.clone(),
            options.route_reconciliation_period,
        );
        tasks.start_routes(queue, controller, nodes_known_for_routes);
    }

    tasks.join().await;
    // Before the lease is released: the next holder must not find this process writing.
    load_balancers.stop();
    ended.cancel();
    let closing = tokio::time::timeout(CLOSING_TIMEOUT, async {
        while let Some(ended) = services.join_next().await {
            propagate_panic(ended);
        }
    });
    if closing.await.is_err() {
        tracing::warn!("stopped without an answer from the API server; leases expire by themselves");
    }
    Ok(())
}
