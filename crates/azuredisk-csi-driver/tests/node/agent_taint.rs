//! The taint of a node whose driver is not ready (section 3.12, trap 3, of the specification of the drivers).

use std::time::Duration;

use azuredisk_csi_driver::node::kubernetes::{TaintOptions, remove_agent_taint};
use kube::Client;
use kubernetes_simulator::{Fault, Kubernetes};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const DRIVER: &str = "disk.csi.azure.com";
const TAINT: &str = "disk.csi.azure.com/agent-not-ready";

struct World {
    kubernetes: Kubernetes,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn taints() -> Value {
    json!({ "spec": { "taints": [
        { "key": "mine", "value": "x", "effect": "NoExecute" },
        { "key": TAINT, "effect": "NoSchedule" },
    ] } })
}

impl World {
    fn start(options: TaintOptions) -> Self {
        let kubernetes = Kubernetes::new(kubernetes_simulator::Options::default());
        let mut node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node-1" } });
        node["spec"] = taints()["spec"].clone();
        kubernetes.create(node).unwrap();
        let (client, stop) = (Client::new(kubernetes.router(), "default"), CancellationToken::new());
        let stopped = stop.clone();
        let running =
            tokio::spawn(async move { remove_agent_taint(client, "node-1", DRIVER, options, stopped).await });
        Self { kubernetes, stop, running }
    }

    /// What the kubelet writes when it registers the driver.
    fn register(&self, count: Option<i64>) {
        let allocatable = count.map(|count| json!({ "count": count }));
        let driver =
            json!({ "name": DRIVER, "nodeID": "node-1", "topologyKeys": [], "allocatable": allocatable });
        let node = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
            "metadata": { "name": "node-1" }, "spec": { "drivers": [driver] },
        });
        let _ = self.kubernetes.delete("CSINode", "", "node-1");
        self.kubernetes.create(node).unwrap();
    }

    fn keys(&self) -> Vec<String> {
        let node = self.kubernetes.get("Node", "", "node-1").unwrap();
        let taints =
            node.value().pointer("/spec/taints").and_then(Value::as_array).cloned().unwrap_or_default();
        let keys = taints.iter().map(|taint| taint["key"].as_str().unwrap().to_owned());
        // No kubelet runs here.
        keys.filter(|key| key != "node.kubernetes.io/not-ready").collect()
    }
}

#[tokio::test(start_paused = true)]
async fn the_taint_goes_once_the_scheduler_knows_the_limit() {
    let world = World::start(TaintOptions::default());
    world.register(None);
    seconds(29).await;
    world.register(Some(4));
    assert_eq!(world.keys(), ["mine", TAINT], "not before the delay");
    seconds(2).await;
    assert_eq!(world.keys(), ["mine"], "another program's taint stays");
    world.stop.cancel();
    world.running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_driver_without_a_count_keeps_the_taint() {
    let world = World::start(TaintOptions::default());
    world.register(None);
    seconds(3_600).await;
    assert_eq!(world.keys(), ["mine", TAINT]);
    world.register(Some(4));
    seconds(361).await;
    assert_eq!(world.keys(), ["mine"]);
}

/// Section 3.12, trap 3, FIX: no error ends the removal, and the taint may come back.
#[tokio::test(start_paused = true)]
async fn errors_do_not_end_the_removal() {
    let world = World::start(TaintOptions::default());
    world.register(Some(4));
    for status in [503, 403, 404, 409] {
        world.kubernetes.inject(Fault::status(status).resource("nodes").times(1_000));
        seconds(1_000).await;
        assert_eq!(world.keys(), ["mine", TAINT], "{status}");
        world.kubernetes.clear_faults();
        world.kubernetes.inject(Fault::status(status).resource("csinodes").times(1_000));
        seconds(1_000).await;
        assert_eq!(world.keys(), ["mine", TAINT], "{status}");
        world.kubernetes.clear_faults();
        seconds(361).await;
        assert_eq!(world.keys(), ["mine"], "{status}");
        world.kubernetes.merge("Node", "", "node-1", &taints()).unwrap();
    }
    assert!(!world.running.is_finished());
}

/// Another program writes the node at the same time: its taint is not lost.
#[tokio::test(start_paused = true)]
async fn a_lost_race_loses_no_taint() {
    let world = World::start(TaintOptions::default());
    world.register(Some(4));
    let change = json!({ "spec": { "taints": [
        { "key": "other", "effect": "NoSchedule" }, { "key": TAINT, "effect": "NoSchedule" },
    ] } });
    world.kubernetes.inject(
        Fault::new(kubernetes_simulator::FaultAction::Interfere { patch: change })
            .verb("patch")
            .resource("nodes"),
    );
    seconds(60).await;
    assert_eq!(world.keys(), ["other"]);
}

#[tokio::test(start_paused = true)]
async fn the_removal_ends_where_it_is_not_to_go_on() {
    let world = World::start(TaintOptions { never_stops: false, ..TaintOptions::default() });
    seconds(700).await;
    assert!(world.running.is_finished());
    assert_eq!(world.keys(), ["mine", TAINT]);
}
