use std::time::Duration;

use cloud::Existence::{Absent, Present, Unknown};
use cloud::{LogicalTime, Presence, Proof};
use controllers::{Controllers, Options};
use kubernetes_simulator::{Fault, FaultAction};
use serde_json::{Value, json};

use crate::cloud::{Call, machine};
use crate::world::{World, seconds};

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown=:NoSchedule";
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service=cloud-controller-manager:NoExecute";

fn new_node() -> Value {
    json!({"spec": {"providerID": "", "taints": [
        {"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"},
        {"key": "example.com/mine", "value": "x", "effect": "NoSchedule"},
    ]}})
}

fn proof(name: &str) -> Proof {
    let (machine, answer) = (format!("machine of {name}"), format!("404 NotFound: no machine of {name}"));
    Proof { machine, answer, read: LogicalTime::now() }
}

fn addresses(node: &Value) -> Vec<String> {
    let list = node["status"]["addresses"].as_array().cloned().unwrap_or_default();
    list.iter()
        .map(|a| format!("{} {}", a["type"].as_str().unwrap(), a["address"].as_str().unwrap()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_new_node_is_described_and_let_to_work() {
    let mut world = World::new();
    world.cloud.set_instance("n2", Present(machine("n2", "westus2-1", &["10.0.0.5"])));
    world.start(World::nodes()).await;
    world.node("n2", new_node());
    seconds(1).await;
    let node = world.get_node("n2");
    assert_eq!(node["spec"]["providerID"], "azure:///subscriptions/s/resourceGroups/rg/n2");
    assert_eq!(world.taints("n2"), ["example.com/mine=x:NoSchedule"]);
    assert_eq!(addresses(&node), ["InternalIP 10.0.0.5", "Hostname n2"]);
    for (key, value) in [
        ("node.kubernetes.io/instance-type", "Standard_D2s_v5"),
        ("beta.kubernetes.io/instance-type", "Standard_D2s_v5"),
        ("topology.kubernetes.io/zone", "westus2-1"),
        ("failure-domain.beta.kubernetes.io/zone", "westus2-1"),
        ("topology.kubernetes.io/region", "westus2"),
        ("failure-domain.beta.kubernetes.io/region", "westus2"),
    ] {
        assert_eq!(node["metadata"]["labels"][key], value, "{key}");
    }
    assert_eq!(world.events("n2"), ["cloud-node-controller Normal Synced: Node synced successfully"]);
    assert_eq!(world.kubernetes.requests("patch", "nodes"), 1);
    assert_eq!(world.kubernetes.requests("patch", "nodes/status"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_absent_or_unknown_is_asked_for_again_and_never_guessed() {
    let mut world = World::new();
    world
        .start(Options {
            controllers: Controllers { cloud_node: true, ..Controllers::NONE },
            ..Options::default()
        })
        .await;
    world.cloud.set_instance("n2", Absent(proof("n2")));
    world.node("n2", new_node());
    seconds(30).await;
    world.cloud.set_instance("n2", Unknown("429".into()));
    seconds(30).await;
    assert_eq!(world.taints("n2").len(), 2, "still uninitialised");
    assert_eq!(
        world.kubernetes.requests("patch", "nodes") + world.kubernetes.requests("patch", "nodes/status"),
        0
    );
    world.cloud.set_instance("n2", Present(machine("n2", "0", &["10.0.0.5"])));
    seconds(120).await;
    assert_eq!(world.taints("n2"), ["example.com/mine=x:NoSchedule"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_keeps_its_taint_until_its_addresses_are_written() {
    let mut world = World::new();
    world.cloud.set_instance("n2", Present(machine("n2", "0", &["10.0.0.5"])));
    world.start(World::nodes()).await;
    world.kubernetes.inject(Fault::status(422).verb("patch").resource("nodes/status").times(5));
    world.node("n2", new_node());
    seconds(1).await;
    assert_eq!(world.taints("n2").len(), 2);
    assert_eq!(world.kubernetes.requests("patch", "nodes"), 0);
    seconds(60).await;
    assert_eq!(world.taints("n2").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn node_283_writes_of_others_do_not_stop_the_initialisation() {
    let mut world = World::new();
    world.cloud.set_instance("n2", Present(machine("n2", "0", &["10.0.0.5"])));
    world.start(World::nodes()).await;
    world.kubernetes.inject(Fault::status(409).verb("patch").resource("nodes").times(5));
    world.node("n2", new_node());
    seconds(1).await;
    assert_eq!(world.taints("n2"), ["example.com/mine=x:NoSchedule"]);
    let asked = world.cloud.calls().iter().filter(|call| **call == Call::Describe("n2".into())).count();
    assert_eq!(asked, 1, "the cloud is not asked again for a conflict in Kubernetes");
}

#[tokio::test(start_paused = true)]
async fn an_address_that_the_machine_does_not_have_keeps_the_taint() {
    let mut world = World::new();
    world.cloud.set_instance("n2", Present(machine("n2", "0", &["10.0.0.5", "fd00::5"])));
    world.start(World::nodes()).await;
    let mut node = new_node();
    node["metadata"] = json!({"annotations": {"alpha.kubernetes.io/provided-node-ip": "10.0.0.6"}});
    world.node("n2", node);
    seconds(10).await;
    assert_eq!(world.taints("n2").len(), 2);
    let annotation =
        json!({"metadata": {"annotations": {"alpha.kubernetes.io/provided-node-ip": "fd00::5"}}});
    world.kubernetes.merge("Node", "", "n2", &annotation).unwrap();
    seconds(1).await;
    assert_eq!(world.taints("n2").len(), 1);
    assert_eq!(addresses(&world.get_node("n2")), ["InternalIP fd00::5", "Hostname n2"]);
}

#[tokio::test(start_paused = true)]
async fn labels_that_are_there_are_never_overwritten() {
    let mut world = World::new();
    world.start(World::nodes()).await;
    let labels = json!({"metadata": {"labels": {
        "failure-domain.beta.kubernetes.io/zone": "westus2-3", "topology.kubernetes.io/zone": "other",
        "beta.kubernetes.io/instance-type": "Standard_D2s_v5",
    }}});
    world.kubernetes.merge("Node", "", "n1", &labels).unwrap();
    seconds(1).await;
    let labels = world.get_node("n1")["metadata"]["labels"].clone();
    assert_eq!(labels["topology.kubernetes.io/zone"], "other");
    assert_eq!(labels["node.kubernetes.io/instance-type"], "Standard_D2s_v5", "a missing one is filled in");
    assert_eq!(world.kubernetes.requests("patch", "nodes"), 1);
}

/// A dual-stack kubelet requests an address of each family.
#[tokio::test(start_paused = true)]
async fn a_dual_stack_node_is_initialised_with_both_addresses() {
    let mut world = World::new();
    world.cloud.set_instance("n2", Present(machine("n2", "0", &["10.0.0.5", "fd00::5"])));
    world.start(World::nodes()).await;
    let mut node = new_node();
    node["metadata"] = json!({"annotations": {"alpha.kubernetes.io/provided-node-ip": "fd00::5,10.0.0.5"}});
    world.node("n2", node);
    seconds(1).await;
    assert_eq!(world.taints("n2"), ["example.com/mine=x:NoSchedule"]);
    let both = ["InternalIP fd00::5", "InternalIP 10.0.0.5", "Hostname n2"];
    assert_eq!(addresses(&world.get_node("n2")), both);
}

/// NODE-280. Its machine is not in the list yet: that costs at most a list every ten seconds, not one for each attempt.
#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_initialised_costs_few_lists() {
    let mut world = World::new();
    world.cloud.set_instance("n2", Unknown("not there yet".into()));
    world.start(World::nodes()).await;
    let before = world.cloud.lists().len();
    world.node("n2", new_node());
    for second in 0..60 {
        seconds(1).await;
        let beat = json!({"metadata": {"annotations": {"beat": second.to_string()}}});
        world.kubernetes.merge("Node", "", "n2", &beat).unwrap();
    }
    let lists = world.cloud.lists().len() - before;
    assert!((2..=7).contains(&lists), "{lists} lists in a minute");
}

/// NODE-280: data read before a node appeared does not prove that its machine does not exist, but data read for other
/// nodes may show it, so that nodes that join together share lists.
#[tokio::test(start_paused = true)]
async fn a_new_node_is_initialised_at_the_first_look_after_it_came() {
    let mut world = World::new();
    world.start(World::nodes()).await;
    let mut lists = world.cloud.lists().len();
    let come = |world: &World, names: &[String]| {
        for name in names {
            world.cloud.set_instance(name, Present(machine(name, "0", &["10.0.0.5"])));
            world.node(name, new_node());
        }
    };
    // Each appears a second after the list that was read for the previous one.
    for number in 10..14 {
        let name = format!("n{number}");
        come(&world, std::slice::from_ref(&name));
        seconds(1).await;
        assert_eq!(world.taints(&name), ["example.com/mine=x:NoSchedule"], "{name}");
        let now = world.cloud.lists().len();
        assert!(now - lists <= 2, "{} lists for one node", now - lists);
        lists = now;
    }
    // Hundreds appear at once.
    let names: Vec<String> = (1000..1200).map(|number| format!("n{number}")).collect();
    come(&world, &names);
    seconds(2).await;
    assert!(names.iter().all(|name| world.taints(name) == ["example.com/mine=x:NoSchedule"]));
    let now = world.cloud.lists().len();
    assert!(now - lists <= 2, "{} lists for {} nodes", now - lists, names.len());
}

/// NODE-200. A new node is waited for without event; a node that stays uninitialised gets one event, whose count
/// increases.
#[tokio::test(start_paused = true)]
async fn node_200_a_node_that_stays_uninitialised_gets_one_event_that_names_the_cause() {
    let mut world = World::new();
    world.cloud.set_instance("n2", Unknown("m2 is a standalone machine".into()));
    world.start(World::nodes()).await;
    world.node("n2", new_node());
    seconds(50).await;
    assert_eq!(world.events("n2"), Vec::<String>::new(), "its machine may not be listed yet");
    seconds(600).await;
    let text = format!(
        "cloud-node-controller Warning FailedToInitializeNode: No pods are scheduled to the node, because it keeps the \
         taint {UNINITIALIZED}: failed to get instance metadata for node n2: m2 is a standalone machine"
    );
    assert_eq!(world.events("n2"), [text]);
    let count = world.count_of("n2", "FailedToInitializeNode");
    assert!((5..=12).contains(&count), "{count} times in ten minutes");
    world.cloud.set_instance("n2", Absent(proof("n2")));
    seconds(120).await;
    let events = world.events("n2");
    let absent = "machine machine of n2 does not exist (404 NotFound: no machine of n2); delete the Node";
    assert!(events.iter().any(|event| event.contains(absent)), "{events:#?}");
    let told = world.count_of("n2", "FailedToInitializeNode");
    world.cloud.set_instance("n2", Present(machine("n2", "0", &["10.0.0.5"])));
    seconds(600).await;
    assert_eq!(world.taints("n2"), ["example.com/mine=x:NoSchedule"]);
    assert_eq!(world.count_of("n2", "FailedToInitializeNode"), told);
}

/// NODE-200, with the kubelet's requested address as the cause.
#[tokio::test(start_paused = true)]
async fn node_200_a_node_whose_kubelet_asks_for_another_address_gets_an_event() {
    let mut world = World::new();
    world.cloud.set_instance("n2", Present(machine("n2", "0", &["10.0.0.5"])));
    world.start(World::nodes()).await;
    let mut node = new_node();
    node["metadata"] = json!({"annotations": {"alpha.kubernetes.io/provided-node-ip": "10.0.0.6"}});
    world.node("n2", node);
    seconds(180).await;
    let events = world.events("n2");
    assert_eq!(events.len(), 1, "{events:#?}");
    assert!(events[0].contains("asks for \"10.0.0.6\""), "{}", events[0]);
    assert!(events[0].ends_with("correct the kubelet's --node-ip"), "{}", events[0]);
}

#[tokio::test(start_paused = true)]
async fn changed_addresses_are_found_within_the_period_and_unchanged_ones_not_written() {
    let mut world = World::new();
    world.cloud.set_instance("n1", Present(machine("n1", "0", &["10.0.0.4", "fd00::4"])));
    world.start(World::nodes()).await;
    assert_eq!(
        addresses(&world.get_node("n1")),
        ["InternalIP 10.0.0.4", "InternalIP fd00::4", "Hostname n1"]
    );
    seconds(3000).await;
    assert_eq!(world.kubernetes.requests("patch", "nodes/status"), 1);
    // Upstream compares one address per type, the last one, and misses this.
    world.cloud.set_instance("n1", Present(machine("n1", "0", &["10.0.0.9", "fd00::4"])));
    seconds(301).await;
    assert_eq!(
        addresses(&world.get_node("n1")),
        ["InternalIP 10.0.0.9", "InternalIP fd00::4", "Hostname n1"]
    );
    assert_eq!(world.kubernetes.requests("patch", "nodes/status"), 2);
    world.cloud.set_instance("n1", Unknown("503".into()));
    seconds(3000).await;
    assert_eq!(addresses(&world.get_node("n1")).len(), 3, "unknown changes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_is_off_does_nothing() {
    let mut world = World::new();
    world.cloud.set_instance("n2", Absent(proof("n2")));
    let off = Controllers { service: true, ..Controllers::NONE };
    world.start(Options { controllers: off, ..Options::default() }).await;
    world.node("n2", new_node());
    world.ready("n2", "False");
    seconds(3600).await;
    assert_eq!(world.taints("n2").len(), 2);
    assert_eq!(world.cloud.calls(), []);
}

/// NODE-080, NODE-085.
#[tokio::test(start_paused = true)]
async fn node_085_a_node_that_is_shut_down_is_tainted_until_it_is_ready() {
    let mut world = World::new();
    world.cloud.set_presence("n1", Present(Presence { shut_down: true }));
    world.start(World::nodes()).await;
    world.set_taints("n1", json!([{"key": "example.com/mine", "value": "x", "effect": "NoExecute"}]));
    seconds(10).await;
    assert_eq!(world.taints("n1").len(), 1, "a ready node is left alone");
    world.ready("n1", "Unknown");
    seconds(7).await;
    assert_eq!(world.taints("n1"), ["example.com/mine=x:NoExecute", SHUTDOWN, OUT_OF_SERVICE]);
    seconds(3600).await;
    assert!(!world.get_node("n1").is_null(), "the node is kept");
    let patches = world.kubernetes.requests("patch", "nodes");
    world.ready("n1", "True");
    seconds(7).await;
    assert_eq!(world.taints("n1"), ["example.com/mine=x:NoExecute"]);
    assert!(world.kubernetes.requests("patch", "nodes") - patches <= 4, "no write without a difference");
    // NODE-275: each change of a taint is reported, with its cause.
    let told = world.events("n1").join("\n");
    for words in [
        "TaintAdded: Put taint node.cloudprovider.kubernetes.io/shutdown on node n1, because its machine is shut down",
        "TaintAdded: Put taint node.kubernetes.io/out-of-service on node n1, because its machine is shut down: its pods",
        "TaintRemoved: Took taint node.cloudprovider.kubernetes.io/shutdown off node n1, because the node is ready",
        "TaintRemoved: Took taint node.kubernetes.io/out-of-service off node n1, because the node is ready",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

/// LB-362.
#[tokio::test(start_paused = true)]
async fn lb_362_an_operators_out_of_service_taint_stays() {
    let mut world = World::new();
    world.start(World::nodes()).await;
    for value in ["", "nodeshutdown"] {
        let key = "node.kubernetes.io/out-of-service";
        world.set_taints("n1", json!([{"key": key, "value": value, "effect": "NoExecute"}]));
        seconds(60).await;
        assert_eq!(world.taints("n1"), [format!("{key}={value}:NoExecute")]);
    }
    assert_eq!(world.kubernetes.requests("patch", "nodes"), 0);
}

/// NODE-086.
#[tokio::test(start_paused = true)]
async fn node_086_a_node_without_a_machine_is_deleted_and_a_failure_is_told() {
    let mut world = World::new();
    world.cloud.set_presence("n1", Absent(proof("n1")));
    world.start(World::nodes()).await;
    seconds(60).await;
    assert!(!world.get_node("n1").is_null(), "a ready node is not even asked for");
    world.kubernetes.inject(Fault::status(403).verb("delete").resource("nodes"));
    world.ready("n1", "Unknown");
    seconds(6).await;
    seconds(6).await;
    assert!(world.get_node("n1").is_null());
    let events = world.events("n1");
    assert_eq!(
        events[0],
        "cloud-node-lifecycle-controller Normal DeletingNode: \
         Deleting node n1 because it does not exist in the cloud provider: 404 NotFound: no machine of n1"
    );
    let failed = "cloud-node-lifecycle-controller Warning DeletingNodeFailed: Failed deleting node n1: ";
    assert!(events[1].starts_with(failed), "{}", events[1]);
    assert_eq!(world.count_of("n1", "DeletingNode"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_machine_nobody_knows_is_left_alone_for_a_day() {
    let mut world = World::new();
    world.cloud.set_presence("n1", Unknown("AuthorizationFailed".into()));
    world.start(World::nodes()).await;
    world.ready("n1", "Unknown");
    let before = world.get_node("n1");
    seconds(86_400).await;
    assert_eq!(world.get_node("n1"), before);
    assert_eq!(world.events("n1").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn another_machine_with_the_name_of_a_deleted_one_is_spared() {
    let mut world = World::new();
    world.cloud.set_presence("n1", Absent(proof("n1")));
    world.start(World::nodes()).await;
    let slow = FaultAction::delay(Duration::from_secs(3));
    world.kubernetes.inject(Fault::new(slow).verb("delete").resource("nodes"));
    world.ready("n1", "Unknown");
    seconds(1).await;
    world.kubernetes.delete("Node", "", "n1").unwrap();
    world.node("n1", json!({}));
    seconds(60).await;
    assert!(!world.get_node("n1").is_null());
    assert_eq!(world.kubernetes.requests("delete", "nodes"), 1);
    assert_eq!(world.count_of("n1", "DeletingNodeFailed"), 0);
}

/// NODE-085: that a machine was shut down says nothing once its node has been ready again, however short ago it was said: the
/// machine may run, and with an out-of-service taint its volumes would be taken from it.
#[tokio::test(start_paused = true)]
async fn node_085_a_node_that_was_ready_again_is_judged_by_what_is_read_afterwards() {
    let mut world = World::new();
    world.cloud.set_presence("n1", Present(Presence { shut_down: true }));
    world.start(World::nodes()).await;
    world.ready("n1", "Unknown");
    seconds(1).await;
    assert_eq!(world.taints("n1"), [SHUTDOWN, OUT_OF_SERVICE]);
    world.cloud.set_presence("n1", Present(Presence { shut_down: false }));
    world.ready("n1", "True");
    seconds(1).await;
    assert_eq!(world.taints("n1"), Vec::<String>::new());
    let before = world.cloud.lists().len();
    world.ready("n1", "Unknown");
    seconds(1).await;
    assert_eq!(world.cloud.lists().len(), before + 1, "what was read before the node was ready is believed");
    assert_eq!(world.taints("n1"), Vec::<String>::new());
}

/// NODE-241.
#[tokio::test(start_paused = true)]
async fn node_241_a_shutdown_taint_goes_as_soon_as_the_machine_runs() {
    let mut world = World::new();
    world.cloud.set_presence("n1", Present(Presence { shut_down: true }));
    world.start(World::nodes()).await;
    world.ready("n1", "Unknown");
    seconds(7).await;
    assert_eq!(world.taints("n1"), [SHUTDOWN, OUT_OF_SERVICE]);
    world.cloud.set_presence("n1", Present(Presence { shut_down: false }));
    seconds(61).await;
    assert_eq!(world.taints("n1"), [OUT_OF_SERVICE], "it is not ready yet: its pods stay away");
    let patches = world.kubernetes.requests("patch", "nodes");
    seconds(3600).await;
    assert_eq!(world.kubernetes.requests("patch", "nodes"), patches, "no write without a difference");
}

/// NODE-242: a node that changes while its machine is looked up is reconciled again.
#[tokio::test(start_paused = true)]
async fn node_242_a_node_that_is_ready_again_is_not_deleted() {
    let mut world = World::new();
    world.cloud.set_presence("n1", Absent(proof("n1")));
    world.start(World::nodes()).await;
    let slow = FaultAction::delay(Duration::from_secs(3));
    world.kubernetes.inject(Fault::new(slow).verb("delete").resource("nodes").times(1));
    world.ready("n1", "Unknown");
    seconds(1).await;
    world.ready("n1", "True");
    seconds(3600).await;
    assert!(!world.get_node("n1").is_null());
    assert_eq!(world.kubernetes.requests("delete", "nodes"), 1);
    assert_eq!(world.count_of("n1", "DeletingNodeFailed"), 0);
    // A change that does not concern its machine is no reason to keep it.
    world.kubernetes.inject(
        Fault::new(FaultAction::delay(Duration::from_secs(3))).verb("delete").resource("nodes").times(1),
    );
    world.ready("n1", "Unknown");
    seconds(1).await;
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    world.kubernetes.merge("Node", "", "n1", &label).unwrap();
    seconds(10).await;
    assert!(world.get_node("n1").is_null());
}

/// NODE-022.
#[tokio::test(start_paused = true)]
async fn node_022_nobody_asks_for_the_machine_of_a_node_that_is_gone() {
    let mut world = World::new();
    world.cloud.set_presence("n1", Unknown("429".into()));
    world.start(World::nodes()).await;
    world.ready("n1", "Unknown");
    seconds(60).await;
    let asked = |world: &World| world.cloud.times(|call| matches!(call, Call::Presence(_))).len();
    assert!(asked(&world) > 0);
    world.kubernetes.delete("Node", "", "n1").unwrap();
    seconds(1).await;
    let before = asked(&world);
    seconds(3600).await;
    assert_eq!(asked(&world), before);
}

#[tokio::test(start_paused = true)]
async fn the_machines_of_many_dead_nodes_are_looked_for_at_one_moment() {
    let mut world = World::new();
    for number in 0..50 {
        let name = format!("m{number:02}");
        world.node(&name, json!({}));
        world.ready(&name, "False");
        world.cloud.set_presence(&name, Present(Presence { shut_down: false }));
    }
    let lifecycle = Controllers { cloud_node_lifecycle: true, ..Controllers::NONE };
    world.start(Options { controllers: lifecycle, ..Options::default() }).await;
    seconds(12).await;
    let mut times = world.cloud.times(|call| matches!(call, Call::Presence(_)));
    let asked = times.len();
    times.dedup();
    assert_eq!(asked, times.len() * 50, "{times:?}");
}

/// Both node controllers together, with Azure's limit for one scale set: ten lists a minute.
#[tokio::test(start_paused = true)]
async fn one_dead_node_among_200_costs_at_most_a_list_a_minute_and_goes_within_a_minute_of_its_machine() {
    let mut world = World::new();
    for number in 0..200 {
        let name = format!("m{number:03}");
        world.node(&name, json!({}));
        world.cloud.set_instance(&name, Present(machine(&name, "0", &["10.0.0.9"])));
        world.cloud.set_presence(&name, Present(Presence { shut_down: false }));
    }
    world.start(World::nodes()).await;
    world.ready("m117", "Unknown");
    for _ in 0..10 {
        seconds(60).await;
        // Other changes of the node are no reason for an earlier lookup.
        let label = json!({"metadata": {"labels": {"x": world.cloud.lists().len().to_string()}}});
        world.kubernetes.merge("Node", "", "m117", &label).unwrap();
    }
    let soon = world.cloud.lists().len();
    assert!(soon <= 20, "{soon} lists in the first ten minutes");
    seconds(86_400).await;
    let minutes: Vec<u64> = world.cloud.lists()[soon..].iter().map(|second| second / 60).collect();
    assert!(minutes.len() > 1400, "the machine is looked for all day long: {}", minutes.len());
    assert!(minutes.windows(2).all(|pair| pair[0] < pair[1]), "more than one list in a minute");
    assert!(!world.get_node("m117").is_null());
    world.cloud.set_presence("m117", Absent(proof("m117")));
    seconds(60).await;
    assert!(world.get_node("m117").is_null());
}
