//! The controller of one node.

use std::sync::Arc;
use std::time::Duration;

use cloud::Existence::{Present, Unknown};
use controllers::{AgentOptions, run_agent};
use k8s::{NodeAddress, names};
use kubernetes_simulator::Fault;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::cloud::{Call, machine};
use crate::world::{World, client, clock, seconds};

fn new_node(labels: Value) -> Value {
    json!({"metadata": {"labels": labels}, "spec": {"providerID": "", "taints": [
        {"key": names::TAINT_UNINITIALIZED, "value": "true", "effect": "NoSchedule"},
    ]}})
}

fn options(world: &World) -> AgentOptions {
    AgentOptions {
        node: "n2".into(),
        node_status_update_frequency: Duration::from_secs(300),
        older_labels: false,
        wait_routes: false,
        events: None,
        clock: clock(&world.kubernetes),
    }
}

async fn start(world: &World, options: AgentOptions) -> CancellationToken {
    let stop = world.stop.clone();
    let run = run_agent(client(&world.kubernetes), Arc::new(world.cloud.clone()), options, stop.clone());
    tokio::spawn(async move { run.await.unwrap() });
    seconds(1).await;
    stop
}

/// NODE-115, NODE-116
#[tokio::test(start_paused = true)]
async fn a_node_initialises_itself_and_what_it_says_replaces_what_was_there() {
    const LABELS: [(&str, &str, &str); 3] = [
        (names::LABEL_INSTANCE_TYPE, names::LABEL_INSTANCE_TYPE_BETA, "Standard_D2s_v5"),
        (names::LABEL_ZONE, names::LABEL_ZONE_BETA, "eastus-1"),
        (names::LABEL_REGION, names::LABEL_REGION_BETA, "westus2"),
    ];
    for older_labels in [false, true] {
        let world = World::new();
        world.cloud.set_instance("n2", Present(machine("n2", "eastus-1", &["10.0.0.5"])));
        start(&world, AgentOptions { older_labels, ..options(&world) }).await;
        world.node("n2", new_node(json!({names::LABEL_ZONE: "wrong", "mine": "kept"})));
        // Another node.
        world.node("n3", new_node(json!({})));
        seconds(1).await;
        let node = world.get_node("n2");
        assert_eq!(world.taints("n2"), Vec::<String>::new());
        assert_eq!(world.taints("n3").len(), 1);
        let mut expected = json!({"mine": "kept"});
        for (new, old, value) in LABELS {
            expected[new] = value.into();
            if older_labels {
                expected[old] = value.into();
            }
        }
        assert_eq!(node["metadata"]["labels"], expected);
        assert_eq!(node["spec"]["providerID"], "azure:///subscriptions/s/resourceGroups/rg/n2");
        assert_eq!(node["status"]["addresses"][0]["address"], "10.0.0.5");
        assert_eq!(world.reasons("n2"), Vec::<String>::new(), "it may write no events");
        assert!(!node["metadata"]["managedFields"].to_string().contains("cloud-controller-manager"));
    }
}

/// NODE-118
#[tokio::test(start_paused = true)]
async fn node_118_a_machine_that_cannot_be_described_keeps_the_taint() {
    let world = World::new();
    world.cloud.set_instance("n2", Unknown("failed to parse zone ID".into()));
    start(&world, options(&world)).await;
    world.node("n2", new_node(json!({})));
    seconds(10).await;
    assert_eq!(world.taints("n2").len(), 1);
    let asked = world.cloud.calls().iter().filter(|call| matches!(call, Call::Describe(_))).count();
    assert!((3..=6).contains(&asked), "{asked} in ten seconds");
    world.cloud.set_instance("n2", Present(machine("n2", "0", &["10.0.0.5"])));
    seconds(60).await;
    assert_eq!(world.taints("n2").len(), 0);
}

/// NODE-119
#[tokio::test(start_paused = true)]
async fn node_119_a_node_that_waits_for_routes_says_so_before_it_takes_work() {
    for wait_routes in [true, false] {
        let world = World::new();
        world.cloud.set_instance("n2", Present(machine("n2", "0", &["10.0.0.5"])));
        start(&world, AgentOptions { wait_routes, ..options(&world) }).await;
        // The last write fails: everything before it is visible.
        world.kubernetes.inject(Fault::status(422).verb("patch").resource("nodes").times(5));
        world.node("n2", new_node(json!({})));
        seconds(1).await;
        assert_eq!(world.taints("n2").iter().filter(|taint| taint.contains("uninitialized")).count(), 1);
        let condition = || {
            let node = world.get_node("n2");
            let all = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let mut found = all.into_iter().filter(|one| one["type"] == "NetworkUnavailable");
            found.next().map(|one| [one["status"].clone(), one["reason"].clone(), one["message"].clone()])
        };
        let expected = ["True", "NodeInitialization", "Waiting for cloud routes"].map(Value::from);
        assert_eq!(condition(), wait_routes.then_some(expected.clone()));
        let ready = world.get_node("n2")["status"]["conditions"].to_string();
        assert!(ready.contains("Ready"), "other conditions stay: {ready}");
        seconds(60).await;
        assert!(!world.taints("n2").iter().any(|taint| taint.contains("uninitialized")));
        assert_eq!(condition(), wait_routes.then_some(expected));
    }
}

/// NODE-121
#[tokio::test(start_paused = true)]
async fn node_121_changed_addresses_are_followed_and_equal_ones_are_not_written() {
    let world = World::new();
    world.cloud.set_instance("n2", Present(machine("n2", "0", &["10.0.0.5", "fd00::5"])));
    start(&world, options(&world)).await;
    // The node appears after the program.
    seconds(100).await;
    world.node("n2", json!({}));
    seconds(1).await;
    let addresses = || {
        let node = world.get_node("n2");
        let addresses: Vec<NodeAddress> =
            serde_json::from_value(node["status"]["addresses"].clone()).unwrap();
        addresses.into_iter().map(|one| one.address).collect::<Vec<_>>()
    };
    assert_eq!(addresses(), ["10.0.0.5", "fd00::5", "n2"], "at once, not five minutes later");
    let written = world.kubernetes.requests("patch", "nodes/status");
    world.cloud.set_instance("n2", Present(machine("n2", "0", &["10.0.0.5", "fd00::6"])));
    seconds(301).await;
    assert_eq!(addresses(), ["10.0.0.5", "fd00::6", "n2"]);
    seconds(3000).await;
    assert_eq!(world.kubernetes.requests("patch", "nodes/status"), written + 1);
    world.cloud.set_instance("n2", Unknown("instance metadata is away".into()));
    seconds(3000).await;
    assert_eq!(addresses(), ["10.0.0.5", "fd00::6", "n2"], "unknown addresses stay");
}

/// NODE-120
#[tokio::test(start_paused = true)]
async fn node_120_older_labels_of_a_node_follow_the_newer_ones() {
    let world = World::new();
    world.cloud.set_instance("n2", Present(machine("n2", "0", &["10.0.0.5"])));
    start(&world, AgentOptions { older_labels: true, ..options(&world) }).await;
    world.node("n2", json!({"metadata": {"labels": {names::LABEL_ZONE: "1", names::LABEL_ZONE_BETA: "2"}}}));
    seconds(1).await;
    assert_eq!(world.get_node("n2")["metadata"]["labels"][names::LABEL_ZONE_BETA], "1");
    let written = world.kubernetes.requests("patch", "nodes");
    seconds(700).await;
    assert_eq!(world.kubernetes.requests("patch", "nodes"), written);
}
