//! A whole cluster in one process.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arm::{Cloud, Credential};
use azure_simulator::Azure;
use azure_types::ResourceId;
use cloud::ClusterState;
use kube::Client;
use kubernetes_simulator::Kubernetes;
use planner::Cluster;
use provider::Provider;
use serde_json::{Value, json};
use simulated_cluster::{NodeAnswers, Shape, manifests};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::foreign_parts::ForeignParts;
use crate::kill_switch::KillSwitch;
use crate::replica::{Link, lead};
use crate::seed;
use crate::service::ServiceBuilder;
use crate::tap::Tap;

/// The default name of the cluster, and so of its load balancer.
pub(crate) const CLUSTER: &str = "kubernetes";

/// A world is at rest after this time without activity: longer than the longest backoff of Services, 300 s.
const MIN_QUIET: Duration = Duration::from_secs(330);

/// The time after which a world is assumed never to come to rest.
const MAX_UNREST: Duration = Duration::from_secs(6 * 3600);

/// The interval at which activity is checked.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// A simulated Azure and Kubernetes, stand-in kubelets, and the controllers between them.
pub struct World {
    /// Azure.
    pub azure: Azure,
    /// Kubernetes.
    pub kubernetes: Kubernetes,
    /// A client of Kubernetes.
    pub client: Client,
    /// The initial contents of Azure.
    pub shape: Shape,
    /// What the nodes answer to health probes.
    pub answers: NodeAnswers,
    pub(crate) options: controllers::Options,
    pub(crate) credential: Credential,
    pub(crate) running: Option<Running>,
    pub(crate) stand_ins: Option<DropGuard>,
    /// Changes to azure.json.
    pub(crate) config: Value,
    pub(crate) seed: u64,
    pub(crate) foreign: ForeignParts,
    /// The number of starts so far, if replicas elect a leader.
    pub(crate) replicas: Option<usize>,
    /// Leaders that were cut off.
    pub(crate) retired: Vec<Running>,
    /// The cluster's name.
    pub(crate) name: String,
    /// Sees the controllers' calls to Azure.
    pub(crate) tap: Option<Arc<dyn Tap>>,
}

/// One start of the controllers.
#[derive(Debug)]
pub(crate) struct Running {
    task: JoinHandle<()>,
    stop: CancellationToken,
    /// Cuts the connection to Kubernetes.
    pub(crate) link: CancellationToken,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("running", &self.running.is_some()).finish_non_exhaustive()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // [`crate::run`] prints the line itself.
        if std::thread::panicking() && !seed::is_running() {
            seed::show(&seed::reproduction(self.seed));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl World {
    /// Starts the controllers. They must not be running.
    pub fn start(&mut self) {
        self.start_with(&KillSwitch::never());
    }

    /// Starts the controllers with a switch on their transport to Azure.
    pub fn start_with(&mut self, switch: &KillSwitch) {
        assert!(self.running.is_none(), "the controllers are running");
        let stop = CancellationToken::new();
        let provider = self.provider_at(&self.azure, &switch.clone().with_tap(self.tap.clone()));
        let clock = self.clock();
        let options = controllers::Options { clock, ..self.options.clone() };
        let state = provider.state().clone();
        let mut cloud = controllers::Cloud::of(provider.clone(), state).with_node_ranges(provider.clone());
        if self.has_routes() {
            cloud = cloud.with_routes(provider);
        }
        let link = CancellationToken::new();
        let client = Link::client(self.kubernetes.router(), link.clone());
        let run = {
            let client = client.clone();
            move |stop| async move {
                controllers::run(client, cloud, options, stop).await.expect("the options are sound");
            }
        };
        let task = if let Some(number) = &mut self.replicas {
            *number += 1;
            let identity = format!("replica-{number}");
            tokio::spawn(lead(client, identity, self.clock(), stop.clone(), run))
        } else {
            tokio::spawn(run(stop.clone()))
        };
        self.running = Some(Running { task, stop, link });
    }

    /// Ends the kubelets and all other stand-ins for good, so that a long time passes in few steps. Nodes keep their
    /// status: nothing is left that would miss a heartbeat.
    pub fn end_stand_ins(&mut self) {
        self.stand_ins = None;
    }

    /// The clock of the simulated Kubernetes, as the controllers read it.
    pub(crate) fn clock(&self) -> arm::Clock {
        let since_1970 = Duration::try_from(self.kubernetes.now().as_duration()).expect("it is after 1970");
        arm::Clock::following_tokio(since_1970)
    }

    /// azure.json as the controllers have it.
    pub fn azure_json(&self) -> Value {
        let mut config = self.shape.azure_json("", "secret");
        json_patch::merge(&mut config, &self.config);
        config
    }

    /// Merges a patch into azure.json, which the controllers read when they start.
    pub fn patch_config(&mut self, patch: &Value) {
        json_patch::merge(&mut self.config, patch);
    }

    /// The cluster that plans are for.
    pub fn cluster(&self) -> Cluster {
        let config = cloud_config::CloudConfig::parse(&self.azure_json().to_string());
        let region_zones = self.azure.options().zones.clone();
        Cluster { config: config.expect("azure.json is sound"), name: self.name.clone(), region_zones }
    }

    /// Whether the controllers write routes.
    pub(crate) fn has_routes(&self) -> bool {
        self.cluster().route_table_id().is_some()
    }

    /// A new client of Azure with the controllers' credential.
    pub(crate) fn client_at(&self, azure: &Azure, switch: &KillSwitch) -> arm::Client {
        let cloud = Cloud::built_in(&cloud_config::PUBLIC).expect("the public cloud is known");
        arm::Client::builder(cloud, switch.transport(azure), self.credential.clone())
            .configure(&self.cluster().config)
            .clock(self.clock())
            .build()
    }

    /// A new provider, created as the program does it.
    pub(crate) fn provider_at(&self, azure: &Azure, switch: &KillSwitch) -> Provider {
        let client = self.client_at(azure, switch);
        let (clock, cluster) = (self.clock(), self.cluster());
        let ranges = self.options.ranges.as_ref().map(|ranges| ranges.cluster.clone());
        let cluster_ranges = ranges.unwrap_or_default();
        let options = provider::Options { clock, cluster_ranges, ..Default::default() };
        Provider::new(cluster, client, ClusterState::default(), options)
    }

    /// Kills the controllers, as `kill -9` would: nothing is finished, released or sent.
    pub async fn kill(&mut self) {
        let mut running = self.running.take().expect("the controllers are running");
        running.task.abort();
        // The error says that the task was aborted.
        let ended = (&mut running.task).await;
        assert!(ended.is_err_and(|error| error.is_cancelled()), "the controllers had ended by themselves");
    }

    /// Stops the controllers in an orderly way.
    pub async fn stop(&mut self) {
        let mut running = self.running.take().expect("the controllers are running");
        running.stop.cancel();
        (&mut running.task).await.expect("the controllers end well");
    }

    /// Kills the controllers and starts new ones, without any state.
    pub async fn restart(&mut self) {
        self.kill().await;
        self.start();
    }

    /// Waits on virtual time until there is no activity: no write to Azure, no running operation, no change of a
    /// Service or of the set of nodes, for longer than the longest backoff.
    pub async fn come_to_rest(&self) {
        let begin = Instant::now();
        let mut quiet_since = begin;
        let mut before = self.signs();
        while quiet_since.elapsed() < MIN_QUIET {
            assert!(begin.elapsed() < MAX_UNREST, "the world does not come to rest: {before:?}");
            if let Some(running) = &self.running {
                assert!(!running.task.is_finished(), "the controllers have ended");
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
            let now = self.signs();
            if now != before || self.azure.running_operations() > 0 {
                (before, quiet_since) = (now, Instant::now());
            }
        }
    }

    /// Values that change with every relevant activity.
    fn signs(&self) -> (u64, u64, Vec<u64>, usize) {
        let counts = self.azure.journal_after(u64::MAX).counts;
        let services = self.kubernetes.list("Service").iter().map(|service| service.version()).collect();
        (counts.writes, counts.deletes, services, self.kubernetes.list("Node").len())
    }

    /// Waits on virtual time until a condition holds, checking every second; fails after `patience`.
    pub async fn until(&self, what: &str, patience: Duration, mut holds: impl FnMut(&Self) -> bool) {
        let begin = Instant::now();
        while !holds(self) {
            assert!(begin.elapsed() < patience, "not within {patience:?}: {what}");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Creates a Service, and its namespace if it does not exist.
    pub fn create(&self, service: ServiceBuilder) {
        self.create_in_namespace(service.manifest());
    }

    /// Creates an object, and its namespace if it does not exist.
    pub fn create_in_namespace(&self, object: Value) {
        self.create_namespace(object["metadata"]["namespace"].as_str().expect("it has a namespace"));
        self.kubernetes.create(object).expect("the object is sound");
    }

    /// Creates a namespace if it does not exist.
    pub fn create_namespace(&self, name: &str) {
        if self.kubernetes.get("Namespace", "", name).is_none() {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            self.kubernetes.create(namespace).expect("the namespace can be created");
        }
    }

    /// Applies manifests, as `kubectl apply --server-side` does.
    pub async fn apply(&self, text: &str) {
        let objects = manifests::read("the manifests", text).expect("they are YAML");
        manifests::apply(&self.client, &objects).await.expect("the API accepts them");
    }

    /// Merges a patch into a Service.
    pub fn change(&self, key: &str, patch: &Value) {
        let (namespace, name) = parts(key);
        self.kubernetes.merge("Service", namespace, name, patch).expect("the Service can be changed");
    }

    /// Confines a Service's ready pods to these nodes: removes its selector and writes its only EndpointSlice by hand.
    pub fn confine_pods(&self, key: &str, nodes: &[String]) {
        let (namespace, name) = parts(key);
        self.change(key, &json!({"spec": {"selector": null}}));
        let endpoints = nodes.iter().enumerate().map(|(number, node)| {
            json!({"addresses": [format!("10.244.0.{}", number + 1)], "nodeName": node,
                "conditions": {"ready": true}})
        });
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"namespace": namespace, "name": format!("{name}-by-hand"),
                "labels": {"kubernetes.io/service-name": name}},
            "endpoints": endpoints.collect::<Vec<_>>(),
            "ports": [],
        });
        self.kubernetes.create(slice).expect("the slice is sound");
    }

    /// Puts a resource into Azure as another owner would. It must stay unchanged, which [`Self::check`] verifies.
    pub fn put_foreign(&self, id: &ResourceId, document: Value) {
        let before = self.azure.document(id).unwrap_or_default();
        self.azure.put(id, document).expect("Azure takes it");
        self.remember_foreign(id, &before);
    }

    /// Changes a resource in Azure as another owner would. The additions must stay unchanged.
    pub fn edit_foreign(&self, id: &ResourceId, edit: impl FnOnce(&mut Value)) {
        let before = self.azure.document(id).unwrap_or_default();
        self.azure.edit(id, edit).expect("Azure takes it");
        self.remember_foreign(id, &before);
    }

    /// Like [`Self::edit_foreign`], if Azure may refuse it, for example because an operation is running. Returns
    /// whether it was accepted.
    pub fn try_edit_foreign(&self, id: &ResourceId, edit: impl FnOnce(&mut Value)) -> bool {
        let before = self.azure.document(id).unwrap_or_default();
        let taken = self.azure.edit(id, edit).is_ok();
        if taken {
            self.remember_foreign(id, &before);
        }
        taken
    }

    fn remember_foreign(&self, id: &ResourceId, before: &Value) {
        let after = self.azure.document(id).unwrap_or_default();
        self.foreign.remember(id, before, &after);
    }

    /// Whether an event says that a Service cannot be served.
    pub fn is_refused(&self, key: &str) -> bool {
        self.events(key).iter().any(|event| event.starts_with("Warning SyncLoadBalancerFailed:"))
    }

    /// The nodes that load balancers may send traffic to: their machines run, and they are not excluded.
    pub fn serving_nodes(&self) -> BTreeSet<String> {
        let kinds = [crate::types::INSTANCES, crate::types::MACHINES];
        let machines = kinds.into_iter().flat_map(|kind| self.azure.documents_of_type(kind));
        let running: BTreeSet<String> =
            machines.filter_map(|machine| simulated_cluster::running_host(&machine)).collect();
        let nodes = self.kubernetes.list("Node");
        let serving = nodes.iter().filter(|node| {
            let labels = &node["metadata"]["labels"];
            let excluded = &labels["node.kubernetes.io/exclude-from-external-load-balancers"];
            (excluded.is_null() || excluded == "false")
                && running.contains(node.name())
                && !self.taints(node.name()).iter().any(|key| key == "ToBeDeletedByClusterAutoscaler")
                && node["spec"]["providerID"].as_str().is_some_and(|id| !id.is_empty())
        });
        serving.map(|node| node.name().to_owned()).collect()
    }

    /// Deletes a Service.
    pub fn delete(&self, key: &str) {
        let (namespace, name) = parts(key);
        self.kubernetes.delete("Service", namespace, name).expect("the Service is there");
    }

    /// The current Service; null if it does not exist.
    pub fn service(&self, key: &str) -> Value {
        let (namespace, name) = parts(key);
        self.kubernetes.get("Service", namespace, name).map_or(Value::Null, |object| object.value().clone())
    }

    /// The addresses of a Service.
    pub fn addresses(&self, key: &str) -> Vec<IpAddr> {
        let service = self.service(key);
        let ingress = service.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
        let ips = ingress.into_iter().flatten().filter_map(|entry| entry["ip"].as_str());
        ips.map(|ip| ip.parse().expect("a status holds addresses")).collect()
    }

    /// The one address of a Service.
    pub fn address(&self, key: &str) -> IpAddr {
        match self.addresses(key)[..] {
            [address] => address,
            ref others => panic!("{key} has the addresses {others:?}; its events: {:#?}", self.events(key)),
        }
    }

    /// The events on an object in the order of their names, as `Type Reason: message`. `key` is
    /// `namespace/name`, or a Node's name alone.
    pub fn events(&self, key: &str) -> Vec<String> {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let events = self.kubernetes.list("Event");
        let mine = events.iter().filter(|event| {
            let object = &event["involvedObject"];
            object["name"] == name && object["namespace"].as_str().unwrap_or_default() == namespace
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        mine.map(|e| format!("{} {}: {}", text(&e["type"]), text(&e["reason"]), text(&e["message"])))
            .collect()
    }

    /// The current Node; null if it does not exist.
    pub fn node(&self, name: &str) -> Value {
        self.kubernetes.get("Node", "", name).map_or(Value::Null, |object| object.value().clone())
    }

    /// The names of all Nodes, in order.
    pub fn node_names(&self) -> Vec<String> {
        self.kubernetes.list("Node").iter().map(|node| node.name().to_owned()).collect()
    }

    /// The keys of a Node's taints.
    pub fn taints(&self, name: &str) -> Vec<String> {
        let node = self.node(name);
        let taints = node.pointer("/spec/taints").and_then(Value::as_array);
        let keys = taints.into_iter().flatten().filter_map(|taint| taint["key"].as_str());
        keys.map(str::to_owned).collect()
    }

    /// The id of a network resource of the cluster's group, by its type's last part and its name.
    pub fn network(&self, kind: &str, name: &str) -> ResourceId {
        self.shape.group().resource("Microsoft.Network", kind, name)
    }

    /// The id of the cluster's public load balancer.
    pub fn load_balancer(&self) -> ResourceId {
        self.network("loadBalancers", &self.name)
    }

    /// The id of the nodes' subnet.
    pub fn node_subnet(&self) -> ResourceId {
        self.shape.network().child("subnets", &self.shape.subnet)
    }

    /// The id of the cluster's internal load balancer.
    pub fn internal_load_balancer(&self) -> ResourceId {
        self.network("loadBalancers", &format!("{}-internal", self.name))
    }

    /// The id of the security group that guards the nodes' subnet.
    pub fn security_group(&self) -> ResourceId {
        self.shape.security_group()
    }

    /// The id of the first scale set.
    pub fn scale_set(&self) -> ResourceId {
        let pool = self.shape.pools.first().expect("there is a pool");
        self.shape.scale_set(&pool.name)
    }

    /// A machine's id, by its node's name.
    pub fn machine(&self, node: &str) -> ResourceId {
        let kinds = [crate::types::INSTANCES, crate::types::MACHINES];
        let machines = kinds.map(|kind| self.azure.documents_of_type(kind));
        let machine = machines.iter().flatten().find(|machine| {
            let name = machine.pointer("/properties/osProfile/computerName").and_then(Value::as_str);
            name.is_some_and(|name| name.eq_ignore_ascii_case(node))
        });
        let id = machine.and_then(|machine| machine["id"].as_str()).expect("the machine is there");
        id.parse().expect("documents have ids")
    }
}

fn parts(key: &str) -> (&str, &str) {
    key.split_once('/').expect("a Service is called namespace/name")
}
