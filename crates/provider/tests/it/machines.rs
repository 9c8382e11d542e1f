//! Machines: presence, description, and membership of pools.

use std::sync::Arc;

use azure_simulator::{Fault, FaultAction, PowerState};
use cloud::{Existence, LoadBalancers as _, LogicalTime, Machines, Presence};
use futures::future::join_all;
use k8s::Node;
use serde_json::json;
use simulated_cluster::{NodePool, Shape};

use crate::world::*;

fn lists(world: &World) -> usize {
    let journal = world.azure.journal();
    journal.entries.iter().filter(|entry| entry.path.to_lowercase().ends_with("/virtualmachines")).count()
}

#[tokio::test(start_paused = true)]
async fn questions_of_one_moment_are_one_list() {
    let world = World::new();
    world.azure.scale(&id("virtualMachineScaleSets", "pool"), 40).unwrap();
    world.register_nodes();
    let program = world.start();
    let nodes = world.nodes.lock().clone();
    let answers =
        join_all(nodes.iter().map(|node| program.provider.describe(node, LogicalTime::now()))).await;
    assert_eq!(answers.len(), 40);
    for answer in answers {
        let instance = answer.present().unwrap();
        assert_eq!(instance.instance_type, "Standard_D2s_v5");
        assert!(instance.zone.starts_with("eastus-"), "{}", instance.zone);
        assert!(instance.addresses.iter().any(|address| address.address.starts_with("10.240.")));
    }
    assert_eq!(lists(&world), 1);
}

/// NODE-014.
#[tokio::test(start_paused = true)]
async fn present_absent_and_unknown_are_three_things() {
    let world = World::new();
    let program = world.start();
    let nodes = world.nodes.lock().clone();
    let ask = async |node: &Node| program.provider.presence(node, LogicalTime::now()).await;
    let set = id("virtualMachineScaleSets", "pool");
    world.azure.set_power_state(&set.child("virtualMachines", "0"), PowerState::Deallocated).unwrap();
    world.azure.remove_instance(&set, "1").unwrap();
    assert_eq!(ask(&nodes[0]).await, Existence::Present(Presence { shut_down: true }));
    let removed = ask(&nodes[1]).await;
    let Existence::Absent(proof) = &removed else { panic!("it was removed: {removed:?}") };
    assert!(proof.machine.ends_with("/virtualMachineScaleSets/pool/virtualMachines/1"), "{}", proof.machine);
    let words = "The provided instanceId 1 is not an active Virtual Machine Scale Set VM instanceId.";
    assert!(proof.answer.contains("InvalidParameter") && proof.answer.contains(words), "{}", proof.answer);
    assert_eq!(ask(&nodes[2]).await, Existence::Present(Presence { shut_down: false }));
    let fault = FaultAction::Fail { status: 403, code: "AuthorizationFailed".into(), message: "no".into() };
    world.azure.inject(Fault::new(fault).on_method("GET").on_type(INSTANCES));
    for node in &nodes {
        assert!(matches!(ask(node).await, Existence::Unknown(_)));
    }
    world.azure.clear_faults();
    world.azure.delete(&set).unwrap();
    let gone = ask(&nodes[2]).await;
    let Existence::Absent(proof) = &gone else { panic!("its scale set was removed: {gone:?}") };
    assert!(proof.answer.contains("404") && proof.answer.contains("NotFound"), "{}", proof.answer);
}

/// NODE-200: the text goes into the node's event.
#[tokio::test(start_paused = true)]
async fn node_200_a_node_whose_machine_is_nowhere_is_told_what_to_do() {
    let world = World::new();
    let program = world.start();
    let mut node = Node::clone(&world.nodes.lock()[1]);
    node.metadata.name = Some("control-plane-0".into());
    node.spec.provider_id = String::new();
    let described = program.provider.describe(&node, LogicalTime::now()).await;
    let Existence::Unknown(reason) = described else { panic!("{described:?}") };
    for part in [
        "has no providerID",
        "no machine in resource group rg is called control-plane-0",
        "kubernetes.azure.com/resource-group=<group>",
        "kubernetes.azure.com/managed=false",
    ] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert!(reason.len() < 700, "an event has no place for it: {reason}");
}

#[tokio::test(start_paused = true)]
async fn a_node_without_provider_id_is_found_by_its_name() {
    let world = World::new();
    let program = world.start();
    let mut node = Node::clone(&world.nodes.lock()[1]);
    let provider_id = std::mem::take(&mut node.spec.provider_id);
    let instance = program.provider.describe(&node, LogicalTime::now()).await.present().unwrap();
    assert!(instance.provider_id.eq_ignore_ascii_case(&provider_id), "{}", instance.provider_id);
    node.metadata.name = Some("stranger".into());
    assert!(matches!(program.provider.describe(&node, LogicalTime::now()).await, Existence::Unknown(_)));
}

/// Two scale sets use the same prefix for their machines; the first one in order has no machine of this number.
#[tokio::test(start_paused = true)]
async fn a_machine_that_is_found_by_name_alone_is_the_right_one_and_never_absent() {
    let world = World::new();
    let twin = Shape { pools: vec![NodePool::new("a-twin", "pool", 1)], ..shape() };
    twin.lay_out(&world.azure).unwrap();
    let program = world.start();
    let ask = async |node: &Node| program.provider.presence(node, LogicalTime::now()).await;
    let mut node = Node::clone(&world.nodes.lock()[2]);
    assert!(node.spec.provider_id.contains("/virtualMachineScaleSets/pool/"), "{}", node.spec.provider_id);
    let provider_id = std::mem::take(&mut node.spec.provider_id);
    let described = program.provider.describe(&node, LogicalTime::now()).await.present().unwrap();
    assert!(described.provider_id.eq_ignore_ascii_case(&provider_id), "{}", described.provider_id);
    assert!(matches!(ask(&node).await, Existence::Present(_)));
    world.azure.remove_instance(&id("virtualMachineScaleSets", "pool"), "2").unwrap();
    assert!(matches!(ask(&node).await, Existence::Unknown(_)), "nothing proves that it was this node's");
    node.spec.provider_id = provider_id;
    assert!(matches!(ask(&node).await, Existence::Absent(_)));
}

/// A list may lag behind: the machine itself is requested before its node is deleted.
#[tokio::test(start_paused = true)]
async fn a_machine_that_a_list_does_not_show_is_asked_for_by_itself() {
    let world = World::new();
    let program = world.start();
    let node = Arc::clone(&world.nodes.lock()[1]);
    let set = id("virtualMachineScaleSets", "pool");
    let fault = FaultAction::Fail { status: 503, code: "ServerBusy".into(), message: "busy".into() };
    world.azure.inject(Fault::new(fault).on_method("GET").on_type(INSTANCES).on_resource("1"));
    world.azure.remove_instance(&set, "1").unwrap();
    assert!(matches!(program.provider.presence(&node, LogicalTime::now()).await, Existence::Unknown(_)));
    world.azure.clear_faults();
    assert!(matches!(program.provider.presence(&node, LogicalTime::BEGINNING).await, Existence::Absent(_)));
    assert_eq!(lists(&world), 1, "the list was read once, the machine each time");
}

/// NODE-010.
#[tokio::test(start_paused = true)]
async fn nodes_that_azure_does_not_manage_are_there() {
    let world = World::new();
    let program = world.start();
    let labelled: Node = serde_json::from_value(json!({
        "metadata": {"name": "edge", "labels": {"kubernetes.azure.com/managed": "false"}},
    }))
    .unwrap();
    let foreign: Node = serde_json::from_value(json!({
        "metadata": {"name": "edge"}, "spec": {"providerID": "aws:///zone/i-1"},
    }))
    .unwrap();
    for node in [labelled, foreign] {
        assert!(matches!(program.provider.describe(&node, LogicalTime::now()).await, Existence::Present(_)));
    }
    assert_eq!(world.reads(), 0);
}

/// NODE-012, NODE-033: an ID that starts like those of Azure's machines but names none proves nothing, and Azure is not
/// asked.
#[tokio::test(start_paused = true)]
async fn node_012_node_033_a_provider_id_that_names_no_machine_proves_nothing() {
    let world = World::new();
    let program = world.start();
    let of_kind =
        |kind| format!("azure:///subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/{kind}");
    // NODE-274: the same for an ID that only starts with azure://.
    let ids = [of_kind("virtualMachine/vm3"), of_kind("VM/vm9"), "azure:///subscriptions/x/oops".to_owned()];
    for id in ids {
        let node = json!({"metadata": {"name": "node"}, "spec": {"providerID": id}});
        let node: Node = serde_json::from_value(node).unwrap();
        let presence = program.provider.presence(&node, LogicalTime::now()).await;
        assert!(
            matches!(&presence, Existence::Unknown(why) if why.contains("error splitting providerID") && why.contains(&id)),
            "{presence:?}"
        );
        let described = program.provider.describe(&node, LogicalTime::now()).await;
        assert!(matches!(described, Existence::Unknown(_)), "{described:?}");
    }
    assert_eq!(world.reads(), 0);
}

/// LB-036, LB-037: a change of nodes writes nothing for a Service that is being deleted, and nothing without Services.
#[tokio::test(start_paused = true)]
async fn lb_036_lb_037_a_change_of_nodes_is_nothing_to_services_that_go() {
    let world = World::new();
    let program = world.start();
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(world.all_writes(), Vec::<String>::new(), "no load balancer");
    let at_nodes = annotated(service("web", &[80]), "azure-disable-load-balancer-floating-ip", "true");
    world.serve(&program, at_nodes.clone()).await.unwrap();
    let served = world.stored(&at_nodes);
    assert!(program.provider.follows_nodes(&served));
    let mut going = k8s::Service::clone(&served);
    going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    assert!(!program.provider.follows_nodes(&Arc::new(going.clone())));
    world.apply(&program, going);
    world.azure.scale(&id("virtualMachineScaleSets", "pool"), 4).unwrap();
    world.register_nodes();
    for node in world.nodes.lock().iter() {
        program.provider.state().apply_node(Arc::clone(node));
    }
    world.azure.clear_journal();
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(world.writes(LOAD_BALANCERS), 0);
    // What was open only for it is closed, as in every plan of the security group; nothing is opened for the new node.
    assert_eq!(world.documents(SECURITY_GROUPS)[0]["properties"]["securityRules"], json!([]));
}

/// LB-038, LB-197.
#[tokio::test(start_paused = true)]
async fn a_new_node_joins_with_one_write_and_lb_197_a_stopped_one_is_skipped() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    let set = id("virtualMachineScaleSets", "pool");
    world.azure.scale(&set, 5).unwrap();
    let machines = world.documents(INSTANCES);
    // New machines are created from the model and so are members at once; these two are not.
    for machine in &machines[3..] {
        let machine: azure_types::ResourceId = machine["id"].as_str().unwrap().parse().unwrap();
        world
            .azure
            .edit(&machine, |document| {
                let nic = &mut document["properties"]["networkProfileConfiguration"]["networkInterfaceConfigurations"][0];
                nic["properties"]["ipConfigurations"][0]["properties"]["loadBalancerBackendAddressPools"] = json!([]);
            })
            .unwrap();
    }
    let stopped: azure_types::ResourceId = machines[4]["id"].as_str().unwrap().parse().unwrap();
    world.azure.set_power_state(&stopped, PowerState::Deallocated).unwrap();
    world.register_nodes();
    for node in world.nodes.lock().iter() {
        program.provider.state().apply_node(Arc::clone(node));
    }
    world.azure.clear_journal();
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(world.all_writes().len(), 1, "{:#?}", world.all_writes());
    assert_eq!(world.members("kube"), 4);
    world.azure.clear_journal();
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(world.all_writes(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_goes_while_it_is_written_does_not_hold_up_the_others() {
    let world = World::new();
    let program = world.start();
    let message = "The provided instanceId 1 is not an active Virtual Machine Scale Set VM instanceId.";
    let fault = FaultAction::Fail { status: 400, code: "InvalidParameter".into(), message: message.into() };
    world.azure.inject(Fault::new(fault).on_method("PUT").on_type(INSTANCES).on_resource("1"));
    world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(world.members("kube"), 2);
    assert!(world.azure.document(&id("loadBalancers", "kube")).is_some());
}

/// LB-202.
#[tokio::test(start_paused = true)]
async fn lb_202_machines_are_written_one_by_one_unless_the_scale_set_says_otherwise() {
    for (tagged, seconds) in [(false, 50..60), (true, 30..40)] {
        let world = World::new();
        let set = id("virtualMachineScaleSets", "pool");
        if tagged {
            let tags = json!({ "aks-managed-coordination": "true" });
            world.azure.edit(&set, |document| document["tags"] = tags).unwrap();
        }
        world.azure.scale(&set, 5).unwrap();
        world.register_nodes();
        // Each request blocks the caller; the operation that it starts runs on its own.
        world.azure.inject(Fault::new(FaultAction::Delay { ms: 10_000 }).on_method("PUT").on_type(INSTANCES));
        let program = world.start();
        let begin = tokio::time::Instant::now();
        world.serve(&program, service("web", &[80])).await.unwrap();
        assert_eq!(world.members("kube"), 5);
        assert!(seconds.contains(&begin.elapsed().as_secs()), "tagged {tagged}: {:?}", begin.elapsed());
    }
}

/// LB-199, LB-080.
#[tokio::test(start_paused = true)]
async fn lb_199_a_scale_set_serves_both_load_balancers_and_lb_080_leaves_them_before_they_go() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    world.serve(&program, internal(service("db", &[80]))).await.unwrap();
    assert_eq!((world.members("kube"), world.members("kube-internal")), (3, 3));
    world.azure.clear_journal();
    world.remove(&program, &service("web", &[80])).await.unwrap();
    assert_eq!((world.members("kube"), world.members("kube-internal")), (0, 3));
    let writes = world.all_writes();
    let at = |text: &str| writes.iter().position(|write| write.contains(text)).unwrap();
    assert!(at("PUT") < at("DELETE"), "{writes:#?}");
    let model = world.documents(SCALE_SETS).remove(0);
    let pools = &model["properties"]["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"]
        [0]["properties"]["ipConfigurations"][0]["properties"]["loadBalancerBackendAddressPools"];
    assert_eq!(pools.as_array().unwrap().len(), 1, "{pools}");
}

#[tokio::test(start_paused = true)]
async fn an_excluded_node_leaves_the_pools() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    let mut node = Node::clone(&world.nodes.lock()[0]);
    let labels = node.metadata.labels.get_or_insert_default();
    labels.insert("node.kubernetes.io/exclude-from-external-load-balancers".into(), String::new());
    program.provider.state().apply_node(Arc::new(node));
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(world.members("kube"), 2);
}
