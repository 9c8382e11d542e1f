//! Machines are created, stopped, broken and deleted.

use std::time::Duration;

use azure_simulator::{Documents, Fault, FaultAction, PowerState};
use serde_json::json;
use testkit::types::INSTANCES;
use testkit::{World, run, service};
use tokio::time::sleep;

const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const HOUR: Duration = Duration::from_secs(3600);

/// NODE-086: a node that is not ready and absent in Azure gets an event, and the Node is deleted.
#[test]
fn node_086_a_lost_machine_takes_its_node_and_membership_along() {
    run(async || {
        let world = World::builder().start().await;
        world.create(service("shop/web"));
        world.settle().await;
        let lost = world.node_names().remove(1);
        let machine = world.machine(&lost);
        world.azure.remove_instance(&world.scale_set(), machine.name()).unwrap();
        world.settle().await;
        assert!(!world.node_names().contains(&lost), "{:?}", world.node_names());
        let words = "is not an active Virtual Machine Scale Set VM instanceId";
        let events = world.events(&lost);
        let is_proof = |event: &String| event.starts_with("Normal DeletingNode:") && event.contains(words);
        assert!(events.iter().any(is_proof), "the event carries Azure's words: {events:#?}");
        let reached = world.reached(world.address("shop/web"), 80);
        assert_eq!(reached, world.node_names());
        assert_eq!(reached.len(), 2);
    });
}

/// LB-491: a label excludes all nodes from pools: the Service's event names it, and after its removal the Service is
/// served. Another Service gets the same event.
#[test]
fn lb_491_services_are_told_what_keeps_all_nodes_out() {
    run(async || {
        const EXCLUDE: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
        let world = World::builder().control_plane().start().await;
        let label = |value: serde_json::Value| {
            for node in world.node_names() {
                let patch = json!({"metadata": {"labels": {EXCLUDE: value.clone()}}});
                world.kubernetes.merge("Node", "", &node, &patch).unwrap();
            }
        };
        label(json!("true"));
        world.create(service("shop/web"));
        world.create(service("shop/api"));
        world.settle().await;
        for key in ["shop/web", "shop/api"] {
            let events = world.events(key);
            let told = |event: &&String| event.starts_with("Warning UnAvailableLoadBalancer:");
            let event = events.iter().find(told).unwrap_or_else(|| panic!("{events:#?}"));
            for part in [EXCLUDE, "excludeMasterFromStandardLB", "nodes control-plane-0: "] {
                assert!(event.contains(part), "{part}: {event}");
            }
        }
        label(serde_json::Value::Null);
        world.settle().await;
        assert!(!world.reached(world.address("shop/web"), 80).is_empty());
    });
}

/// The seconds at which machines were listed; the pages of one list count once.
fn lists_of_machines(world: &World) -> Vec<u64> {
    let journal = world.azure.journal();
    let begin = journal.entries.first().map(|entry| entry.time).unwrap();
    let lists = journal.entries.iter().filter(|e| e.path.to_lowercase().ends_with("/virtualmachines"));
    let mut seconds: Vec<u64> =
        lists.map(|e| u64::try_from(e.time.duration_since(begin).as_secs()).unwrap()).collect();
    seconds.dedup();
    seconds
}

/// One dead node must not use up Azure's limit for its scale set: ten lists a minute.
async fn dead_for_a_day(count: usize) {
    let mut world = World::builder().nodes(count as u64).start().await;
    // The stand-ins would write heartbeats every few seconds of this day.
    world.end_stand_ins();
    let dead = world.node_names().remove(count / 2);
    let machine = world.machine(&dead);
    world.azure.clear_journal();
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    world.kubernetes.merge_status("Node", "", &dead, &status).unwrap();
    sleep(24 * HOUR).await;
    assert_eq!(world.azure.journal().counts.throttled, 0);
    let lists = lists_of_machines(&world);
    let soon = lists.iter().filter(|second| **second < 600).count();
    assert!(soon <= 20, "{soon} lists in the first ten minutes");
    let minutes: Vec<u64> = lists.iter().map(|s| s / 60).filter(|minute| *minute >= 10).collect();
    assert!(minutes.len() > 1000, "it is looked for all day long");
    assert!(minutes.windows(2).all(|pair| pair[0] < pair[1]), "more than one list in a minute");
    assert_eq!(world.node_names().len(), count);
    // Just after a poll, which is the worst case.
    world.azure.remove_instance(&world.scale_set(), machine.name()).unwrap();
    let gone = |world: &World| !world.node_names().contains(&dead);
    world.until("the node goes with its machine", Duration::from_secs(61), gone).await;
}

#[test]
fn a_node_that_is_dead_for_a_day_costs_a_list_a_minute_and_goes_soon_after_its_machine() {
    run(async || dead_for_a_day(20).await);
}

#[test]
#[ignore = "each of some 1,500 lists names 200 machines, which takes minutes without optimisation: .ci/run runs it"]
fn one_dead_node_among_200_costs_no_more() {
    run(async || dead_for_a_day(200).await);
}

/// One machine of many is stopped and one has failed, while a Service waits for both: their polls share lists.
#[test]
fn machines_that_a_service_waits_for_cost_no_list_of_their_own() {
    run(async || {
        let mut world = World::builder().nodes(20).start().await;
        world.create(service("shop/web"));
        world.settle().await;
        world.end_stand_ins();
        let (failed, stopped) = (world.node_names().remove(11), world.node_names().remove(4));
        let machine = world.machine(&failed);
        for name in [&failed, &stopped] {
            world.azure.set_power_state(&world.machine(name), PowerState::Deallocated).unwrap();
            let status = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
            world.kubernetes.merge_status("Node", "", name, &status).unwrap();
        }
        // A new node causes the members of the pools to be checked, and two machines are found stopped.
        world.azure.scale(&world.scale_set(), 21).unwrap();
        let template = world.node(&world.node_names()[0]);
        let number = world.azure.of_type(INSTANCES).len() - 1;
        let id = format!("azure://{}", world.scale_set().child("virtualMachines", &number.to_string()));
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late", "labels": template["metadata"]["labels"]},
            "spec": {"providerID": id}, "status": template["status"]});
        world.kubernetes.create(node).unwrap();
        world.azure.clear_journal();
        sleep(24 * HOUR).await;
        assert_eq!(world.azure.journal().counts.throttled, 0);
        let lists = lists_of_machines(&world);
        let minutes: Vec<u64> = lists.iter().map(|s| s / 60).filter(|minute| *minute >= 10).collect();
        assert!(minutes.len() > 1000, "they are looked for all day long: {}", minutes.len());
        let twice = minutes.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert_eq!(twice, 0, "more than one list in a minute");
        world.azure.remove_instance(&world.scale_set(), machine.name()).unwrap();
        let gone = |world: &World| !world.node_names().contains(&failed);
        world.until("the node goes with its machine", Duration::from_secs(61), gone).await;
    });
}

/// A zone fails: Azure's limit for a scale set is enough for many dead nodes, too.
#[test]
fn many_dead_nodes_share_their_lists() {
    run(async || {
        let mut world = World::builder().nodes(30).start().await;
        world.end_stand_ins();
        world.azure.clear_journal();
        let status = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
        for name in world.node_names() {
            world.kubernetes.merge_status("Node", "", &name, &status).unwrap();
            sleep(Duration::from_millis(2300)).await;
        }
        sleep(HOUR).await;
        assert_eq!(world.azure.journal().counts.throttled, 0);
        let lists = lists_of_machines(&world);
        for minute in 0..60 {
            let count = lists.iter().filter(|second| **second / 60 == minute).count();
            assert!(count <= if minute < 10 { 6 } else { 1 }, "{count} lists in minute {minute}");
        }
        assert_eq!(world.node_names().len(), 30);
    });
}

async fn unknown_is_not_absent(action: FaultAction) {
    let world = World::builder().start().await;
    let names = world.node_names();
    let machine = world.machine(&names[0]);
    // Azure has no machine of this name any more, but cannot say so.
    world.azure.inject(Fault::new(action).on_method("GET").on_type(INSTANCES).named("blind"));
    world.azure.remove_instance(&world.scale_set(), machine.name()).unwrap();
    world.azure.set_power_state(&world.machine(&names[1]), PowerState::Deallocated).unwrap();
    sleep(HOUR).await;
    let asked = world.azure.journal().entries.iter().filter(|e| e.fault.as_deref() == Some("blind")).count();
    assert!(asked > 0, "Azure was asked");
    assert_eq!(world.node_names(), names);
    for name in &names {
        assert!(!world.taints(name).contains(&SHUTDOWN.to_owned()), "{name}");
    }
    // Once Azure answers, the Nodes are handled.
    world.azure.clear_faults();
    sleep(HOUR).await;
    assert_eq!(world.node_names(), names[1..]);
    assert!(world.taints(&names[1]).contains(&SHUTDOWN.to_owned()));
}

#[test]
fn while_azure_fails_to_list_machines_no_node_is_deleted_or_tainted() {
    run(async || {
        let (code, message) = ("InternalServerError".to_owned(), "An error occurred.".to_owned());
        unknown_is_not_absent(FaultAction::Fail { status: 500, code, message }).await;
    });
}

#[test]
fn while_azure_does_not_answer_no_node_is_deleted_or_tainted() {
    run(async || {
        unknown_is_not_absent(FaultAction::DropRequest).await;
    });
}

/// NODE-085: a node that is not ready and deallocated gets the shutdown taint, and loses it when it is ready again.
#[test]
fn node_085_a_stopped_machine_is_tainted_until_it_is_back() {
    run(async || {
        let world = World::builder().start().await;
        let name = world.node_names().remove(2);
        let machine = world.machine(&name);
        world.azure.set_power_state(&machine, PowerState::Deallocated).unwrap();
        sleep(HOUR).await;
        assert!(world.taints(&name).contains(&SHUTDOWN.to_owned()), "{:?}", world.taints(&name));
        world.azure.set_power_state(&machine, PowerState::Running).unwrap();
        sleep(HOUR).await;
        assert_eq!(world.taints(&name), Vec::<String>::new());
        assert_eq!(world.node_names().len(), 3);
    });
}

#[test]
fn a_new_machine_becomes_an_initialised_node_and_takes_traffic() {
    run(async || {
        let world = World::builder().nodes(2).start().await;
        world.create(service("shop/web"));
        world.settle().await;
        let before = world.node_names();
        assert_eq!(world.reached(world.address("shop/web"), 80), before);
        world.azure.scale(&world.scale_set(), 3).unwrap();
        world.settle().await;
        let names = world.node_names();
        assert_eq!(names.len(), 3);
        let name = names.iter().find(|name| !before.contains(name)).unwrap();
        let (node, machine) = (world.node(name), world.machine(name));
        let provider_id = node["spec"]["providerID"].as_str().unwrap();
        assert!(provider_id.eq_ignore_ascii_case(&format!("azure://{machine}")), "{provider_id}");
        let labels = &node["metadata"]["labels"];
        assert_eq!(labels["topology.kubernetes.io/region"], "westeurope");
        assert!(
            labels["topology.kubernetes.io/zone"].as_str().unwrap().starts_with("westeurope-"),
            "{labels:#}"
        );
        assert_eq!(labels["node.kubernetes.io/instance-type"], "Standard_D2s_v5");
        assert!(!world.taints(name).contains(&UNINITIALIZED.to_owned()));
        assert_eq!(world.reached(world.address("shop/web"), 80), names);
    });
}
