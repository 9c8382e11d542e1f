//! EndpointSlices of pretend pods: a stand-in for the scheduler, the pods and the EndpointSlice
//! controller together.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s::api::api::core::v1::{Node, Service};
use k8s::api::api::discovery::v1::EndpointSlice;
use k8s::api::apimachinery::pkg::util::intstr::IntOrString;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::heartbeat::is;

/// How many ready-made pods of a Service (namespace, name) a node runs.
pub type PodPlacement = Arc<dyn Fn(&str, &str, &str) -> usize + Send + Sync>;

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const OURS: &str = "stand-in";
/// `--max-endpoints-per-slice`.
const MAX_ENDPOINTS_PER_SLICE: usize = 100;
/// Changes within this time are written together.
const BATCH_INTERVAL: Duration = Duration::from_millis(100);
/// How often the placement is asked again.
const PLACEMENT_INTERVAL: Duration = Duration::from_secs(5);

/// Keeps EndpointSlices (`discovery.k8s.io/v1`) for every Service with a selector.
pub struct EndpointSlices {
    task: JoinHandle<()>,
}

impl fmt::Debug for EndpointSlices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointSlices").finish_non_exhaustive()
    }
}

impl EndpointSlices {
    /// Runs until `shutdown`. Each node runs as many pods of each Service as `placement` says; they
    /// are ready while their node is. A changed placement is noticed within 5 s.
    pub fn spawn(
        client: kube::Client,
        placement: PodPlacement,
        shutdown: CancellationToken,
    ) -> EndpointSlices {
        let maker = Maker {
            client,
            placement,
            services: BTreeMap::new(),
            nodes: BTreeMap::new(),
            listed: (false, false),
            written: None,
        };
        EndpointSlices {
            task: tokio::spawn(async move {
                shutdown.run_until_cancelled(maker.run()).await;
            }),
        }
    }

    /// As [`EndpointSlices::spawn`], with the same number of pods on every node.
    pub fn spawn_evenly(
        client: kube::Client,
        per_node: usize,
        shutdown: CancellationToken,
    ) -> EndpointSlices {
        EndpointSlices::spawn(client, Arc::new(move |_, _, _| per_node), shutdown)
    }

    /// Waits until it has ended, after the shutdown that was given to [`EndpointSlices::spawn`].
    pub async fn stopped(self) {
        // The task does not panic, and nobody aborts it.
        let _ = self.task.await;
    }
}

#[allow(clippy::large_enum_variant, reason = "one at a time, and used up at once")]
enum Input {
    Service(watcher::Event<Service>),
    Node(watcher::Event<Node>),
    Tick,
}

/// Namespace and name.
type Key = (String, String);

struct Maker {
    client: kube::Client,
    placement: PodPlacement,
    services: BTreeMap<Key, Service>,
    /// Whether each node is ready.
    nodes: BTreeMap<String, bool>,
    /// Whether the Services and the Nodes are all known.
    listed: (bool, bool),
    /// What the API has of ours; `None` when that must be asked.
    written: Option<BTreeMap<Key, Value>>,
}

impl Maker {
    async fn run(mut self) {
        let services: Api<Service> = Api::all(self.client.clone());
        let nodes: Api<Node> = Api::all(self.client.clone());
        let services = watcher(services, watcher::Config::default())
            .default_backoff()
            .map_ok(Input::Service)
            .filter_map(async |event| event.ok());
        let nodes = watcher(nodes, watcher::Config::default())
            .default_backoff()
            .map_ok(Input::Node)
            .filter_map(async |event| event.ok());
        let mut period = interval(PLACEMENT_INTERVAL);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ticks = stream::poll_fn(move |context| period.poll_tick(context).map(|_| Some(Input::Tick)));
        let mut inputs = pin!(stream::select(ticks, stream::select(services, nodes)));
        while let Some(first) = inputs.next().await {
            if self.take(first) {
                while let Ok(Some(more)) = timeout(BATCH_INTERVAL, inputs.next()).await {
                    self.take(more);
                }
            }
            if self.listed == (true, true)
                && let Err(error) = self.write().await
            {
                tracing::debug!(%error, "writing endpoint slices failed; the next round tries again");
                self.written = None;
            }
        }
    }

    /// Remembers what was seen; whether it was news.
    fn take(&mut self, input: Input) -> bool {
        use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
        match input {
            Input::Tick => return false,
            Input::Service(Init) => {
                self.services.clear();
                self.listed.0 = false;
            }
            Input::Service(InitDone) => self.listed.0 = true,
            Input::Service(Apply(service) | InitApply(service)) => {
                let selects = service.spec.as_ref().is_some_and(|spec| {
                    spec.selector.as_ref().is_some_and(|selector| !selector.is_empty())
                        && spec.type_.as_deref() != Some("ExternalName")
                });
                if selects && service.metadata.deletion_timestamp.is_none() {
                    self.services.insert(key(&service.metadata), service);
                } else {
                    self.services.remove(&key(&service.metadata));
                }
            }
            Input::Service(Delete(service)) => {
                self.services.remove(&key(&service.metadata));
            }
            Input::Node(Init) => {
                self.nodes.clear();
                self.listed.1 = false;
            }
            Input::Node(InitDone) => self.listed.1 = true,
            Input::Node(Apply(node) | InitApply(node)) if !takes_pods(&node) => {
                return self.nodes.remove(&node.metadata.name.unwrap_or_default()).is_some();
            }
            Input::Node(Apply(node) | InitApply(node)) => {
                let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
                let ready = conditions
                    .iter()
                    .any(|condition| condition.type_ == "Ready" && condition.status == "True");
                let name = node.metadata.name.unwrap_or_default();
                return self.nodes.insert(name, ready) != Some(ready);
            }
            Input::Node(Delete(node)) => {
                self.nodes.remove(&node.metadata.name.unwrap_or_default());
            }
        }
        true
    }

    async fn write(&mut self) -> Result<(), kube::Error> {
        let mut written = match self.written.take() {
            Some(written) => written,
            None => self.read().await?,
        };
        let wanted: BTreeMap<Key, Value> = self
            .services
            .iter()
            .flat_map(|((namespace, name), service)| self.slices(namespace, name, service))
            .collect();
        let stray: Vec<Key> = written.keys().filter(|key| !wanted.contains_key(*key)).cloned().collect();
        for key in stray {
            match self.api(&key.0).delete(&key.1, &DeleteParams::default()).await {
                Err(error) if !is(&error, 404) => return Err(error),
                _ => written.remove(&key),
            };
        }
        for (key, slice) in wanted {
            match written.get(&key) {
                Some(same) if *same == slice => continue,
                Some(_) => {
                    let patch =
                        Patch::Merge(json!({"endpoints": slice["endpoints"], "ports": slice["ports"]}));
                    self.api(&key.0).patch(&key.1, &PatchParams::default(), &patch).await?;
                }
                None => {
                    let object = serde_json::from_value(slice.clone()).map_err(kube::Error::SerdeError)?;
                    self.api(&key.0).create(&PostParams::default(), &object).await?;
                }
            }
            written.insert(key, slice);
        }
        self.written = Some(written);
        Ok(())
    }

    fn api(&self, namespace: &str) -> Api<EndpointSlice> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Our slices as they are; what differs in any way is written again.
    async fn read(&self) -> Result<BTreeMap<Key, Value>, kube::Error> {
        let all: Api<EndpointSlice> = Api::all(self.client.clone());
        let ours = all.list(&ListParams::default().labels(&format!("{MANAGED_BY}={OURS}"))).await?;
        Ok(ours.items.into_iter().map(|slice| (key(&slice.metadata), Value::Null)).collect())
    }

    fn slices(&self, namespace: &str, name: &str, service: &Service) -> Vec<(Key, Value)> {
        let ports: Vec<Value> = service
            .spec
            .iter()
            .flat_map(|spec| spec.ports.iter().flatten())
            .map(|port| {
                let target = match port.target_port {
                    Some(IntOrString::Int(target)) if target > 0 => target,
                    // Pretend pods name their ports so that this is right.
                    _ => port.port,
                };
                json!({
                    "name": port.name.as_deref().unwrap_or_default(),
                    "port": target,
                    "protocol": port.protocol.as_deref().unwrap_or("TCP"),
                })
            })
            .collect();
        let mut endpoints = vec![];
        for (node, ready) in &self.nodes {
            for pod in 0..(self.placement)(namespace, name, node) {
                endpoints.push(json!({
                    "addresses": [pod_address(namespace, name, node, pod)],
                    "conditions": {"ready": ready, "serving": ready, "terminating": false},
                    "nodeName": node,
                }));
            }
        }
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
                ((namespace.to_owned(), slice), document)
            })
            .collect()
    }
}

/// Whether ordinary pods run there: they do not tolerate the control plane's taint.
fn takes_pods(node: &Node) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    !taints.into_iter().any(|taint| taint.key == k8s::names::LABEL_CONTROL_PLANE)
}

fn key(metadata: &kube::api::ObjectMeta) -> Key {
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

/// An address in 10.128.0.0/9 that stays the pod's own, whatever other nodes and pods there are.
fn pod_address(namespace: &str, service: &str, node: &str, pod: usize) -> Ipv4Addr {
    // FNV-1a, 32 bits.
    let hash = format!("{namespace}/{service}/{node}/{pod}")
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    Ipv4Addr::from(0x0a80_0000 | (hash & 0x007f_ffff))
}
