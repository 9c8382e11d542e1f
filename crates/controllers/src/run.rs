//! Starts and ends the enabled controllers.

use std::sync::Arc;
use std::time::Duration;

use cloud::{FollowedLabels, LoadBalancers};
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::api::with_few_connections;
use crate::draining::DrainingNodes;
use crate::events::{self, Recorder};
use crate::freshness::Freshness;
use crate::ipam::{Ipam, RangeOptions};
use crate::local_pools::{LocalPools, MovedEndpoints};
use crate::node::{self, NodeController};
use crate::node_lifecycle::NodeLifecycle;
use crate::node_sync::NodeSync;
use crate::observer::Observer;
use crate::options::{Cloud, Error, Options};
use crate::out_of_service::OutOfService;
use crate::preemption::Preemption;
use crate::queue::{Backoff, MAX_PARALLEL_NODES, Queue, propagate_panic};
use crate::resource_lease::ResourceLease;
use crate::resync::Resync;
use crate::routes::RouteController;
use crate::service::ServiceController;
use crate::tasks::{Queues, Tasks};
use crate::watch::with_answer_timeout;

/// How long it may take to release leases and send the last events after the controllers have ended. With the default
/// of [`Options::drain`] and the time that a leader takes to release its Lease, a stop takes less than 20 s, of the 30
/// s that Kubernetes gives a terminating pod.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(4);

/// Which kinds of objects have been listed completely, as their watches report it.
struct Listed {
    nodes: watch::Receiver<bool>,
    services: watch::Receiver<bool>,
    namespaces: watch::Receiver<bool>,
    endpoints: watch::Receiver<bool>,
}

/// Completes when a kind has been listed completely.
async fn wait_for(mut listed: watch::Receiver<bool>) {
    // An error means that the watch has ended, which only happens at the stop.
    _ = listed.wait_for(|listed| *listed).await;
}

impl Listed {
    fn nodes(&self) -> impl Future<Output = ()> + Send + use<> {
        wait_for(self.nodes.clone())
    }

    /// Completes when all that Services depend on is known.
    fn all(&self) -> impl Future<Output = ()> + Send + use<> {
        let (nodes, services) = (self.nodes(), wait_for(self.services.clone()));
        let (namespaces, endpoints) = (wait_for(self.namespaces.clone()), wait_for(self.endpoints.clone()));
        async move { _ = tokio::join!(nodes, services, namespaces, endpoints) }
    }
}

/// Everything that the controllers are started with.
struct Startup<'a> {
    options: &'a Options,
    cloud: Cloud,
    /// The client of the controllers.
    client: Client,
    /// The client of watches.
    watching: Client,
    recorder: Recorder,
    lease: Option<ResourceLease>,
    freshness: Arc<Freshness>,
    labels: FollowedLabels,
    queues: Queues,
    tasks: Tasks<'a>,
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
    let ranges = ranges_to_assign(&options, &cloud)?;
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
    let lease = (options.controllers.service && options.resource_lease).then(|| {
        ResourceLease::new(client.clone(), options.clock.clone(), Arc::clone(&cloud.load_balancers))
    });
    if let Some(lease) = &lease {
        services.spawn(lease.clone().keep(ended.clone()));
    }

    let freshness = Arc::new(Freshness::default());
    let ipam = ranges.map(|ranges| {
        let recorder = recorder.speaking_for("cidrAllocator");
        let (machines, state) = (cloud.node_ranges.clone(), cloud.state.clone());
        let (freshness, observer) = (Arc::clone(&freshness), Arc::clone(&options.observer));
        Arc::new(Ipam::new(client.clone(), ranges, machines, state, freshness, recorder, observer))
    });
    let mut startup = Startup {
        options: &options,
        labels: load_balancers.follows_labels(),
        queues: queues(&options, &cloud, ipam),
        tasks: Tasks::new(&options, stop),
        watching: with_answer_timeout(&client),
        client: with_few_connections(&client),
        cloud,
        recorder,
        lease,
        freshness,
    };
    startup.start().await;
    startup.tasks.join().await;
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

/// The ranges that this program assigns to nodes, if any.
fn ranges_to_assign<'a>(options: &'a Options, cloud: &Cloud) -> Result<Option<&'a RangeOptions>, Error> {
    let ranges = options.ranges.as_ref().filter(|_| options.controllers.node_ipam);
    if ranges.is_some_and(|ranges| ranges.masks.is_none()) && cloud.node_ranges.is_none() {
        let problem = "--cidr-allocator-type=CloudAllocator: the cloud does not say how large ranges are; \
                       use RangeAllocator";
        return Err(Error::Options(problem.to_owned()));
    }
    Ok(ranges)
}

/// The queues of the enabled controllers.
fn queues(options: &Options, cloud: &Cloud, ipam: Option<Arc<Ipam>>) -> Queues {
    fn queue<K: Clone + Eq + std::hash::Hash>(
        name: &'static str,
        backoff: Backoff,
        options: &Options,
    ) -> Queue<K> {
        Queue::new(name, backoff, Arc::clone(&options.observer))
    }
    let controllers = options.controllers;
    let drains = controllers.service && cloud.load_balancers.drains_nodes();
    let has_routes = controllers.route && cloud.routes.is_some();
    Queues {
        services: queue("service", Backoff::SERVICES, options),
        served: Arc::default(),
        refusals: Arc::default(),
        node_set: queue("node", Backoff::SERVICES, options),
        node_set_changes: Arc::default(),
        nodes: controllers.cloud_node.then(|| queue("Nodes", Backoff::NODES, options)),
        lifecycle: controllers.cloud_node_lifecycle.then(|| queue("node-lifecycle", Backoff::NODES, options)),
        out_of_service: queue("out-of-service", Backoff::NODES, options),
        routes: has_routes.then(|| queue("Routes", Backoff::NODES, options)),
        route_changes: Arc::default(),
        ipam: ipam.map(|ipam| (queue("node-ipam", Backoff::NODES, options), ipam)),
        draining: drains.then(|| queue("draining", Backoff::SERVICES, options)),
    }
}

impl Startup<'_> {
    /// Starts the watches, then one enabled controller after the other, with pauses.
    async fn start(&mut self) {
        let interval = self.cloud.load_balancers.local_pool_interval();
        let local_pools = interval.filter(|_| self.options.controllers.service);
        let local_pools = local_pools.map(|interval| (interval, Arc::<MovedEndpoints>::default()));
        let listed = self.watch(local_pools.as_ref().map(|(_, moved)| moved));
        self.start_out_of_service();
        if self.options.controllers.service && self.tasks.pause().await {
            self.start_services(&listed);
            self.start_resync(&listed);
            if let Some((interval, moved)) = local_pools {
                self.start_local_pools(interval, moved);
            }
            if let Some(queue) = self.queues.draining.clone() {
                self.start_draining(queue, &listed);
            }
        }
        if let Some(queue) = self.queues.nodes.clone()
            && self.tasks.pause().await
        {
            self.start_cloud_node(queue, &listed);
        }
        if let Some(queue) = self.queues.lifecycle.clone()
            && self.tasks.pause().await
        {
            self.start_lifecycle(queue);
        }
        if let Some((queue, ipam)) = self.queues.ipam.clone()
            && self.tasks.pause().await
        {
            self.tasks.start_ipam(queue, ipam, listed.nodes());
        }
        if let Some(queue) = self.queues.routes.clone()
            && self.tasks.pause().await
        {
            self.start_routes(queue, &listed);
        }
    }

    fn load_balancers(&self) -> Arc<dyn LoadBalancers> {
        Arc::clone(&self.cloud.load_balancers)
    }

    fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.options.observer)
    }

    /// Watches the objects that the enabled controllers need; `moved` collects changes of endpoints if some Services have
    /// pools of their own.
    fn watch(&mut self, moved: Option<&Arc<MovedEndpoints>>) -> Listed {
        let (nodes, of_nodes) = watch::channel(false);
        let (services, of_services) = watch::channel(false);
        let (namespaces, of_namespaces) = watch::channel(!self.labels.of_namespaces);
        // If no Service has a pool of its own, endpoints are not needed.
        let (endpoints, of_endpoints) = watch::channel(moved.is_none());
        let (watching, state, labels) = (&self.watching, &self.cloud.state, self.labels);
        self.tasks.watch_nodes(watching, state, &self.queues, labels, nodes);
        if self.options.controllers.service {
            self.tasks.watch_services(watching, state, &self.queues, labels, services);
            if labels.of_namespaces {
                self.tasks.watch_namespaces(watching, state, &self.queues, namespaces);
            }
        }
        if let Some(moved) = moved {
            self.tasks.watch_endpoints(watching, state, moved, endpoints);
        }
        Listed { nodes: of_nodes, services: of_services, namespaces: of_namespaces, endpoints: of_endpoints }
    }

    fn start_out_of_service(&mut self) {
        let (client, state) = (self.client.clone(), self.cloud.state.clone());
        let controller = Arc::new(OutOfService::new(client, state, self.recorder.clone()));
        let (stop, drain) = (self.tasks.stop.clone(), self.options.drain);
        let queue = self.queues.out_of_service.clone();
        self.tasks.spawn(queue.work(MAX_PARALLEL_NODES, stop, drain, move |name: String| {
            let controller = Arc::clone(&controller);
            async move { controller.reconcile(&name).await }
        }));
    }

    fn start_services(&mut self, listed: &Listed) {
        let controller = Arc::new(ServiceController::new(
            self.client.clone(),
            self.load_balancers(),
            self.cloud.state.clone(),
            self.lease.clone(),
            &self.recorder,
            Arc::clone(&self.queues.served),
            Arc::clone(&self.queues.refusals),
        ));
        let sync = NodeSync::new(
            self.load_balancers(),
            self.cloud.state.clone(),
            Arc::clone(&self.queues.node_set_changes),
            Arc::clone(&controller),
            self.queues.services.clone(),
            Arc::clone(&self.freshness),
            self.observer(),
        );
        self.tasks.start_services(&self.queues, controller, Arc::new(sync), listed.all());
    }

    fn start_resync(&mut self, listed: &Listed) {
        let resync = Resync::new(
            self.load_balancers(),
            self.cloud.state.clone(),
            self.lease.clone(),
            self.recorder.speaking_for("azure-cloud-provider"),
            self.observer(),
            self.queues.services.clone(),
            self.options.azure_resync_period,
        );
        let all_known = listed.all();
        self.tasks.spawn_until_stop(async move { resync.run(all_known).await });
    }

    fn start_local_pools(&mut self, interval: Duration, moved: Arc<MovedEndpoints>) {
        let local_pools = LocalPools::new(
            self.load_balancers(),
            self.cloud.state.clone(),
            self.lease.clone(),
            self.recorder.speaking_for("service-controller"),
            self.observer(),
            interval,
            moved,
        );
        self.tasks.spawn_until_stop(async move { local_pools.run().await });
    }

    fn start_draining(&mut self, queue: Queue<()>, listed: &Listed) {
        let state = self.cloud.state.clone();
        let draining = DrainingNodes::new(
            self.load_balancers(),
            state.clone(),
            self.lease.clone(),
            self.recorder.speaking_for("service-controller"),
            self.observer(),
        );
        let preemption = Preemption::new(self.client.clone(), state);
        self.tasks.start_draining(queue, draining, preemption, self.watching.clone(), listed.nodes());
    }

    fn start_cloud_node(&mut self, queue: Queue<String>, listed: &Listed) {
        let controller = NodeController::new(
            self.client.clone(),
            Arc::clone(&self.cloud.machines),
            self.cloud.state.clone(),
            Arc::clone(&self.freshness),
            Some(self.recorder.speaking_for("cloud-node-controller")),
            self.observer(),
            self.options.clock.clone(),
            node::Policy::CONTROLLER,
        );
        self.tasks.start_cloud_node(queue, Arc::new(controller), listed.nodes());
    }

    fn start_lifecycle(&mut self, queue: Queue<String>) {
        let lifecycle = NodeLifecycle::new(
            self.client.clone(),
            Arc::clone(&self.cloud.machines),
            self.cloud.state.clone(),
            Arc::clone(&self.freshness),
            self.options.node_monitor_period,
            self.recorder.speaking_for("cloud-node-lifecycle-controller"),
        );
        self.tasks.start_lifecycle(queue, Arc::new(lifecycle));
    }

    /// Does nothing if the cloud has no routes.
    fn start_routes(&mut self, queue: Queue<()>, listed: &Listed) {
        let Some(routes) = self.cloud.routes.clone() else { return };
        let controller = RouteController::new(
            self.client.clone(),
            routes,
            Arc::clone(&self.cloud.machines),
            self.cloud.state.clone(),
            Arc::clone(&self.queues.route_changes),
            Arc::clone(&self.freshness),
            self.recorder.speaking_for("route_controller"),
            self.observer(),
            self.options.clock.clone(),
            self.options.route_reconciliation_period,
        );
        self.tasks.start_routes(queue, controller, listed.nodes());
    }
}
