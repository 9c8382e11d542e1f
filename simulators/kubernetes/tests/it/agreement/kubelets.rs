//! The stand-ins work at either server.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use stand_ins::answers::node_answers;
use stand_ins::{EndpointSlices, Kubelets, Machine, Machines, NodeMonitor, WallClock};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::agreement::caller::{Caller, MERGE, service};

/// Machines that tests switch on and off.
struct Rack {
    machines: watch::Sender<Vec<Machine>>,
    generation: watch::Sender<u64>,
}

impl Rack {
    fn new(machines: Vec<Machine>) -> Arc<Rack> {
        Arc::new(Rack { machines: watch::Sender::new(machines), generation: watch::Sender::new(0) })
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Machine>)) {
        self.machines.send_modify(change);
        self.generation.send_modify(|generation| *generation += 1);
    }
}

impl Machines for Rack {
    fn machines(&self) -> Vec<Machine> {
        self.machines.borrow().clone()
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }
}

fn clock() -> WallClock {
    let start = tokio::time::Instant::now();
    let epoch: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    Arc::new(move || epoch + jiff::SignedDuration::try_from(start.elapsed()).unwrap())
}

async fn until(caller: &Caller, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let seen = async {
        loop {
            let answer = caller.get(path).await;
            if holds(&answer.body) {
                return answer.body;
            }
            sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(Duration::from_secs(90), seen).await.unwrap_or_else(|_| panic!("{path} never got there"))
}

fn ready(node: &Value) -> Option<&str> {
    let conditions = node["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == "Ready")?["status"].as_str()
}

fn taints(node: &Value) -> Vec<&str> {
    let taints = node["spec"]["taints"].as_array().map_or(&[][..], Vec::as_slice);
    taints.iter().map(|taint| taint["key"].as_str().unwrap()).collect()
}

pub async fn a_machine_becomes_a_node(caller: Caller) {
    let name = caller.namespace.clone();
    let rack = Rack::new(vec![Machine::new(&name, "10.1.0.4".parse().unwrap())]);
    let shutdown = CancellationToken::new();
    let machines: Arc<dyn Machines> = rack.clone();
    let kubelets = Kubelets::spawn(caller.client.clone(), machines, clock(), shutdown.clone());
    let monitor = NodeMonitor::spawn(caller.client.clone(), clock(), shutdown.clone());
    let at = format!("/api/v1/nodes/{name}");
    let uninitialized = "node.cloudprovider.kubernetes.io/uninitialized";
    let node =
        until(&caller, &at, |node| ready(node) == Some("True") && taints(node) == [uninitialized]).await;
    assert_eq!(
        node["spec"]["taints"],
        json!([{"key": uninitialized, "value": "true", "effect": "NoSchedule"}])
    );
    assert_eq!(node["spec"].get("providerID"), None);
    assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], name.as_str());
    assert_eq!(
        node["status"]["addresses"],
        json!([{"type": "InternalIP", "address": "10.1.0.4"}, {"type": "Hostname", "address": name}])
    );
    assert_eq!(node["status"]["capacity"]["cpu"], "2");
    let lease = format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}");
    let first = until(&caller, &lease, |lease| lease["spec"]["renewTime"].is_string()).await;
    assert_eq!(first["spec"]["holderIdentity"], name.as_str());
    assert_eq!(first["spec"]["leaseDurationSeconds"], 40);
    let renewed = first["spec"]["renewTime"].clone();
    until(&caller, &lease, |lease| lease["spec"]["renewTime"] != renewed).await;
    shutdown.cancel();
    kubelets.stopped().await;
    monitor.stopped().await;
}

pub async fn a_silent_node_is_unknown(caller: Caller) {
    let name = caller.namespace.clone();
    let rack = Rack::new(vec![Machine::new(&name, "10.1.0.5".parse().unwrap())]);
    let shutdown = CancellationToken::new();
    let machines: Arc<dyn Machines> = rack.clone();
    let kubelets = Kubelets::spawn(caller.client.clone(), machines, clock(), shutdown.clone());
    let monitor = NodeMonitor::spawn(caller.client.clone(), clock(), shutdown.clone());
    let at = format!("/api/v1/nodes/{name}");
    until(&caller, &at, |node| ready(node) == Some("True") && taints(node).len() == 1).await;
    // What the cloud provider does.
    caller.patch(&at, MERGE, &json!({"spec": {"taints": null}})).await.ok(200);

    rack.change(|machines| machines[0].running = false);
    let silent = until(&caller, &at, |node| ready(node) == Some("Unknown") && taints(node).len() == 2).await;
    let unreachable = "node.kubernetes.io/unreachable";
    assert_eq!(
        silent["spec"]["taints"],
        json!([{"key": unreachable, "effect": "NoSchedule"}, {"key": unreachable, "effect": "NoExecute"}])
    );
    rack.change(|machines| machines[0].running = true);
    let back = until(&caller, &at, |node| ready(node) == Some("True") && taints(node).is_empty()).await;
    assert_eq!(back["metadata"]["uid"], silent["metadata"]["uid"], "the same node");
    shutdown.cancel();
    kubelets.stopped().await;
    monitor.stopped().await;
}

pub async fn pretend_pods_answer(caller: Caller) {
    let name = caller.namespace.clone();
    let other = format!("{name}-other");
    let address = "10.1.0.6".parse().unwrap();
    let rack = Rack::new(vec![Machine::new(&name, address), Machine::new(&other, address)]);
    let shutdown = CancellationToken::new();
    let kubelets = Kubelets::spawn(caller.client.clone(), rack, clock(), shutdown.clone());
    let home = name.clone();
    let placement = Arc::new(move |_: &str, _: &str, node: &str| if node == home { 2 } else { 0 });
    let slices = EndpointSlices::spawn(caller.client.clone(), placement, shutdown.clone());

    let spec = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "selector": {"app": "web"},
        "ports": [{"port": 80, "name": "http", "targetPort": 8080}]});
    let object = caller.post(&caller.at("services"), &service("web", spec)).await.ok(201);
    let port = |at: &str| u16::try_from(object.pointer(at).unwrap().as_u64().unwrap()).unwrap();
    let (node_port, health) = (port("/spec/ports/0/nodePort"), port("/spec/healthCheckNodePort"));
    let list = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{name}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dweb"
    );
    let made = until(&caller, &list, |list| {
        list.pointer("/items/0/endpoints/1/conditions/ready") == Some(&json!(true))
    })
    .await;
    let slice = &made["items"][0];
    assert_eq!(slice["addressType"], "IPv4");
    assert_eq!(slice["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
    assert_eq!(slice["endpoints"][0]["nodeName"], name.as_str());
    assert_ne!(slice["endpoints"][0]["addresses"], slice["endpoints"][1]["addresses"]);

    let answers = |node: &str, port: u16, path: Option<&str>| {
        node_answers([&object], made["items"].as_array().unwrap(), node, port, path)
    };
    assert!(answers(&name, node_port, None) && !answers(&other, node_port, None));
    assert!(answers(&name, health, Some("/healthz")) && !answers(&other, health, Some("/healthz")));

    caller.delete(&format!("{}/web", caller.at("services"))).await.ok(200);
    until(&caller, &list, |list| list["items"].as_array().is_some_and(Vec::is_empty)).await;
    shutdown.cancel();
    kubelets.stopped().await;
    slices.stopped().await;
}
