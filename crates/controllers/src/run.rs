//! Starts and ends the enabled controllers.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use cloud::LoadBalancers;
use freshness::{AgeLimits, Pauses, Schedule};
use k8s::Event;
use kube::{Api, Client};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::api::with_few_connections;
use crate::draining::DrainingNodes;
use crate::events;
use crate::ipam::{Ipam, RangeOptions};
use crate::local_pools::{LocalPools, MovedEndpoints};
use crate::node::{self, NodeController};
use crate::node_lifecycle::{MAX_PAUSE, NodeLifecycle};
use crate::node_sync::{LOOKUP_PAUSES, NodeSync};
use crate::observer::Observer;
use crate::options::{Cloud, Error, Options};
use crate::out_of_service::OutOfService;
use crate::preemption::{self, Preemption};
use crate::queue::{Backoff, MAX_PARALLEL_NODES, Queue, propagate_panic};
use crate::repeated_warning::RepeatedWarnings;
use crate::resource_lease::ResourceLease;
use crate::resync::Resync;
use crate::routes::RouteController;
use crate::service::ServiceController;
use crate::startup::{Listed, Queues, Startup};
use crate::tasks::Tasks;
use crate::watch::{Selector, with_answer_timeout};

/// Maximum number of Services that are reconciled in parallel. They wait for the cloud, which merges them into few
/// writes, and for the API server's answers; each takes a few kilobytes meanwhile.
const MAX_PARALLEL_SERVICES: usize = 512;

/// How long it may take to release leases and send the last events after the controllers have ended. With the default
/// of [`Options::drain`] and the time that a leader takes to release its Lease, a stop takes less than 20 s, of the 30
/// s that Kubernetes gives a terminating pod.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(4);

/// Interval between attempts to list all nodes at the start.
const LIST_RETRY_INTERVAL: Duration = Duration::from_secs(10);

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

    let age_limits = Arc::new(AgeLimits::default());
    let ipam = ranges.map(|ranges| {
        let recorder = recorder.speaking_for("cidrAllocator");
        let (machines, state) = (cloud.node_ranges.clone(), cloud.state.clone());
        let (age_limits, observer) = (Arc::clone(&age_limits), Arc::clone(&options.observer));
        Arc::new(Ipam::new(client.clone(), ranges, machines, state, age_limits, recorder, observer))
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
        age_limits,
    };
    startup.start();
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
    /// Starts the watches and the enabled controllers.
    fn start(&mut self) {
        let interval = self.cloud.load_balancers.local_pool_interval();
        let local_pools = interval.filter(|_| self.options.controllers.service);
        let local_pools = local_pools.map(|interval| (interval, Arc::<MovedEndpoints>::default()));
        let listed = self.watch(local_pools.as_ref().map(|(_, moved)| moved));
        self.start_out_of_service();
        if self.tasks.stop.is_cancelled() {
            return;
        }
        if self.options.controllers.service {
            self.start_services(&listed);
            self.start_resync(&listed);
            if let Some((interval, moved)) = local_pools {
                self.start_local_pools(interval, moved);
            }
            if let Some(queue) = self.queues.draining.clone() {
                self.start_draining(queue, &listed);
            }
        }
        if let Some(queue) = self.queues.nodes.clone() {
            self.start_cloud_node(queue, &listed);
        }
        if let Some(queue) = self.queues.lifecycle.clone() {
            self.start_lifecycle(queue);
        }
        if let Some((queue, ipam)) = self.queues.ipam.clone() {
            self.start_ipam(queue, ipam, &listed);
        }
        if let Some(queue) = self.queues.routes.clone() {
            self.start_routes(queue, &listed);
        }
    }

    fn load_balancers(&self) -> Arc<dyn LoadBalancers> {
        Arc::clone(&self.cloud.load_balancers)
    }

    fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.options.observer)
    }

    fn start_out_of_service(&mut self) {
        let (client, state) = (self.client.clone(), self.cloud.state.clone());
        let controller = Arc::new(OutOfService::new(client, state, self.recorder.clone()));
        let queue = self.queues.out_of_service.clone();
        let reconcile = |it: Arc<OutOfService>, name: String| async move { it.reconcile(&name).await };
        let task = self.tasks.work(queue, MAX_PARALLEL_NODES, &controller, reconcile);
        self.tasks.spawn(task);
    }

    /// Services are reconciled once all Services and nodes are known, and endpoints if they matter: before, a rule
    /// could seem unused and a node deleted.
    fn start_services(&mut self, listed: &Listed) {
        let controller = Arc::new(ServiceController {
            client: self.client.clone(),
            cloud: self.load_balancers(),
            state: self.cloud.state.clone(),
            lease: self.lease.clone(),
            recorder: self.recorder.speaking_for("service-controller"),
            notices: self.recorder.speaking_for("azure-cloud-provider"),
            served: Arc::clone(&self.queues.served),
            refusals: Arc::clone(&self.queues.refusals),
            observer: self.observer(),
        });
        let sync = Arc::new(NodeSync {
            cloud: self.load_balancers(),
            state: self.cloud.state.clone(),
            services: Arc::clone(&controller),
            observer: self.observer(),
            changes: Arc::clone(&self.queues.node_set_changes),
            synced: Mutex::default(),
            reported: Mutex::default(),
            followed: Mutex::default(),
            queue: self.queues.services.clone(),
            age_limits: Arc::clone(&self.age_limits),
            lookups: Schedule::new(LOOKUP_PAUSES),
        });
        let (services, node_set) = (self.queues.services.clone(), self.queues.node_set.clone());
        let reconciling =
            self.tasks.work(services, MAX_PARALLEL_SERVICES, &controller, |it, key| async move {
                it.reconcile(key).await
            });
        let syncing =
            self.tasks.work(node_set.clone(), 1, &sync, |it, ()| async move { it.reconcile().await });
        self.tasks.spawn_after(listed.all(), async move {
            sync.start_with_current();
            node_set.add(());
            tokio::join!(reconciling, syncing);
        });
        self.tasks.started("service-lb-controller", "service");
    }

    fn start_resync(&mut self, listed: &Listed) {
        let resync = Resync {
            cloud: self.load_balancers(),
            state: self.cloud.state.clone(),
            lease: self.lease.clone(),
            recorder: self.recorder.speaking_for("azure-cloud-provider"),
            observer: self.observer(),
            queue: self.queues.services.clone(),
            period: self.options.azure_resync_period,
        };
        let all_known = listed.all();
        self.tasks.spawn_until_stop(async move { resync.run(all_known).await });
    }

    fn start_local_pools(&mut self, interval: Duration, moved: Arc<MovedEndpoints>) {
        let local_pools = LocalPools {
            cloud: self.load_balancers(),
            state: self.cloud.state.clone(),
            lease: self.lease.clone(),
            recorder: self.recorder.speaking_for("service-controller"),
            observer: self.observer(),
            interval,
            moved,
        };
        self.tasks.spawn_until_stop(async move { local_pools.run().await });
    }

    /// Draining starts once all nodes are known: before, an unlisted node could count as deleted.
    fn start_draining(&mut self, queue: Queue<()>, listed: &Listed) {
        let draining = Arc::new(DrainingNodes {
            cloud: self.load_balancers(),
            state: self.cloud.state.clone(),
            lease: self.lease.clone(),
            recorder: self.recorder.speaking_for("service-controller"),
            observer: self.observer(),
            memory: Mutex::default(),
        });
        let working =
            self.tasks.work(queue.clone(), 1, &draining, |it, ()| async move { it.reconcile().await });
        self.tasks.spawn_after(listed.nodes(), async move {
            queue.add(());
            working.await;
        });
        self.start_preemption(listed);
    }

    fn start_preemption(&mut self, listed: &Listed) {
        let preemption = Arc::new(Preemption::new(self.client.clone(), self.cloud.state.clone()));
        let evicted: Queue<String> = Queue::new("preemption", Backoff::NODES, self.observer());
        let reconcile = |it: Arc<Preemption>, name: String| async move { it.reconcile(&name).await };
        let tainting = self.tasks.work(evicted.clone(), MAX_PARALLEL_NODES, &preemption, reconcile);
        let selector = Selector { fields: Some(preemption::EVENTS.to_owned()), ..Selector::default() };
        let on = move |event| preemption.on(event, |node| evicted.add(node));
        let watching = self.tasks.watch::<Event, _>(&self.watching, selector, "events of preemption", on);
        self.tasks.spawn_after(listed.nodes(), async move { _ = tokio::join!(watching, tainting) });
    }

    fn start_cloud_node(&mut self, queue: Queue<String>, listed: &Listed) {
        let controller = Arc::new(NodeController {
            api: Api::all(self.client.clone()),
            machines: Arc::clone(&self.cloud.machines),
            state: self.cloud.state.clone(),
            age_limits: Arc::clone(&self.age_limits),
            recorder: Some(self.recorder.speaking_for("cloud-node-controller")),
            observer: self.observer(),
            clock: self.options.clock.clone(),
            policy: node::Policy::CONTROLLER,
            warnings: RepeatedWarnings::default(),
            came: Mutex::default(),
        });
        let reconcile = |it: Arc<NodeController>, name: String| async move { it.reconcile(&name).await };
        let task = self.tasks.work(queue, MAX_PARALLEL_NODES, &controller, reconcile);
        self.tasks.spawn(task);
        let (period, stop) = (self.options.node_status_update_frequency, self.tasks.stop.clone());
        let known = listed.nodes();
        self.tasks.spawn(async move { controller.follow_addresses(known, period, stop).await });
        self.tasks.started("cloud-node-controller", "cloud-node");
    }

    fn start_lifecycle(&mut self, queue: Queue<String>) {
        let pauses = Pauses { first: self.options.node_monitor_period, longest: MAX_PAUSE };
        let lifecycle = Arc::new(NodeLifecycle {
            api: Api::all(self.client.clone()),
            machines: Arc::clone(&self.cloud.machines),
            state: self.cloud.state.clone(),
            age_limits: Arc::clone(&self.age_limits),
            schedule: Schedule::in_step(pauses),
            ready_again: Mutex::default(),
            recorder: self.recorder.speaking_for("cloud-node-lifecycle-controller"),
            warnings: RepeatedWarnings::default(),
        });
        let reconcile = |it: Arc<NodeLifecycle>, name: String| async move { it.reconcile(&name).await };
        let task = self.tasks.work(queue, MAX_PARALLEL_NODES, &lifecycle, reconcile);
        self.tasks.spawn(task);
        self.tasks.started("cloud-node-lifecycle-controller", "cloud-node-lifecycle");
    }

    /// Routes are reconciled once all nodes are known: before, a route could seem to have no node. Does nothing if the
    /// cloud has no routes.
    fn start_routes(&mut self, queue: Queue<()>, listed: &Listed) {
        let Some(routes) = self.cloud.routes.clone() else { return };
        let controller = Arc::new(RouteController {
            api: Api::all(self.client.clone()),
            routes,
            machines: Arc::clone(&self.cloud.machines),
            state: self.cloud.state.clone(),
            changes: Arc::clone(&self.queues.route_changes),
            age_limits: Arc::clone(&self.age_limits),
            recorder: self.recorder.speaking_for("route_controller"),
            observer: self.observer(),
            clock: self.options.clock.clone(),
            period: self.options.route_reconciliation_period,
            warnings: RepeatedWarnings::default(),
            failures: AtomicU32::default(),
        });
        let working =
            self.tasks.work(queue.clone(), 1, &controller, |it, ()| async move { it.reconcile().await });
        self.tasks.spawn_after(listed.nodes(), async move {
            queue.add(());
            working.await;
        });
        self.tasks.started("node-route-controller", "route");
    }

    /// Nodes get ranges once all nodes are known, including those that a selector hides: before, a range of another node
    /// could be assigned.
    fn start_ipam(&mut self, queue: Queue<String>, ipam: Arc<Ipam>, listed: &Listed) {
        let reconcile = |it: Arc<Ipam>, name: String| async move { it.reconcile(&name).await };
        let working = self.tasks.work(queue, MAX_PARALLEL_NODES, &ipam, reconcile);
        let (nodes_known, sees_a_part) = (listed.nodes(), self.options.node_selector.is_some());
        let known = async move {
            nodes_known.await;
            while sees_a_part && let Err(error) = ipam.see_all().await {
                tracing::warn!(%error, "no node gets a range before all are known; trying again");
                tokio::time::sleep(LIST_RETRY_INTERVAL).await;
            }
        };
        self.tasks.spawn_after(known, working);
        self.tasks.started("node-ipam", "node-ipam");
    }
}
