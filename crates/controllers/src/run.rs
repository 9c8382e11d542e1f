//! Starts the controllers that are asked for, and ends them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cloud::{ClusterState, FollowedLabels, LoadBalancers, Machines};
use k8s::{EndpointSlice, Event, Namespace, Node, ObjectKey, Service};
use kube::{Api, Client};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::draining::DrainingNodes;
use crate::endpoint_index::EndpointIndex;
use crate::events;
use crate::freshness::Freshness;
use crate::health::{HealthCheck, HealthChecks};
use crate::index::{NodeIndex, ServiceIndex};
use crate::local_pools::{LocalPools, MovedEndpoints};
use crate::namespace_index::NamespaceIndex;
use crate::node::NodeController;
use crate::node_lifecycle::NodeLifecycle;
use crate::node_set::NodeSetChanges;
use crate::node_sync::NodeSync;
use crate::observer::{NoObserver, Observer};
use crate::out_of_service::OutOfService;
use crate::preemption::{self, Preemption};
use crate::queue::{Backoff, Queue, propagate_panic};
use crate::resource_lease::ResourceLease;
use crate::service::ServiceController;
use crate::watch::{Selector, watch as watch_objects, with_answer_timeout};
use crate::{node, node_lifecycle, out_of_service};
use clock::Clock;

/// Services worked on at a time. They wait for the cloud, which joins them into few writes, and for the
/// API server's answers; each costs a few kilobytes meanwhile.
const MAX_PARALLEL_SERVICES: usize = 512;

/// Nodes worked on at a time. Their questions to the cloud are joined into lists, so this bounds what is written to the
/// API server at once.
const MAX_PARALLEL_NODES: usize = 64;

/// How long releasing leases and sending the last events may take after the controllers have ended. With
/// the default of [`Options::drain`] and what a leader takes to release its Lease, a stop takes less than
/// 20 s, of the 30 s that Kubernetes gives a terminating pod.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(4);

/// Which controllers run (`--controllers`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Controllers {
    /// `service-lb-controller`: load balancers.
    pub service: bool,
    /// `cloud-node-controller`: describes new nodes. Upstream's is inert by a defect; the Helm chart
    /// switches it off, because the node manager does the same on each node.
    pub cloud_node: bool,
    /// `cloud-node-lifecycle-controller`: removes nodes whose machine is gone.
    pub cloud_node_lifecycle: bool,
}

impl Default for Controllers {
    /// All of them.
    fn default() -> Self {
        Self { service: true, cloud_node: true, cloud_node_lifecycle: true }
    }
}

/// How the controllers run.
#[derive(Clone)]
pub struct Options {
    /// Which ones.
    pub controllers: Controllers,
    /// How long the lifecycle controller waits after its first look for the machine of a node that is not
    /// ready (`--node-monitor-period`). Later pauses are longer.
    pub node_monitor_period: Duration,
    /// How long the node controller rests between looks at all addresses
    /// (`--node-status-update-frequency`).
    pub node_status_update_frequency: Duration,
    /// A label selector that nodes must fit (`--node-filter-requirements`); none for all.
    pub node_selector: Option<String>,
    /// Pause between the starts of controllers, with up to as much again at random
    /// (`--controller-start-interval`).
    pub start_interval: Duration,
    /// How many Services are worked on at a time, at least one. They are joined into few writes by the
    /// cloud, which is why this is large.
    pub service_parallelism: usize,
    /// Whether writes are guarded by the lease that this program shares with AKS
    /// (LB-039 to LB-043).
    pub resource_lease: bool,
    /// How long running work may take to end after a stop.
    pub drain: Duration,
    /// The host's name, which events carry as part of their source; may be empty.
    pub host: String,
    /// The wall clock.
    pub clock: Clock,
    /// Seed of everything random.
    pub seed: u64,
    /// Where checks are added as controllers start.
    pub health: HealthChecks,
    /// Who counts.
    pub observer: Arc<dyn Observer>,
}

impl Default for Options {
    /// Upstream's defaults.
    fn default() -> Self {
        Self {
            controllers: Controllers::default(),
            node_monitor_period: Duration::from_secs(5),
            node_status_update_frequency: Duration::from_secs(300),
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
    /// A value makes no sense; the text names the flag and the remedy.
    #[error("{0}")]
    Options(String),
}

impl Options {
    fn validate(&self) -> Result<(), Error> {
        for (flag, period) in [
            ("--node-monitor-period", self.node_monitor_period),
            ("--node-status-update-frequency", self.node_status_update_frequency),
        ] {
            if period.is_zero() {
                return Err(Error::Options(format!("{flag}=0s would never rest; give a longer time")));
            }
        }
        Ok(())
    }
}

/// The cloud that the controllers work with, and what they and it know of the cluster.
#[derive(Clone)]
pub struct Cloud {
    /// Load balancers for Services.
    pub load_balancers: Arc<dyn LoadBalancers>,
    /// The machines of Nodes.
    pub machines: Arc<dyn Machines>,
    /// The Services and Nodes: the controllers' watches fill it, and the cloud reads it.
    pub state: ClusterState,
}

impl Cloud {
    /// A cloud in which one value does all of it.
    pub fn of<C: LoadBalancers + Machines>(cloud: C, state: ClusterState) -> Self {
        let cloud = Arc::new(cloud);
        Self { load_balancers: Arc::clone(&cloud) as _, machines: cloud, state }
    }
}

impl fmt::Debug for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cloud").field("state", &self.state).finish_non_exhaustive()
    }
}

/// Runs the enabled controllers until `stop`. Then, one after the other:
///
/// 1. no new work is taken, and what runs may end within [`Options::drain`];
/// 2. what still runs is abandoned where it stands, without a word to anybody: the next process takes it up;
/// 3. the cloud stops to write ([`LoadBalancers::stop`]);
/// 4. leases are released, and waiting events are sent.
///
/// Dropping the returned future instead abandons everything where it stands.
pub async fn run(
    client: Client,
    cloud: Cloud,
    options: Options,
    stop: CancellationToken,
) -> Result<(), Error> {
    options.validate()?;
    let controllers = options.controllers;
    let load_balancers = Arc::clone(&cloud.load_balancers);
    // What outlives the controllers, because they use it to the end.
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

    let freshness = Arc::new(Freshness::default());
    let drains = controllers.service && load_balancers.drains_nodes();
    let queue = |name| Queue::new(name, Backoff::NODES, Arc::clone(&options.observer));
    let queues = Queues {
        services: Queue::new("service", Backoff::SERVICES, Arc::clone(&options.observer)),
        node_set: Queue::new("node", Backoff::SERVICES, Arc::clone(&options.observer)),
        node_set_changes: Arc::default(),
        nodes: controllers.cloud_node.then(|| queue("Nodes")),
        lifecycle: controllers.cloud_node_lifecycle.then(|| queue("node-lifecycle")),
        out_of_service: queue("out-of-service"),
        draining: drains.then(|| Queue::new("draining", Backoff::SERVICES, Arc::clone(&options.observer))),
    };
    let labels = load_balancers.follows_labels();
    let local_pool_interval = load_balancers.local_pool_interval().filter(|_| controllers.service);
    let (nodes_synced, services_synced) = (watch::Sender::new(false), watch::Sender::new(false));
    let namespaces_synced = watch::Sender::new(!labels.of_namespaces);
    // Where no Service has a pool of its own, nobody has to know the endpoints.
    let endpoints_synced = watch::Sender::new(local_pool_interval.is_none());
    let nodes_known = wait_for(&nodes_synced);
    let nodes_known_for_draining = wait_for(&nodes_synced);
    let all_known = {
        let (nodes, services) = (wait_for(&nodes_synced), wait_for(&services_synced));
        let (namespaces, endpoints) = (wait_for(&namespaces_synced), wait_for(&endpoints_synced));
        async move { _ = tokio::join!(nodes, services, namespaces, endpoints) }
    };
    let watching = with_answer_timeout(&client);
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
        let work = Arc::new(OutOfService::new(client.clone(), cloud.state.clone()));
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
        ));
        let sync = NodeSync::new(
            Arc::clone(&load_balancers),
            cloud.state.clone(),
            Arc::clone(&queues.node_set_changes),
            Arc::clone(&controller),
            queues.services.clone(),
            Arc::clone(&freshness),
            Arc::clone(&options.observer),
        );
        tasks.start_services(&queues, controller, Arc::new(sync), all_known);
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
            Arc::clone(&freshness),
            Some(recorder.speaking_for("cloud-node-controller")),
            Arc::clone(&options.observer),
            options.clock.clone(),
            node::Policy::CONTROLLER,
        );
        tasks.start_cloud_node(queue, Arc::new(controller), nodes_known);
    }
    if let Some(queue) = queues.lifecycle.clone()
        && tasks.pause().await
    {
        let recorder = recorder.speaking_for("cloud-node-lifecycle-controller");
        let period = options.node_monitor_period;
        let lifecycle = NodeLifecycle::new(client, cloud.machines, cloud.state, freshness, period, recorder);
        tasks.start_lifecycle(queue, Arc::new(lifecycle));
    }

    tasks.join().await;
    // Before the lease goes: whoever holds it next must not find us writing.
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

/// Ends when a watch has listed everything once.
fn wait_for(synced: &watch::Sender<bool>) -> impl Future<Output = ()> + Send + use<> {
    let mut synced = synced.subscribe();
    async move {
        // An error means that the watch has ended, which happens at the stop alone.
        _ = synced.wait_for(|synced| *synced).await;
    }
}

/// The queues that watches feed.
struct Queues {
    services: Queue<ObjectKey>,
    node_set: Queue<()>,
    node_set_changes: Arc<NodeSetChanges>,
    nodes: Option<Queue<String>>,
    lifecycle: Option<Queue<String>>,
    out_of_service: Queue<String>,
    /// Absent where load balancers are not told of nodes that drain.
    draining: Option<Queue<()>>,
}

/// Everything that runs until the stop.
struct Tasks<'a> {
    options: &'a Options,
    stop: CancellationToken,
    rng: SmallRng,
    running: JoinSet<()>,
    started: Vec<&'static str>,
    first: bool,
}

impl<'a> Tasks<'a> {
    fn new(options: &'a Options, stop: CancellationToken) -> Self {
        let rng = SmallRng::seed_from_u64(options.seed);
        Self { options, stop, rng, running: JoinSet::new(), started: vec![], first: true }
    }

    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.running.spawn(task);
    }

    /// Waits before the start of every controller but the first; false when the stop came.
    async fn pause(&mut self) -> bool {
        if !std::mem::take(&mut self.first) && !self.options.start_interval.is_zero() {
            let pause = self.options.start_interval.mul_f64(1.0 + self.rng.random::<f64>());
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        !self.stop.is_cancelled()
    }

    /// Says that a controller runs.
    fn started(&mut self, check: &'static str, metric: &'static str) {
        self.options.health.add(HealthCheck::new(check, || Ok(())));
        self.options.observer.controller_running(metric, true);
        self.started.push(metric);
        tracing::info!(controller = check, "started");
    }

    fn watch_nodes(
        &mut self,
        client: &Client,
        state: &ClusterState,
        queues: &Queues,
        labels: FollowedLabels,
        synced: watch::Sender<bool>,
    ) {
        let index = NodeIndex::new(state.clone(), Arc::clone(&queues.node_set_changes));
        let mut index = index.following_labels(labels.of_nodes);
        let state = state.clone();
        let (nodes, out_of_service) = (queues.nodes.clone(), queues.out_of_service.clone());
        let lifecycle = queues.lifecycle.clone();
        let node_set = queues.node_set.clone();
        let draining = queues.draining.clone();
        let on = move |event| {
            let changes = index.on(event);
            for changed in changes.touched {
                if out_of_service::needs_work(&changed) {
                    out_of_service.add(changed.name().to_owned());
                }
                if let Some(nodes) = &nodes
                    && node::Policy::CONTROLLER.needs_work(&changed)
                {
                    nodes.add(changed.name().to_owned());
                }
                if let Some(lifecycle) = &lifecycle
                    && node_lifecycle::needs_work(&changed)
                {
                    lifecycle.add(changed.name().to_owned());
                }
            }
            if changes.set_changed {
                node_set.add(());
            }
            if let Some(draining) = &draining
                && changes.draining_changed
            {
                draining.add(());
            }
            if state.nodes_synced() {
                synced.send_replace(true);
            }
        };
        let api: Api<Node> = Api::all(client.clone());
        let selector = Selector { labels: self.options.node_selector.clone(), ..Selector::default() };
        let stop = self.stop.clone();
        self.spawn(async move { watch_objects(api, selector, "nodes", stop, on).await });
    }

    fn watch_services(
        &mut self,
        client: &Client,
        state: &ClusterState,
        queues: &Queues,
        labels: FollowedLabels,
        synced: watch::Sender<bool>,
    ) {
        let mut index = ServiceIndex::new(state.clone()).following_labels(labels.of_services);
        let state = state.clone();
        let queue = queues.services.clone();
        let on = move |event| {
            for key in index.on(event) {
                queue.add(key);
            }
            if state.services_synced() {
                synced.send_replace(true);
            }
        };
        let api: Api<Service> = Api::all(client.clone());
        let stop = self.stop.clone();
        self.spawn(async move { watch_objects(api, Selector::default(), "services", stop, on).await });
    }

    fn watch_namespaces(
        &mut self,
        client: &Client,
        state: &ClusterState,
        queues: &Queues,
        synced: watch::Sender<bool>,
    ) {
        let mut index = NamespaceIndex::new(state.clone());
        let state = state.clone();
        let queue = queues.services.clone();
        let on = move |event| {
            for key in index.on(event) {
                queue.add(key);
            }
            if state.namespaces_synced() {
                synced.send_replace(true);
            }
        };
        let api: Api<Namespace> = Api::all(client.clone());
        let stop = self.stop.clone();
        self.spawn(async move { watch_objects(api, Selector::default(), "namespaces", stop, on).await });
    }

    fn watch_endpoints(
        &mut self,
        client: &Client,
        state: &ClusterState,
        moved: &Arc<MovedEndpoints>,
        synced: watch::Sender<bool>,
    ) {
        let mut index = EndpointIndex::new(state.clone());
        let (state, moved) = (state.clone(), Arc::clone(moved));
        let on = move |event| {
            moved.note(index.on(event));
            if state.endpoints_synced() {
                synced.send_replace(true);
            }
        };
        let api: Api<EndpointSlice> = Api::all(client.clone());
        let stop = self.stop.clone();
        let selector =
            Selector { labels: Some(k8s::names::LABEL_SERVICE_NAME.to_owned()), ..Selector::default() };
        self.spawn(async move { watch_objects(api, selector, "endpoint slices", stop, on).await });
    }

    /// Services are worked on once all Services and nodes are known, and endpoints where these matter: before, a rule
    /// could seem unused and a node gone.
    fn start_services(
        &mut self,
        queues: &Queues,
        controller: Arc<ServiceController>,
        sync: Arc<NodeSync>,
        all_known: impl Future<Output = ()> + Send + 'static,
    ) {
        let (services, node_set) = (queues.services.clone(), queues.node_set.clone());
        let (stop, drain, parallelism) =
            (self.stop.clone(), self.options.drain, self.options.service_parallelism);
        self.spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = all_known => {}
            }
            sync.start_with_current();
            node_set.add(());
            let services = services.work(parallelism, stop.clone(), drain, move |key| {
                let controller = Arc::clone(&controller);
                async move { controller.reconcile(key).await }
            });
            let node_set = node_set.work(1, stop, drain, move |()| {
                let sync = Arc::clone(&sync);
                async move { sync.reconcile().await }
            });
            tokio::join!(services, node_set);
        });
        self.started("service-lb-controller", "service");
    }

    /// Nodes drain once all are known: before, one could be taken for one that was not there.
    fn start_draining(
        &mut self,
        queue: Queue<()>,
        draining: DrainingNodes,
        preemption: Preemption,
        watching: Client,
        nodes_known: impl Future<Output = ()> + Send + 'static,
    ) {
        let (draining, preemption) = (Arc::new(draining), Arc::new(preemption));
        let (stop, drain) = (self.stop.clone(), self.options.drain);
        let evicted = Queue::new("preemption", Backoff::NODES, Arc::clone(&self.options.observer));
        let api: Api<Event> = Api::all(watching);
        let selector = Selector { fields: Some(preemption::EVENTS.to_owned()), ..Selector::default() };
        self.spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = nodes_known => {}
            }
            queue.add(());
            let on = {
                let (evicted, preemption) = (evicted.clone(), Arc::clone(&preemption));
                move |event| preemption.on(event, |node| evicted.add(node))
            };
            let watching = watch_objects(api, selector, "events of preemption", stop.clone(), on);
            let draining = queue.work(1, stop.clone(), drain, move |()| {
                let draining = Arc::clone(&draining);
                async move { draining.reconcile().await }
            });
            let evicted = evicted.work(MAX_PARALLEL_NODES, stop, drain, move |name: String| {
                let preemption = Arc::clone(&preemption);
                async move { preemption.reconcile(&name).await }
            });
            tokio::join!(watching, draining, evicted);
        });
    }

    fn start_cloud_node(
        &mut self,
        queue: Queue<String>,
        controller: Arc<NodeController>,
        known: impl Future<Output = ()> + Send + 'static,
    ) {
        let (stop, drain) = (self.stop.clone(), self.options.drain);
        self.spawn({
            let controller = Arc::clone(&controller);
            queue.work(MAX_PARALLEL_NODES, stop.clone(), drain, move |name: String| {
                let controller = Arc::clone(&controller);
                async move { controller.reconcile(&name).await }
            })
        });
        let period = self.options.node_status_update_frequency;
        self.spawn(async move { controller.follow_addresses(known, period, stop).await });
        self.started("cloud-node-controller", "cloud-node");
    }

    fn start_lifecycle(&mut self, queue: Queue<String>, lifecycle: Arc<NodeLifecycle>) {
        let (stop, drain) = (self.stop.clone(), self.options.drain);
        self.spawn(queue.work(MAX_PARALLEL_NODES, stop, drain, move |name: String| {
            let lifecycle = Arc::clone(&lifecycle);
            async move { lifecycle.reconcile(&name).await }
        }));
        self.started("cloud-node-lifecycle-controller", "cloud-node-lifecycle");
    }

    /// Waits for everything to end.
    async fn join(mut self) {
        while let Some(ended) = self.running.join_next().await {
            propagate_panic(ended);
        }
        for controller in self.started {
            self.options.observer.controller_running(controller, false);
        }
    }
}
