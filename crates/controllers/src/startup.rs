//! What the controllers are started with, and the watches that feed their queues.

use std::fmt::Debug;
use std::sync::Arc;

use cloud::{ClusterState, FollowedLabels};
use freshness::AgeLimits;
use k8s::{EndpointSlice, Namespace, Node, ObjectKey, Service};
use kube::runtime::watcher::Event;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::endpoint_index::EndpointIndex;
use crate::events::Recorder;
use crate::index::{NodeChanges, NodeIndex, ServiceIndex};
use crate::ipam::Ipam;
use crate::local_pools::MovedEndpoints;
use crate::namespace_index::NamespaceIndex;
use crate::node_set::NodeSetChanges;
use crate::options::{Cloud, Options};
use crate::queue::Queue;
use crate::refusals::Refusals;
use crate::resource_lease::ResourceLease;
use crate::routes::RouteChanges;
use crate::served::Served;
use crate::tasks::Tasks;
use crate::watch::Selector;
use crate::{node, node_lifecycle, out_of_service};

/// The queues that watches feed.
#[derive(Clone)]
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

impl Queues {
    /// Queues what has to be reconciled because of changes of nodes.
    fn add_changes(&self, changes: NodeChanges) {
        if let Some((queue, ipam)) = &self.ipam {
            changes.removed.iter().for_each(|gone| ipam.forget(gone));
            let without = changes.touched.iter().filter(|node| ipam.see(node));
            without.for_each(|node| queue.add(node.name().to_owned()));
            if !changes.removed.is_empty() {
                // The ranges of a deleted node are free for waiting nodes.
                ipam.waiting().into_iter().for_each(|name| queue.add(name));
            }
        }
        for changed in changes.touched {
            let add = |queue: &Queue<String>| queue.add(changed.name().to_owned());
            if out_of_service::needs_work(&changed) {
                add(&self.out_of_service);
            }
            if node::Policy::CONTROLLER.needs_work(&changed) {
                self.nodes.iter().for_each(add);
            }
            if node_lifecycle::needs_work(&changed) {
                self.lifecycle.iter().for_each(add);
            }
        }
        if changes.set_changed {
            self.node_set.add(());
        }
        if changes.draining_changed {
            self.draining.iter().for_each(|queue| queue.add(()));
        }
        if let Some(routes) = &self.routes
            && (changes.routes_changed || changes.network_changed)
        {
            if changes.routes_changed {
                self.route_changes.note();
            }
            routes.add(());
        }
    }
}

/// Which kinds of objects have been listed completely, as their watches report it.
pub(crate) struct Listed {
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
    pub fn nodes(&self) -> impl Future<Output = ()> + Send + use<> {
        wait_for(self.nodes.clone())
    }

    /// Completes when all that Services depend on is known.
    pub fn all(&self) -> impl Future<Output = ()> + Send + use<> {
        let (nodes, services) = (self.nodes(), wait_for(self.services.clone()));
        let (namespaces, endpoints) = (wait_for(self.namespaces.clone()), wait_for(self.endpoints.clone()));
        async move { _ = tokio::join!(nodes, services, namespaces, endpoints) }
    }
}

/// Everything that the controllers are started with.
pub(crate) struct Startup<'a> {
    pub options: &'a Options,
    pub cloud: Cloud,
    /// The client of the controllers.
    pub client: Client,
    /// The client of watches.
    pub watching: Client,
    pub recorder: Recorder,
    pub lease: Option<ResourceLease>,
    pub age_limits: Arc<AgeLimits>,
    pub labels: FollowedLabels,
    pub queues: Queues,
    pub tasks: Tasks<'a>,
}

impl Startup<'_> {
    /// Watches the objects that the enabled controllers need; `moved` collects changes of endpoints if some Services have
    /// pools of their own.
    pub fn watch(&mut self, moved: Option<&Arc<MovedEndpoints>>) -> Listed {
        let (nodes, of_nodes) = watch::channel(false);
        let (services, of_services) = watch::channel(false);
        let (namespaces, of_namespaces) = watch::channel(!self.labels.of_namespaces);
        // If no Service has a pool of its own, endpoints are not needed.
        let (endpoints, of_endpoints) = watch::channel(moved.is_none());
        self.watch_nodes(nodes);
        if self.options.controllers.service {
            self.watch_services(services);
            if self.labels.of_namespaces {
                self.watch_namespaces(namespaces);
            }
        }
        if let Some(moved) = moved {
            self.watch_endpoints(Arc::clone(moved), endpoints);
        }
        Listed { nodes: of_nodes, services: of_services, namespaces: of_namespaces, endpoints: of_endpoints }
    }

    /// Passes the events of a watch to `on`; sets `synced` once everything has been listed.
    fn watch_kind<K>(
        &mut self,
        selector: Selector,
        what: &'static str,
        mut on: impl FnMut(Event<K>) + Send + 'static,
        is_synced: impl Fn(&ClusterState) -> bool + Send + 'static,
        synced: watch::Sender<bool>,
    ) where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let state = self.cloud.state.clone();
        let watching = self.tasks.watch(&self.watching, selector, what, move |event| {
            on(event);
            if is_synced(&state) {
                synced.send_replace(true);
            }
        });
        self.tasks.spawn(watching);
    }

    fn watch_nodes(&mut self, synced: watch::Sender<bool>) {
        let index = NodeIndex::new(self.cloud.state.clone(), Arc::clone(&self.queues.node_set_changes));
        let mut index = index.following_labels(self.labels.of_nodes);
        let queues = self.queues.clone();
        let on = move |event| queues.add_changes(index.on(event));
        let selector = Selector { labels: self.options.node_selector.clone(), ..Selector::default() };
        self.watch_kind::<Node>(selector, "nodes", on, ClusterState::nodes_synced, synced);
    }

    fn watch_services(&mut self, synced: watch::Sender<bool>) {
        let mut index = ServiceIndex::new(self.cloud.state.clone(), Arc::clone(&self.queues.served))
            .with_refusals(Arc::clone(&self.queues.refusals))
            .following_labels(self.labels.of_services);
        let queue = self.queues.services.clone();
        let on = move |event| index.on(event).into_iter().for_each(|key| queue.add(key));
        self.watch_kind::<Service>(
            Selector::default(),
            "services",
            on,
            ClusterState::services_synced,
            synced,
        );
    }

    fn watch_namespaces(&mut self, synced: watch::Sender<bool>) {
        let mut index = NamespaceIndex::new(self.cloud.state.clone());
        let queue = self.queues.services.clone();
        let on = move |event| index.on(event).into_iter().for_each(|key| queue.add(key));
        let is_synced = ClusterState::namespaces_synced;
        self.watch_kind::<Namespace>(Selector::default(), "namespaces", on, is_synced, synced);
    }

    fn watch_endpoints(&mut self, moved: Arc<MovedEndpoints>, synced: watch::Sender<bool>) {
        let mut index = EndpointIndex::new(self.cloud.state.clone());
        let on = move |event| moved.note(index.on(event));
        let labels = Some(k8s::names::LABEL_SERVICE_NAME.to_owned());
        let selector = Selector { labels, ..Selector::default() };
        let is_synced = ClusterState::endpoints_synced;
        self.watch_kind::<EndpointSlice>(selector, "endpoint slices", on, is_synced, synced);
    }
}
