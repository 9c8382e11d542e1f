//! EndpointSlices: a stand-in for the EndpointSlice controller, and for the pods of Services whose selector matches no
//! pod.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s::api::api::apps::v1::Deployment;
use k8s::api::api::core::v1::{Node, Pod, Service};
use k8s::api::api::discovery::v1::EndpointSlice;
use k8s::api::apimachinery::pkg::util::intstr::IntOrString;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::Running;
use crate::api_error::has_code;
use crate::pod::pod_address;

/// How many simulated pods of a Service (namespace, name) run on a node.
pub type PodPlacement = Arc<dyn Fn(&str, &str, &str) -> usize + Send + Sync>;

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const OURS: &str = "stand-in";
/// `--max-endpoints-per-slice`.
const MAX_ENDPOINTS_PER_SLICE: usize = 100;
/// Changes within this time are written together.
const BATCH_INTERVAL: Duration = Duration::from_millis(100);
/// How often the placement is read again.
const PLACEMENT_INTERVAL: Duration = Duration::from_secs(5);

/// Reconciles EndpointSlices (`discovery.k8s.io/v1`) of every Service with a selector.
pub struct EndpointSlices;

impl EndpointSlices {
    /// Runs until `shutdown`. A Service whose selector matches a pod, or the pods of a Deployment, has those as
    /// endpoints. For all others each node runs as many simulated pods as `placement` returns, which are ready while
    /// their node is. A changed placement is noticed within 5 s.
    pub fn spawn(client: kube::Client, placement: PodPlacement, shutdown: CancellationToken) -> Running {
        let maker = Maker::new(client, placement);
        Running::until(shutdown, maker.run())
    }

    /// As [`EndpointSlices::spawn`], with the same number of pods on every node.
    pub fn spawn_evenly(client: kube::Client, per_node: usize, shutdown: CancellationToken) -> Running {
        EndpointSlices::spawn(client, Arc::new(move |_, _, _| per_node), shutdown)
    }
}

#[allow(clippy::large_enum_variant, reason = "one at a time, and used up at once")]
enum Input {
    Service(watcher::Event<Service>),
    Node(watcher::Event<Node>),
    Pod(watcher::Event<Pod>),
    Deployment(watcher::Event<Deployment>),
    Tick,
}

/// Namespace and name.
type Key = (String, String);

/// Labels, or a selector of labels.
type Labels = BTreeMap<String, String>;

struct Maker {
    client: kube::Client,
    placement: PodPlacement,
    services: BTreeMap<Key, Service>,
    /// The nodes, and whether each is ready.
    nodes: BTreeMap<String, bool>,
    pods: BTreeMap<Key, Pod>,
    /// The labels of the pods of each Deployment.
    deployments: BTreeMap<Key, Labels>,
    /// Whether the initial lists of Services, Nodes, Pods and Deployments are complete.
    listed: [bool; 4],
    /// Our slices in the API, by Service and by name; `None` when they must be listed.
    written: Option<BTreeMap<Key, BTreeMap<String, Value>>>,
    /// How many simulated pods each node had for a Service when its slices were last written. The slices of a Service
    /// that is missing here have to be written.
    made: BTreeMap<Key, Vec<usize>>,
}

impl Maker {
    fn new(client: kube::Client, placement: PodPlacement) -> Self {
        Self {
            client,
            placement,
            services: BTreeMap::new(),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            deployments: BTreeMap::new(),
            listed: [false; 4],
            written: None,
            made: BTreeMap::new(),
        }
    }

    async fn run(mut self) {
        let services = events(Api::all(self.client.clone()), Input::Service);
        let nodes = events(Api::all(self.client.clone()), Input::Node);
        let pods = events(Api::all(self.client.clone()), Input::Pod);
        let deployments = events(Api::all(self.client.clone()), Input::Deployment);
        let mut period = interval(PLACEMENT_INTERVAL);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ticks = stream::poll_fn(move |context| period.poll_tick(context).map(|_| Some(Input::Tick)));
        let mut inputs = stream::select_all([services, nodes, pods, deployments, ticks.boxed()]);
        while let Some(first) = inputs.next().await {
            if self.take(first) {
                while let Ok(Some(more)) = timeout(BATCH_INTERVAL, inputs.next()).await {
                    self.take(more);
                }
            }
            if self.listed == [true; 4]
                && let Err(error) = self.write().await
            {
                tracing::debug!(%error, "writing endpoint slices failed; the next round tries again");
                self.written = None;
            }
        }
    }

    /// Caches an input. Returns whether it changed anything.
    fn take(&mut self, input: Input) -> bool {
        use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
        match input {
            Input::Tick => return false,
            Input::Service(Init) => {
                self.services.clear();
                self.made.clear();
                self.listed[0] = false;
            }
            Input::Service(InitDone) => self.listed[0] = true,
            Input::Service(Apply(service) | InitApply(service)) => {
                let selects = !selector(&service).is_empty()
                    && service
                        .spec
                        .as_ref()
                        .is_some_and(|spec| spec.type_.as_deref() != Some("ExternalName"));
                let key = key(&service.metadata);
                self.made.remove(&key);
                if selects && service.metadata.deletion_timestamp.is_none() {
                    self.services.insert(key, service);
                } else {
                    self.services.remove(&key);
                }
            }
            Input::Service(Delete(service)) => {
                let key = key(&service.metadata);
                self.made.remove(&key);
                self.services.remove(&key);
            }
            Input::Node(Init) => {
                self.nodes.clear();
                self.made.clear();
                self.listed[1] = false;
            }
            Input::Node(InitDone) => self.listed[1] = true,
            Input::Node(Apply(node) | InitApply(node)) => {
                let takes_pods = takes_pods(&node);
                let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
                let ready = conditions
                    .iter()
                    .any(|condition| condition.type_ == "Ready" && condition.status == "True");
                let name = node.metadata.name.unwrap_or_default();
                let before = self.nodes.get(&name).copied();
                if takes_pods {
                    self.nodes.insert(name, ready);
                } else {
                    self.nodes.remove(&name);
                }
                let changed = before != takes_pods.then_some(ready);
                if changed {
                    self.made.clear();
                }
                return changed;
            }
            Input::Node(Delete(node)) => {
                self.made.clear();
                self.nodes.remove(&node.metadata.name.unwrap_or_default());
            }
            Input::Pod(Init) => {
                self.pods.clear();
                self.made.clear();
                self.listed[2] = false;
            }
            Input::Pod(InitDone) => self.listed[2] = true,
            Input::Pod(Apply(pod) | InitApply(pod)) => {
                self.pods_changed(pod.metadata.namespace.as_deref());
                self.pods.insert(key(&pod.metadata), pod);
            }
            Input::Pod(Delete(pod)) => {
                self.pods_changed(pod.metadata.namespace.as_deref());
                self.pods.remove(&key(&pod.metadata));
            }
            Input::Deployment(Init) => {
                self.deployments.clear();
                self.made.clear();
                self.listed[3] = false;
            }
            Input::Deployment(InitDone) => self.listed[3] = true,
            Input::Deployment(Apply(deployment) | InitApply(deployment)) => {
                self.pods_changed(deployment.metadata.namespace.as_deref());
                let template = deployment.spec.and_then(|spec| spec.template.metadata);
                let labels = template.and_then(|template| template.labels).unwrap_or_default();
                self.deployments.insert(key(&deployment.metadata), labels);
            }
            Input::Deployment(Delete(deployment)) => {
                self.pods_changed(deployment.metadata.namespace.as_deref());
                self.deployments.remove(&key(&deployment.metadata));
            }
        }
        true
    }

    /// Marks the slices of this namespace's Services as outdated.
    fn pods_changed(&mut self, namespace: Option<&str>) {
        self.made.retain(|(known, _), _| Some(known.as_str()) != namespace);
    }

    async fn write(&mut self) -> Result<(), kube::Error> {
        let mut written = match self.written.take() {
            Some(written) => written,
            None => {
                self.made.clear();
                self.read().await?
            }
        };
        let gone: Vec<Key> =
            written.keys().filter(|key| !self.services.contains_key(*key)).cloned().collect();
        for service in gone {
            for name in written.remove(&service).unwrap_or_default().into_keys() {
                self.delete(&service.0, &name).await?;
            }
        }
        let mut made = std::mem::take(&mut self.made);
        for (key, service) in &self.services {
            let places: Vec<usize> =
                self.nodes.keys().map(|node| (self.placement)(&key.0, &key.1, node)).collect();
            if made.get(key) == Some(&places) {
                continue;
            }
            let before = written.entry(key.clone()).or_default();
            let wanted = self.slices(&key.0, &key.1, service, &places);
            let stray: Vec<String> =
                before.keys().filter(|name| !wanted.contains_key(*name)).cloned().collect();
            for name in stray {
                self.delete(&key.0, &name).await?;
                before.remove(&name);
            }
            for (name, slice) in wanted {
                match before.get(&name) {
                    Some(same) if *same == slice => continue,
                    Some(_) => {
                        let patch =
                            Patch::Merge(json!({"endpoints": slice["endpoints"], "ports": slice["ports"]}));
                        self.api(&key.0).patch(&name, &PatchParams::default(), &patch).await?;
                    }
                    None => {
                        let object =
                            serde_json::from_value(slice.clone()).map_err(kube::Error::SerdeError)?;
                        self.api(&key.0).create(&PostParams::default(), &object).await?;
                    }
                }
                before.insert(name, slice);
            }
            made.insert(key.clone(), places);
        }
        (self.made, self.written) = (made, Some(written));
        Ok(())
    }

    async fn delete(&self, namespace: &str, name: &str) -> Result<(), kube::Error> {
        match self.api(namespace).delete(name, &DeleteParams::default()).await {
            Err(error) if !has_code(&error, 404) => Err(error),
            _ => Ok(()),
        }
    }

    fn api(&self, namespace: &str) -> Api<EndpointSlice> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Lists our slices. A slice that differs in any way is written again.
    async fn read(&self) -> Result<BTreeMap<Key, BTreeMap<String, Value>>, kube::Error> {
        let all: Api<EndpointSlice> = Api::all(self.client.clone());
        let ours = all.list(&ListParams::default().labels(&format!("{MANAGED_BY}={OURS}"))).await?;
        let mut written: BTreeMap<Key, BTreeMap<String, Value>> = BTreeMap::new();
        for slice in ours.items {
            let (namespace, name) = key(&slice.metadata);
            let service = slice.metadata.labels.unwrap_or_default().remove(SERVICE_NAME).unwrap_or_default();
            written.entry((namespace, service)).or_default().insert(name, Value::Null);
        }
        Ok(written)
    }

    /// The pods that a Service selects; `None` if its selector matches neither a pod nor a Deployment, and simulated
    /// pods stand in.
    fn selected(&self, namespace: &str, service: &Service) -> Option<Vec<&Pod>> {
        let wanted = selector(service);
        let selects = |labels: Option<&Labels>| {
            labels.is_some_and(|labels| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)))
        };
        let pods: Vec<&Pod> = (self.pods.iter())
            .filter(|((of, _), pod)| of == namespace && selects(pod.metadata.labels.as_ref()))
            .map(|(_, pod)| pod)
            .collect();
        let meant = !pods.is_empty()
            || self.deployments.iter().any(|((of, _), labels)| of == namespace && selects(Some(labels)));
        meant.then_some(pods)
    }

    fn slices(
        &self,
        namespace: &str,
        name: &str,
        service: &Service,
        places: &[usize],
    ) -> BTreeMap<String, Value> {
        let pods = self.selected(namespace, service);
        let ports: Vec<Value> = service
            .spec
            .iter()
            .flat_map(|spec| spec.ports.iter().flatten())
            .map(|port| {
                let target = match &port.target_port {
                    Some(IntOrString::Int(target)) if *target > 0 => *target,
                    // A simulated pod has its named ports at the Service's own port numbers.
                    Some(IntOrString::String(name)) => {
                        pods.iter().flatten().find_map(|pod| named_port(pod, name)).unwrap_or(port.port)
                    }
                    _ => port.port,
                };
                json!({
                    "name": port.name.as_deref().unwrap_or_default(),
                    "port": target,
                    "protocol": port.protocol.as_deref().unwrap_or("TCP"),
                })
            })
            .collect();
        let endpoints = match pods {
            Some(pods) => pods.into_iter().filter_map(endpoint).collect(),
            None => self.pretend_endpoints(namespace, name, places),
        };
        let count = endpoints.len().div_ceil(MAX_ENDPOINTS_PER_SLICE).max(1);
        (0..count)
            .map(|index| {
                let part: Vec<Value> = endpoints
                    .iter()
                    .skip(index * MAX_ENDPOINTS_PER_SLICE)
                    .take(MAX_ENDPOINTS_PER_SLICE)
                    .cloned()
                    .collect();
                let slice = format!("{name}-{index}");
                let document = json!({
                    "apiVersion": "discovery.k8s.io/v1",
                    "kind": "EndpointSlice",
                    "metadata": {
                        "name": slice,
                        "namespace": namespace,
                        "labels": {SERVICE_NAME: name, MANAGED_BY: OURS},
                        "ownerReferences": [{
                            "apiVersion": "v1",
                            "kind": "Service",
                            "name": name,
                            "uid": service.metadata.uid.as_deref().unwrap_or_default(),
                            "controller": true,
                        }],
                    },
                    "addressType": "IPv4",
                    "endpoints": part,
                    "ports": ports,
                });
                (slice, document)
            })
            .collect()
    }

    fn pretend_endpoints(&self, namespace: &str, name: &str, places: &[usize]) -> Vec<Value> {
        let mut endpoints = vec![];
        for ((node, ready), count) in self.nodes.iter().zip(places) {
            for pod in 0..*count {
                endpoints.push(json!({
                    "addresses": [pod_address(&format!("{namespace}/{name}/{node}/{pod}"))],
                    "conditions": {"ready": ready, "serving": ready, "terminating": false},
                    "nodeName": node,
                }));
            }
        }
        endpoints
    }
}

/// A pod as an endpoint; `None` while it has no address.
fn endpoint(pod: &Pod) -> Option<Value> {
    let status = pod.status.as_ref()?;
    let address = status.pod_ip.as_ref()?;
    let terminating = pod.metadata.deletion_timestamp.is_some();
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let ready = conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True");
    Some(json!({
        "addresses": [address],
        "conditions": {"ready": ready && !terminating, "serving": ready, "terminating": terminating},
        "nodeName": pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()),
        "targetRef": {"kind": "Pod", "namespace": pod.metadata.namespace, "name": pod.metadata.name,
            "uid": pod.metadata.uid},
    }))
}

fn named_port(pod: &Pod, name: &str) -> Option<i32> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let ports = containers.flat_map(|container| container.ports.iter().flatten());
    ports.filter(|port| port.name.as_deref() == Some(name)).map(|port| port.container_port).next()
}

fn selector(service: &Service) -> Cow<'_, Labels> {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    selector.map_or_else(|| Cow::Owned(Labels::new()), Cow::Borrowed)
}

/// The events of a watch, as inputs.
fn events<K>(api: Api<K>, input: fn(watcher::Event<K>) -> Input) -> BoxStream<'static, Input>
where
    K: kube::Resource + Clone + fmt::Debug + DeserializeOwned + Send + 'static,
{
    let events = watcher(api, watcher::Config::default()).default_backoff();
    events.map_ok(input).filter_map(async |event| event.ok()).boxed()
}

/// Whether ordinary pods run on a node: they do not tolerate the control plane's taint.
fn takes_pods(node: &Node) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    !taints.into_iter().any(|taint| taint.key == k8s::names::LABEL_CONTROL_PLANE)
}

fn key(metadata: &kube::api::ObjectMeta) -> Key {
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}
