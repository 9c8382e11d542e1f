//! A Kubernetes API, a cloud, and the controllers between them.

use std::time::Duration;

use controllers::{Clock, Controllers, Options};
use kube::Client;
use kubernetes_simulator::Kubernetes;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cloud::TestCloud;

pub struct World {
    pub kubernetes: Kubernetes,
    pub cloud: TestCloud,
    pub stop: CancellationToken,
    pub running: Option<JoinHandle<()>>,
}

pub async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

pub fn client(kubernetes: &Kubernetes) -> Client {
    Client::new(kubernetes.router(), "default")
}

pub fn clock(kubernetes: &Kubernetes) -> Clock {
    Clock::following_tokio(kubernetes.now().as_duration().unsigned_abs())
}

impl World {
    /// A cluster with one ready node, without controllers.
    pub fn new() -> Self {
        let kubernetes = Kubernetes::new(kubernetes_simulator::Options::default());
        let cloud = TestCloud::new(kubernetes.clone());
        let world = Self { kubernetes, cloud, stop: CancellationToken::new(), running: None };
        world.node("n1", json!({}));
        world
    }

    /// Only the service controller, without the lease.
    pub fn services() -> Options {
        Options {
            controllers: Controllers { service: true, ..Controllers::NONE },
            resource_lease: false,
            ..Options::default()
        }
    }

    /// Only the two node controllers.
    pub fn nodes() -> Options {
        Options {
            controllers: Controllers { cloud_node: true, cloud_node_lifecycle: true, ..Controllers::NONE },
            ..Options::default()
        }
    }

    pub async fn start(&mut self, options: Options) {
        self.start_in(self.cloud.ports(), options).await;
    }

    /// Starts the controllers with a cloud that has further parts.
    pub async fn start_in(&mut self, cloud: controllers::Cloud, options: Options) {
        let options = Options { clock: clock(&self.kubernetes), ..options };
        let client = client(&self.kubernetes);
        let run = controllers::run(client, cloud, options, self.stop.clone());
        self.running = Some(tokio::spawn(async move { run.await.unwrap() }));
        seconds(1).await;
    }

    pub async fn stop(&mut self) {
        self.stop.cancel();
        self.running.take().unwrap().await.unwrap();
    }

    pub async fn restart(&mut self, options: Options) {
        self.stop().await;
        self.stop = CancellationToken::new();
        self.cloud = self.cloud.restarted();
        self.start(options).await;
    }

    pub fn service(&self, name: &str, change: Value) {
        let mut service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": 80}]},
        });
        merge(&mut service, &change);
        self.kubernetes.create(service).unwrap();
    }

    pub fn change(&self, name: &str, patch: Value) {
        self.kubernetes.merge("Service", "default", name, &patch).unwrap();
    }

    pub fn delete(&self, name: &str) {
        self.kubernetes.delete("Service", "default", name).unwrap();
    }

    pub fn get(&self, name: &str) -> Value {
        self.kubernetes.get("Service", "default", name).map_or(Value::Null, |object| object.value().clone())
    }

    pub fn addresses(&self, name: &str) -> Vec<String> {
        let service = self.get(name);
        let ingress = service["status"]["loadBalancer"]["ingress"].as_array().cloned().unwrap_or_default();
        ingress.iter().map(|entry| entry["ip"].as_str().unwrap().to_owned()).collect()
    }

    pub fn has_finalizer(&self, name: &str) -> bool {
        self.get(name)["metadata"]["finalizers"].to_string().contains(k8s::names::LOAD_BALANCER_FINALIZER)
    }

    /// A node that is ready and has a provider ID and an address, changed by `change`.
    pub fn node(&self, name: &str, change: Value) {
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name},
            "spec": {"providerID": format!("azure:///subscriptions/s/resourceGroups/rg/{name}")},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        merge(&mut node, &change);
        let status = json!({"status": node["status"].clone()});
        self.kubernetes.create(node).unwrap();
        self.kubernetes.merge_status("Node", "", name, &status).unwrap();
    }

    pub fn ready(&self, name: &str, status: &str) {
        let patch = json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        self.kubernetes.merge_status("Node", "", name, &patch).unwrap();
    }

    pub fn get_node(&self, name: &str) -> Value {
        self.kubernetes.get("Node", "", name).map_or(Value::Null, |object| object.value().clone())
    }

    /// Taints as `key=value:effect`, without those that Kubernetes itself sets by condition.
    pub fn taints(&self, name: &str) -> Vec<String> {
        let node = self.get_node(name);
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let text = |taint: &Value, member: &str| taint[member].as_str().unwrap_or_default().to_owned();
        (taints.iter())
            .map(|t| format!("{}={}:{}", text(t, "key"), text(t, "value"), text(t, "effect")))
            .filter(|taint| !taint.starts_with("node.kubernetes.io/not-ready"))
            .filter(|taint| !taint.starts_with("node.kubernetes.io/unreachable"))
            .collect()
    }

    pub fn set_taints(&self, name: &str, taints: Value) {
        self.kubernetes.merge("Node", "", name, &json!({"spec": {"taints": taints}})).unwrap();
    }

    /// Events on an object as `component reason type: message`, in the order in which they were first seen.
    pub fn events(&self, name: &str) -> Vec<String> {
        let mut events: Vec<_> = (self.kubernetes.list("Event").iter())
            .filter(|event| event["involvedObject"]["name"] == name)
            .map(|event| event.value().clone())
            .collect();
        events.sort_by_key(|event| event["metadata"]["name"].as_str().unwrap().to_owned());
        let text =
            |event: &Value, pointer: &str| event.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        (events.iter())
            .map(|event| {
                format!(
                    "{} {} {}: {}",
                    text(event, "/source/component"),
                    text(event, "/type"),
                    text(event, "/reason"),
                    text(event, "/message")
                )
            })
            .collect()
    }

    pub fn reasons(&self, name: &str) -> Vec<String> {
        self.events(name).iter().map(|e| e.split([' ', ':']).nth(2).unwrap().to_owned()).collect()
    }

    pub fn count_of(&self, name: &str, reason: &str) -> i64 {
        (self.kubernetes.list("Event").iter())
            .filter(|event| event["involvedObject"]["name"] == name && event["reason"] == reason)
            .map(|event| event["count"].as_i64().unwrap())
            .sum()
    }

    pub fn status_patches(&self) -> u64 {
        self.kubernetes.requests("patch", "services/status")
    }
}

pub fn merge(into: &mut Value, change: &Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change.clone(),
    }
}
