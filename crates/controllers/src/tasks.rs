//! The tasks that run until the stop: watches, queues and controllers.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use cloud::{ClusterState, FollowedLabels};
use k8s::{EndpointSlice, Event, Namespace, Node, ObjectKey, Service};
use kube::runtime::watcher::Event as WatchEvent;
use kube::{Api, Client, Resource};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::draining::DrainingNodes;
use crate::endpoint_index::EndpointIndex;
use crate::health::HealthCheck;
use crate::index::{NodeIndex, ServiceIndex};
use crate::ipam::Ipam;
use crate::local_pools::MovedEndpoints;
use crate::namespace_index::NamespaceIndex;
use crate::node::NodeController;
use crate::node_lifecycle::NodeLifecycle;
use crate::node_set::NodeSetChanges;
use crate::node_sync::NodeSync;
use crate::options::Options;
use crate::preemption::{self, Preemption};
use crate::queue::{Backoff, MAX_PARALLEL_NODES, Queue, propagate_panic};
use crate::refusals::Refusals;
use crate::routes::{RouteChanges, RouteController};
use crate::served::Served;
use crate::service::ServiceController;
use crate::watch::{Selector, watch as watch_objects};
use crate::{node, node_lifecycle, out_of_service};

/// Interval between attempts to list all nodes at the start.
const LIST_RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// The queues that watches feed.
pub(crate) struct Queues {
    pub services: Queue<ObjectKey>,
    pub served: Arc<Served>,
    pub refusals: Arc<Refusals>,
    pub node_set: Queue<()>,
    pub node_set_changes: Arc<NodeSetChanges>,
    pub nodes: Option<Queue<String>>,
    pub lifecycle: Option<Queue<String>>,
    pub out_of_service: Queue<String>,
    /// `None` if draining nodes are not reported to load balancers.
    pub draining: Option<Queue<()>>,
    /// `None` if this program writes no routes.
    pub routes: Option<Queue<()>>,
    pub route_changes: Arc<RouteChanges>,
    /// `None` if this program assigns no pod ranges.
    pub ipam: Option<(Queue<String>, Arc<Ipam>)>,
}

/// Everything that runs until the stop.
pub(crate) struct Tasks<'a> {
    options: &'a Options,
    pub stop: CancellationToken,
    rng: SmallRng,
    running: JoinSet<()>,
    started: Vec<&'static str>,
    first: bool,
}

impl<'a> Tasks<'a> {
    pub fn new(options: &'a Options, stop: CancellationToken) -> Self {
        let rng = SmallRng::seed_from_u64(options.seed);
        Self { options, stop, rng, running: JoinSet::new(), started: vec![], first: true }
    }

    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.running.spawn(task);
    }

    /// Spawns a task that begins once `known` completes, unless the stop comes first.
    fn spawn_after(
        &mut self,
        known: impl Future<Output = ()> + Send + 'static,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let stop = self.stop.clone();
        self.spawn(async move {
            if stop.run_until_cancelled(known).await.is_some() && !stop.is_cancelled() {
                task.await;
            }
        });
    }

    /// Spawns a task that is dropped at the stop.
    pub fn spawn_until_stop(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.spawn(async move { _ = stop.run_until_cancelled(task).await });
    }

    /// Waits before the start of every controller but the first; `false` if the stop came.
    pub async fn pause(&mut self) -> bool {
        if !std::mem::take(&mut self.first) && !self.options.start_interval.is_zero() {
            let pause = self.options.start_interval.mul_f64(1.0 + self.rng.random::<f64>());
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        !self.stop.is_cancelled()
    }

    /// Records that a controller runs.
    fn started(&mut self, check: &'static str, metric: &'static str) {
        self.options.health.add(HealthCheck::new(check, || Ok(())));
        self.options.observer.controller_running(metric, true);
        self.started.push(metric);
        tracing::info!(controller = check, "started");
    }

    /// Passes the events of a watch to `on`; sets `synced` once everything has been listed.
    fn watch<K>(
        &mut self,
        client: &Client,
        selector: Selector,
        what: &'static str,
        mut on: impl FnMut(WatchEvent<K>) + Send + 'static,
        is_synced: impl Fn() -> bool + Send + 'static,
        synced: watch::Sender<bool>,
    ) where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let (api, stop) = (Api::<K>::all(client.clone()), self.stop.clone());
        let on = move |event| {
            on(event);
            if is_synced() {
                synced.send_replace(true);
            }
        };
        self.spawn(async move { watch_objects(api, selector, what, stop, on).await });
    }

    pub fn watch_nodes(
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
        let ipam = queues.ipam.clone();
        let (routes, route_changes) = (queues.routes.clone(), Arc::clone(&queues.route_changes));
        let on = move |event| {
            let changes = index.on(event);
            if let Some((queue, ipam)) = &ipam {
                changes.removed.iter().for_each(|gone| ipam.forget(gone));
                let without = changes.touched.iter().filter(|node| ipam.see(node));
                without.for_each(|node| queue.add(node.name().to_owned()));
                if !changes.removed.is_empty() {
                    // The ranges of a deleted node are free for waiting nodes.
                    ipam.waiting().into_iter().for_each(|name| queue.add(name));
                }
            }
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
            if let Some(routes) = &routes
                && (changes.routes_changed || changes.network_changed)
            {
                if changes.routes_changed {
                    route_changes.note();
                }
                routes.add(());
            }
        };
        let selector = Selector { labels: self.options.node_selector.clone(), ..Selector::default() };
        self.watch::<Node>(client, selector, "nodes", on, move || state.nodes_synced(), synced);
    }

    pub fn watch_services(
        &mut self,
        client: &Client,
        state: &ClusterState,
        queues: &Queues,
        labels: FollowedLabels,
        synced: watch::Sender<bool>,
    ) {
        let mut index = ServiceIndex::new(state.clone(), Arc::clone(&queues.served))
            .with_refusals(Arc::clone(&queues.refusals))
            .following_labels(labels.of_services);
        let state = state.clone();
        let queue = queues.services.clone();
        let on = move |event| index.on(event).into_iter().for_each(|key| queue.add(key));
        let is_synced = move || state.services_synced();
        self.watch::<Service>(client, Selector::default(), "services", on, is_synced, synced);
    }

    pub fn watch_namespaces(
        &mut self,
        client: &Client,
        state: &ClusterState,
        queues: &Queues,
        synced: watch::Sender<bool>,
    ) {
        let mut index = NamespaceIndex::new(state.clone());
        let state = state.clone();
        let queue = queues.services.clone();
        let on = move |event| index.on(event).into_iter().for_each(|key| queue.add(key));
        let is_synced = move || state.namespaces_synced();
        self.watch::<Namespace>(client, Selector::default(), "namespaces", on, is_synced, synced);
    }

    pub fn watch_endpoints(
        &mut self,
        client: &Client,
        state: &ClusterState,
        moved: &Arc<MovedEndpoints>,
        synced: watch::Sender<bool>,
    ) {
        let mut index = EndpointIndex::new(state.clone());
        let (state, moved) = (state.clone(), Arc::clone(moved));
        let on = move |event| moved.note(index.on(event));
        let selector =
            Selector { labels: Some(k8s::names::LABEL_SERVICE_NAME.to_owned()), ..Selector::default() };
        let is_synced = move || state.endpoints_synced();
        self.watch::<EndpointSlice>(client, selector, "endpoint slices", on, is_synced, synced);
    }

    /// Services are reconciled once all Services and nodes are known, and endpoints if they matter: before, a rule
    /// could seem unused and a node deleted.
    pub fn start_services(
        &mut self,
        queues: &Queues,
        controller: Arc<ServiceController>,
        sync: Arc<NodeSync>,
        all_known: impl Future<Output = ()> + Send + 'static,
    ) {
        let (services, node_set) = (queues.services.clone(), queues.node_set.clone());
        let (stop, drain, parallelism) =
            (self.stop.clone(), self.options.drain, self.options.service_parallelism);
        self.spawn_after(all_known, async move {
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

    /// Draining starts once all nodes are known: before, an unlisted node could count as deleted.
    pub fn start_draining(
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
        self.spawn_after(nodes_known, async move {
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

    pub fn start_cloud_node(
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

    pub fn start_lifecycle(&mut self, queue: Queue<String>, lifecycle: Arc<NodeLifecycle>) {
        let (stop, drain) = (self.stop.clone(), self.options.drain);
        self.spawn(queue.work(MAX_PARALLEL_NODES, stop, drain, move |name: String| {
            let lifecycle = Arc::clone(&lifecycle);
            async move { lifecycle.reconcile(&name).await }
        }));
        self.started("cloud-node-lifecycle-controller", "cloud-node-lifecycle");
    }

    /// Routes are reconciled once all nodes are known: before, a route could seem to have no node.
    pub fn start_routes(
        &mut self,
        queue: Queue<()>,
        controller: RouteController,
        nodes_known: impl Future<Output = ()> + Send + 'static,
    ) {
        let (stop, drain, controller) = (self.stop.clone(), self.options.drain, Arc::new(controller));
        self.spawn_after(nodes_known, async move {
            queue.add(());
            queue
                .work(1, stop, drain, move |()| {
                    let controller = Arc::clone(&controller);
                    async move { controller.reconcile().await }
                })
                .await;
        });
        self.started("node-route-controller", "route");
    }

    /// Nodes get ranges once all nodes are known: before, a range of another node could be assigned.
    pub fn start_ipam(
        &mut self,
        queue: Queue<String>,
        ipam: Arc<Ipam>,
        nodes_known: impl Future<Output = ()> + Send + 'static,
    ) {
        let (stop, drain) = (self.stop.clone(), self.options.drain);
        let sees_a_part = self.options.node_selector.is_some();
        let all = Arc::clone(&ipam);
        let known = async move {
            nodes_known.await;
            while sees_a_part && let Err(error) = all.see_all().await {
                tracing::warn!(%error, "no node gets a range before all are known; trying again");
                tokio::time::sleep(LIST_RETRY_INTERVAL).await;
            }
        };
        self.spawn_after(known, async move {
            queue
                .work(MAX_PARALLEL_NODES, stop, drain, move |name: String| {
                    let ipam = Arc::clone(&ipam);
                    async move { ipam.reconcile(&name).await }
                })
                .await;
        });
        self.started("node-ipam", "node-ipam");
    }

    /// Waits for all tasks to end.
    pub async fn join(mut self) {
        while let Some(ended) = self.running.join_next().await {
            propagate_panic(ended);
        }
        for controller in self.started {
            self.options.observer.controller_running(controller, false);
        }
    }
}
