//! Watches all kinds, and reconciles each cluster whose objects changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{BoxStream, SelectAll};
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::authorities::secret_text;
use crate::contract::{host_port, is_endpoint};
use crate::names::SECRET_VALUE;
use crate::objects::{Contract, GroupKind, Key, Kind, Objects, cluster_of, key, list, namespace, text};
use crate::part::Part;
use crate::round::{Round, Workload};
use crate::workloads::Workloads;
use crate::{
    cluster, control_plane, health_check, kubeadm_config, machine, machine_deployment, machine_pool,
    machine_set,
};

/// Changes within this time are handled together.
const BATCH_INTERVAL: Duration = Duration::from_millis(50);
/// The wait after a failure.
pub(crate) const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The labels of definitions that follow a contract, newer first.
const CONTRACTS: [(&str, bool); 2] =
    [("cluster.x-k8s.io/v1beta2", true), ("cluster.x-k8s.io/v1beta1", false)];

/// The wall clock, for times in objects. Waiting uses tokio's clock.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

type Controller = fn(&mut Round<'_>);

/// The controllers in order of execution, with their parts.
const CONTROLLERS: [(Part, Controller); 8] = [
    (Part::Core, cluster::keep),
    (Part::ControlPlane, control_plane::keep_all),
    (Part::Bootstrap, kubeadm_config::keep_all),
    (Part::Core, machine_deployment::keep_all),
    (Part::Core, machine_set::keep_all),
    (Part::Core, machine_pool::keep_all),
    (Part::Core, health_check::keep_all),
    (Part::Core, machine::keep_all),
];

/// An event of a watch, in the management cluster or in a workload cluster.
type WatchEvent = (GroupKind, Result<Event<DynamicObject>, watcher::Error>);

/// The connection to a workload cluster.
struct Connection {
    endpoint: String,
    /// A client; `None` until the cluster answers.
    client: Option<Client>,
    workload: Workload,
    listed: BTreeSet<GroupKind>,
    /// Stops the watches when dropped.
    _guard: DropGuard,
}

/// A message about the connection to a workload cluster.
enum Message {
    /// The API server of the workload cluster answers.
    Connected(Client),
    Event(Box<WatchEvent>),
}

/// A message, and the cluster whose connection it is about.
type Envelope = (Key, Message);

/// The last write to an object: the patch, and the resource version that resulted from it.
pub(crate) type Written = (Value, Option<String>);

pub(crate) struct Runner {
    pub(crate) client: Client,
    /// The parts that run here.
    parts: Vec<Part>,
    workloads: Arc<dyn Workloads>,
    pub(crate) clock: WallClock,
    random: StdRng,
    pub(crate) objects: Objects,
    /// The kinds whose watches are synced.
    listed: BTreeSet<GroupKind>,
    connections: BTreeMap<Key, Connection>,
    messages: (mpsc::UnboundedSender<Envelope>, mpsc::UnboundedReceiver<Envelope>),
    /// The clusters whose objects changed.
    dirty: BTreeSet<Key>,
    /// When to reconcile clusters again.
    wakes: BTreeMap<Key, Timestamp>,
    /// The last write to each object.
    pub(crate) written: BTreeMap<(GroupKind, Key), Written>,
}

fn definitions() -> GroupKind {
    GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition")
}

/// The kinds that are watched in workload clusters, and their namespaces.
const THERE: [(&str, &str, &str); 3] =
    [("Node", "nodes", ""), ("Secret", "secrets", "kube-system"), ("ConfigMap", "configmaps", "kube-system")];

/// A kind of the core group.
pub(crate) fn core_resource(kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", kind), plural)
}

fn watch(api: Api<DynamicObject>, kind: GroupKind) -> BoxStream<'static, WatchEvent> {
    watcher(api, watcher::Config::default()).default_backoff().map(move |event| (kind.clone(), event)).boxed()
}

impl Runner {
    pub(crate) fn new(
        client: Client,
        parts: &[Part],
        workloads: Arc<dyn Workloads>,
        clock: WallClock,
        seed: u64,
    ) -> Self {
        Self {
            client,
            parts: parts.to_vec(),
            workloads,
            clock,
            random: StdRng::seed_from_u64(seed),
            objects: Objects::default(),
            listed: BTreeSet::new(),
            connections: BTreeMap::new(),
            messages: mpsc::unbounded_channel(),
            dirty: BTreeSet::new(),
            wakes: BTreeMap::new(),
            written: BTreeMap::new(),
        }
    }

    pub(crate) async fn run(mut self) {
        let mut events: SelectAll<BoxStream<'static, WatchEvent>> =
            stream::select_all([self.watch_definitions(), self.watch_secrets()]);
        loop {
            let mut pause = self.pause();
            loop {
                let next = async {
                    tokio::select! {
                        Some(event) = events.next() => Some(Ok(event)),
                        Some(message) = self.messages.1.recv() => Some(Err(message)),
                        else => None,
                    }
                };
                match timeout(pause, next).await {
                    Ok(Some(Ok((kind, event)))) => {
                        if let Some(more) = self.take(&kind, event) {
                            events.push(more);
                        }
                    }
                    Ok(Some(Err((cluster, message)))) => self.receive(&cluster, message),
                    Ok(None) => return,
                    Err(_) => break,
                }
                pause = BATCH_INTERVAL;
            }
            self.look().await;
        }
    }

    fn watch_definitions(&self) -> BoxStream<'static, WatchEvent> {
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        watch(Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind)), definitions())
    }

    fn watch_secrets(&self) -> BoxStream<'static, WatchEvent> {
        let api = Api::all_with(self.client.clone(), &core_resource("Secret", "secrets"));
        watch(api, Kind::Secret.into())
    }

    /// The time until the next reconcile without a change.
    fn pause(&self) -> Duration {
        let now = (self.clock)();
        let next = self.wakes.values().min();
        next.map_or(Duration::MAX, |next| {
            Duration::try_from(next.duration_since(now)).unwrap_or_default().max(BATCH_INTERVAL)
        })
    }

    /// Handles an event of a watch; returns the watch of a newly discovered kind.
    fn take(
        &mut self,
        kind: &GroupKind,
        event: Result<Event<DynamicObject>, watcher::Error>,
    ) -> Option<BoxStream<'static, WatchEvent>> {
        match event {
            Ok(Event::Init) => {
                self.objects.clear(kind);
                self.listed.remove(kind);
            }
            Ok(Event::InitDone) => {
                self.listed.insert(kind.clone());
                self.dirty.extend(self.objects.of(&Kind::Cluster.into()).map(key));
            }
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                // Objects from JSON always serialize.
                let object = serde_json::to_value(object).unwrap_or_default();
                if *kind == definitions() {
                    return self.learn(&object);
                }
                let clusters = self.clusters_of(kind, &object);
                if self.objects.insert(kind, object) {
                    self.dirty.extend(clusters);
                }
            }
            Ok(Event::Delete(object)) => {
                let object = serde_json::to_value(object).unwrap_or_default();
                if *kind == definitions() {
                    self.objects.contracts.remove(&defined(&object));
                }
                self.dirty.extend(self.clusters_of(kind, &object));
                self.forget(kind, &key(&object));
            }
            // The watcher backs off and retries.
            Err(error) => tracing::debug!(?kind, %error, "a watch of the stand-in for Cluster API failed"),
        }
        None
    }

    /// Registers a kind that follows a contract.
    fn learn(&mut self, definition: &Value) -> Option<BoxStream<'static, WatchEvent>> {
        let (labels, kind) = (&definition["metadata"]["labels"], defined(definition));
        let is_established = list(&definition["status"]["conditions"])
            .iter()
            .any(|one| one["type"] == "Established" && one["status"] == "True");
        let found = CONTRACTS.iter().find_map(|(name, second)| Some((labels[name].as_str()?, *second)))?;
        if !is_established {
            return None;
        }
        // Several versions are in ascending order, separated by `_`.
        let version = found.0.rsplit('_').next().unwrap_or_default().to_owned();
        let plural = text(&definition["spec"]["names"]["plural"]).to_owned();
        let contract = Contract { version, plural, second: found.1 };
        if self.objects.contracts.get(&kind) == Some(&contract) {
            return None;
        }
        self.objects.contracts.insert(kind.clone(), contract);
        self.listed.remove(&kind);
        let api = self.api(&kind, "")?;
        Some(watch(api, kind))
    }

    /// The API of a kind; `None` if it is not known.
    pub(crate) fn api(&self, kind: &GroupKind, namespace: &str) -> Option<Api<DynamicObject>> {
        let resource = if kind.is(Kind::Secret) {
            core_resource("Secret", "secrets")
        } else {
            let contract = self.objects.contracts.get(kind)?;
            let whole = GroupVersionKind::gvk(&kind.group, &contract.version, &kind.kind);
            ApiResource::from_gvk_with_plural(&whole, &contract.plural)
        };
        Some(match namespace {
            "" => Api::all_with(self.client.clone(), &resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, &resource),
        })
    }

    /// The clusters that an object belongs to, or may belong to.
    fn clusters_of(&self, kind: &GroupKind, object: &Value) -> Vec<Key> {
        let namespace = namespace(object);
        if kind.is(Kind::Cluster) {
            return vec![key(object)];
        }
        match cluster_of(object) {
            Some(cluster) => vec![cluster],
            // Other objects may refer to it.
            None => self.objects.within(&Kind::Cluster.into(), namespace).map(key).collect(),
        }
    }

    pub(crate) fn forget(&mut self, kind: &GroupKind, key: &Key) {
        self.objects.remove(kind, key);
        self.written.remove(&(kind.clone(), key.clone()));
        if kind.is(Kind::Machine) {
            self.objects.drains.remove(key);
            self.objects.stuck_nodes.remove(key);
        }
        if kind.is(Kind::Cluster) {
            self.connections.remove(key);
            self.wakes.remove(key);
        }
    }

    fn receive(&mut self, cluster: &Key, message: Message) {
        let Some(connection) = self.connections.get_mut(cluster) else { return };
        let objects = &mut connection.workload.objects;
        let (kind, event) = match message {
            Message::Connected(client) => {
                connection.client = Some(client);
                return;
            }
            Message::Event(event) => *event,
        };
        match event {
            Ok(Event::Init) => objects.clear(&kind),
            Ok(Event::InitDone) => {
                connection.listed.insert(kind);
                connection.workload.listed = connection.listed.len() == THERE.len();
            }
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                let object = serde_json::to_value(object).unwrap_or_default();
                let before = objects.get(&kind, &key(&object)).map(what_matters);
                let same = before.is_some_and(|before| before == what_matters(&object));
                objects.insert(&kind, object);
                if same {
                    return;
                }
            }
            Ok(Event::Delete(object)) => {
                let object = serde_json::to_value(object).unwrap_or_default();
                objects.remove(&kind, &key(&object));
            }
            Err(error) => {
                tracing::debug!(?cluster, ?kind, %error, "a watch in a workload cluster failed");
                return;
            }
        }
        self.dirty.insert(cluster.clone());
    }

    /// Reconciles the changed clusters until no action is left.
    async fn look(&mut self) {
        let kinds = Kind::ALL.iter().map(|kind| GroupKind::from(*kind));
        let known = self.objects.contracts.keys().cloned();
        if kinds.chain([definitions()]).chain(known).any(|kind| !self.listed.contains(&kind)) {
            return;
        }
        let now = (self.clock)();
        let due = self.wakes.iter().filter(|(_, at)| **at <= now).map(|(cluster, _)| cluster.clone());
        self.dirty.extend(due.collect::<Vec<_>>());
        while let Some(cluster) = self.dirty.pop_first() {
            self.wakes.remove(&cluster);
            self.connect(&cluster);
            let Some((actions, wake)) = self.decide(&cluster) else { continue };
            let mut failed = false;
            let mut done = false;
            for action in actions {
                match self.perform(&cluster, action.clone()).await {
                    Ok(acted) => done |= acted,
                    // The watch delivers the change, which triggers another reconcile.
                    Err(error) if error.is(404) || error.is(409) => {}
                    Err(error) => {
                        tracing::debug!(?action, %error, "the stand-in for Cluster API failed; it tries again");
                        failed = true;
                    }
                }
            }
            // Completed writes are already in the cache.
            if done && !failed {
                self.dirty.insert(cluster.clone());
            }
            let retry = failed.then(|| (self.clock)() + RETRY_INTERVAL);
            if let Some(at) = [wake, retry].into_iter().flatten().min() {
                self.wakes.insert(cluster, at);
            }
        }
    }

    fn decide(&mut self, key: &Key) -> Option<(Vec<crate::round::Action>, Option<Timestamp>)> {
        let cluster = self.objects.get(&Kind::Cluster.into(), key)?;
        let workload = self.connections.get(key).map(|one| &one.workload).filter(|one| one.listed);
        let mut round = Round {
            objects: &self.objects,
            cluster,
            workload,
            now: (self.clock)(),
            random: &mut self.random,
            actions: Vec::new(),
            wake: None,
        };
        let played = CONTROLLERS.iter().filter(|(part, _)| self.parts.contains(part));
        played.for_each(|(_, controller)| controller(&mut round));
        Some((round.actions, round.wake))
    }

    /// Connects to the cluster's API, once it has an endpoint and a kubeconfig.
    fn connect(&mut self, cluster: &Key) {
        let Some(object) = self.objects.get(&Kind::Cluster.into(), cluster) else {
            self.connections.remove(cluster);
            return;
        };
        let endpoint = &object["spec"]["controlPlaneEndpoint"];
        let secret = (cluster.0.clone(), format!("{}-kubeconfig", cluster.1));
        let kubeconfig =
            self.objects.get(&Kind::Secret.into(), &secret).and_then(|one| secret_text(one, SECRET_VALUE));
        let (true, Some(kubeconfig)) = (is_endpoint(endpoint), kubeconfig) else { return };
        let endpoint = host_port(endpoint);
        if self.connections.get(cluster).is_some_and(|known| known.endpoint == endpoint) {
            return;
        }
        let stop = CancellationToken::new();
        let follow = follow(
            Arc::clone(&self.workloads),
            cluster.clone(),
            endpoint.clone(),
            kubeconfig,
            self.messages.0.clone(),
        );
        tokio::spawn(stop.clone().run_until_cancelled_owned(follow));
        let connection = Connection {
            endpoint,
            client: None,
            workload: Workload::default(),
            listed: BTreeSet::new(),
            _guard: stop.drop_guard(),
        };
        self.connections.insert(cluster.clone(), connection);
    }

    /// A client for a workload cluster.
    pub(crate) fn there(&self, cluster: &Key) -> Option<Client> {
        self.connections.get(cluster)?.client.clone()
    }

    /// The cached state of a workload cluster, to which completed writes are added.
    pub(crate) fn workload(&mut self, cluster: &Key) -> Option<&mut Workload> {
        self.connections.get_mut(cluster).map(|one| &mut one.workload)
    }
}

/// The part of an object in a workload cluster that the controllers read, without heartbeats.
fn what_matters(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        metadata.remove("managedFields");
    }
    if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
        for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
            condition.remove("lastHeartbeatTime");
        }
    }
    object
}

/// The kind that a definition defines.
fn defined(definition: &Value) -> GroupKind {
    let spec = &definition["spec"];
    GroupKind::new(text(&spec["group"]), text(&spec["names"]["kind"]))
}

/// Waits until a cluster answers, and then forwards the events of its watches.
async fn follow(
    workloads: Arc<dyn Workloads>,
    cluster: Key,
    endpoint: String,
    kubeconfig: String,
    messages: mpsc::UnboundedSender<Envelope>,
) {
    let client = loop {
        if let Some(client) = workloads.client(&cluster.0, &cluster.1, &endpoint, &kubeconfig).await
            && client.apiserver_version().await.is_ok()
        {
            break client;
        }
        sleep(RETRY_INTERVAL).await;
    };
    if messages.send((cluster.clone(), Message::Connected(client.clone()))).is_err() {
        return;
    }
    let watches = THERE.iter().map(|(kind, plural, namespace)| {
        let resource = core_resource(kind, plural);
        let api = match *namespace {
            "" => Api::all_with(client.clone(), &resource),
            namespace => Api::namespaced_with(client.clone(), namespace, &resource),
        };
        watch(api, GroupKind::new("", kind))
    });
    let mut events = stream::select_all(watches);
    while let Some(event) = events.next().await {
        if messages.send((cluster.clone(), Message::Event(Box::new(event)))).is_err() {
            return;
        }
    }
}
