//! Virtual machines in pools: standalone ones, those of availability sets and of flexible scale sets. Each joins with
//! its network interface.

use std::sync::Arc;
use std::time::Duration;

use azure_simulator::{Fault, FaultAction, LatencyProfile};
use cloud::{LoadBalancers as _, LogicalTime};
use serde_json::{Value, json};
use simulated_cluster::{NodePool, Shape, StandaloneMachine};

use crate::world::*;

/// Machines of every kind: one instance, one standalone machine, one in an availability set and in a resource group of
/// its own, one in a flexible scale set.
fn mixed() -> Shape {
    let pools = vec![NodePool::new("pool", "pool", 1), NodePool::new("flexible", "pool", 1).flexible()];
    let placed = StandaloneMachine::new("pool-2").in_availability_set("set").in_group("machines");
    Shape {
        pools,
        machines: vec![StandaloneMachine::new("pool-1").with_second_interface(), placed],
        ..shape()
    }
}

/// Only standalone machines.
fn standalone(count: usize) -> Shape {
    let machines = (0..count).map(|number| StandaloneMachine::new(&format!("m{number}"))).collect();
    Shape { pools: Vec::new(), machines, ..shape() }
}

fn apply_nodes(world: &World, program: &Program) {
    world.register_nodes();
    for node in world.nodes.lock().iter() {
        program.provider.state().apply_node(Arc::clone(node));
    }
}

fn refusal(status: u16, code: &str) -> FaultAction {
    FaultAction::Fail { status, code: code.into(), message: "no".into() }
}

#[tokio::test(start_paused = true)]
async fn machines_of_every_kind_join_and_a_restart_writes_nothing() {
    let world = World::of(&mixed());
    let program = world.start();
    let plan = program.provider.dry_run().await.unwrap();
    assert!(plan.plan.is_empty(), "{plan}");
    world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(world.members("kube"), 4);
    let writes = world.all_writes();
    let of = |kind: &str| writes.iter().filter(|write| write.contains(kind)).count();
    assert_eq!((of("/networkInterfaces/"), of("/virtualMachineScaleSets/")), (3, 3), "{writes:#?}");

    let program = world.start();
    world.azure.clear_journal();
    world.serve(&program, service("web", &[80])).await.unwrap();
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert!(program.provider.dry_run().await.unwrap().plan.is_empty());
    assert_eq!(world.all_writes(), Vec::<String>::new());
}

/// LB-423.
#[tokio::test(start_paused = true)]
async fn a_virtual_machine_that_becomes_a_node_costs_one_list_and_one_write() {
    let world = World::of(&standalone(2));
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    shape().lay_out_machine(&world.azure, &StandaloneMachine::new("m2")).unwrap();
    world.azure.clear_journal();
    apply_nodes(&world, &program);
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(world.members("kube"), 3);
    assert_eq!(world.all_writes().len(), 1, "{:#?}", world.all_writes());
    let journal = world.azure.journal();
    let lists = journal.entries.iter().filter(|entry| entry.path.ends_with("/networkInterfaces")).count();
    assert_eq!(lists, 1);
    world.azure.clear_journal();
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(world.all_writes(), Vec::<String>::new());
}

/// LB-421: new machines of a flexible scale set are created from its model, and are members before they are nodes.
#[tokio::test(start_paused = true)]
async fn a_new_machine_of_a_flexible_set_is_a_member_at_once() {
    let world = World::of(&mixed());
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    world.azure.clear_journal();
    world.azure.scale(&id("virtualMachineScaleSets", "flexible"), 2).unwrap();
    assert_eq!(world.members("kube"), 5);
    apply_nodes(&world, &program);
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(world.all_writes(), Vec::<String>::new());
}

/// Interfaces are separate resources: the failure of one does not affect the others.
#[tokio::test(start_paused = true)]
async fn an_interface_that_cannot_be_written_does_not_hold_up_the_others() {
    let world = World::of(&standalone(4));
    let program = world.start();
    let fault = |action: FaultAction| Fault::new(action).on_method("PUT").on_type(INTERFACES);
    world.azure.inject(fault(refusal(409, "ScopeLocked")).on_resource("m1-nic"));
    world.azure.inject(fault(refusal(404, "ResourceNotFound")).on_resource("m2-nic"));
    let served = world.serve(&program, service("web", &[80])).await.unwrap();
    let texts: Vec<&str> = served.notices.iter().map(|notice| notice.message.as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("ScopeLocked") && text.contains("m1")), "{texts:?}");
    assert_eq!(world.members("kube"), 2);
    // It is retried without further events.
    world.azure.clear_faults();
    assert!(program.provider.waits_for_machines());
    program.provider.update_waiting_machines(LogicalTime::now()).await.unwrap();
    assert_eq!(world.members("kube"), 4);
    assert!(!program.provider.waits_for_machines());
    // If no machine at all may join, the Service fails.
    let world = World::of(&standalone(2));
    let program = world.start();
    world.azure.inject(fault(refusal(409, "ScopeLocked")));
    let failed = world.serve(&program, service("web", &[80])).await.unwrap_err().to_string();
    assert!(failed.contains("ScopeLocked"), "{failed}");
}

/// Another program writes the interface between our read and our write.
#[tokio::test(start_paused = true)]
async fn an_interface_that_others_changed_is_planned_again_and_keeps_their_change() {
    let world = World::of(&standalone(2));
    let program = world.start();
    let nic = shape().interface(&StandaloneMachine::new("m0"));
    let interfere = FaultAction::Interfere { id: None, patch: json!({"tags": {"theirs": "yes"}}) };
    let fault = Fault::new(interfere).on_method("PUT").on_type(INTERFACES).on_resource("m0-nic");
    world.azure.inject(fault.times(1));
    world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(world.members("kube"), 2);
    assert!(world.puts(INTERFACES).contains(&412), "{:?}", world.puts(INTERFACES));
    assert_eq!(world.azure.document(&nic).unwrap()["tags"]["theirs"], "yes");
}

/// LB-423.
#[tokio::test(start_paused = true)]
async fn ten_interfaces_are_written_at_a_time() {
    let world = World::of(&standalone(25));
    world.azure.inject(Fault::new(FaultAction::Delay { ms: 10_000 }).on_method("PUT").on_type(INTERFACES));
    let program = world.start();
    let begin = tokio::time::Instant::now();
    world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(world.members("kube"), 25);
    assert!((30..40).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
}

/// LB-422: all machines leave before the load balancer is deleted. When another client deletes it, Azure removes the
/// references: earlier reads are outdated.
#[tokio::test(start_paused = true)]
async fn lb_422_interfaces_leave_with_a_load_balancer_and_join_the_next_one() {
    let world = World::of(&mixed());
    let program = world.start();
    for _ in 0..2 {
        world.serve(&program, service("web", &[80])).await.unwrap();
        assert_eq!(world.members("kube"), 4);
        world.azure.clear_journal();
        world.remove(&program, &service("web", &[80])).await.unwrap();
        assert_eq!(world.writes(INTERFACES), 3);
        assert!(world.load_balancer("kube").is_none());
    }
    let world = World::of(&standalone(2));
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    world.azure.delete(&id("loadBalancers", "kube")).unwrap();
    program.provider.ensure(&world.stored(&service("web", &[80])), LogicalTime::now()).await.unwrap();
    assert_eq!(world.members("kube"), 2);
}

/// LB-184, LB-185: from interfaces to addresses and back.
#[tokio::test(start_paused = true)]
async fn machines_of_every_kind_leave_for_addresses_and_come_back() {
    let world = World::of(&mixed());
    let by_address = json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"});
    for (config, interfaces) in [(json!({}), 3), (by_address, 0), (json!({}), 3)] {
        let program = world.start_configured(&config);
        world.serve(&program, service("web", &[80])).await.unwrap();
        let in_pools = |one: &&Value| {
            one["properties"]["ipConfigurations"].to_string().contains("/backendAddressPools/")
        };
        let members = world.documents(INTERFACES);
        assert_eq!(members.iter().filter(in_pools).count(), interfaces, "{config}");
    }
}

/// LB-181: also if it was the last one, and no other node is a virtual machine.
#[tokio::test(start_paused = true)]
async fn lb_181_an_interface_whose_machine_is_gone_leaves() {
    let alone = StandaloneMachine::new("m0");
    let world = World::of(&Shape { machines: vec![alone.clone()], ..shape() });
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(world.members("kube"), 4);
    world.azure.delete(&shape().machine(&alone)).unwrap();
    let interface = world.azure.document(&shape().interface(&alone)).unwrap();
    assert_eq!(interface["properties"]["virtualMachine"], Value::Null);
    program.provider.state().remove_node("m0");
    world.azure.clear_journal();
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(world.members("kube"), 3);
    assert_eq!(world.all_writes().len(), 1, "{:#?}", world.all_writes());
}

/// Clusters of uniform scale sets read no interfaces.
#[tokio::test(start_paused = true)]
async fn interfaces_are_read_only_where_nodes_are_virtual_machines() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    let journal = world.azure.journal();
    assert!(journal.entries.iter().all(|entry| !entry.path.contains("networkInterfaces")));
}

/// The writes that Azure refused, with their error codes.
fn refused_writes(world: &World) -> Vec<String> {
    let entries = world.azure.journal().entries;
    let refused = entries.iter().filter(|entry| entry.method != "GET" && entry.status >= 400);
    refused
        .map(|entry| format!("{} {} {:?} {}", entry.method, entry.path, entry.code, entry.status))
        .collect()
}

/// U2: Azure treats an interface and the load balancers of its pools as parts of one resource: our writes of both do
/// not overlap, whatever causes them.
#[tokio::test(start_paused = true)]
async fn interfaces_and_their_load_balancers_are_not_written_at_once() {
    // At most ten of the many start at a time, so that writes go on for long.
    for machines in [3, 60] {
        let world = World::of(&standalone(machines));
        let seconds = Duration::from_secs;
        let profile = LatencyProfile::instant()
            .with("*", PUBLIC_IPS, seconds(3))
            .with("*", LOAD_BALANCERS, seconds(10))
            .with("*", INTERFACES, seconds(2));
        world.azure.set_latency(profile);
        let program = world.start();
        let (world, program) = (&world, &program);
        // External and internal in turn, one more each second.
        let come = (0..30).map(|number| async move {
            tokio::time::sleep(seconds(number)).await;
            let one = service(&format!("s{number}"), &[80 + i32::try_from(number).unwrap()]);
            world.serve(program, if number % 2 == 0 { one } else { internal(one) }).await.unwrap();
        });
        futures::future::join_all(come).await;
        assert_eq!(refused_writes(world), Vec::<String>::new());

        // Machines are added, and a Service changes from internal to external.
        for number in machines..machines * 2 {
            let machine = StandaloneMachine::new(&format!("m{number}"));
            shape().lay_out_machine(&world.azure, &machine).unwrap();
        }
        apply_nodes(world, program);
        world.azure.clear_journal();
        let (nodes, turned) = tokio::join!(
            program.provider.update_nodes(LogicalTime::now()),
            world.serve(program, service("s1", &[81])),
        );
        nodes.unwrap();
        turned.unwrap();
        assert_eq!(world.members("kube"), machines * 2);
        assert_eq!(refused_writes(world), Vec::<String>::new());
    }
}

/// A load balancer whose write failed late is written again, although interfaces in its pools were written before.
#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_failed_late_is_written_after_its_interfaces() {
    let world = World::of(&standalone(3));
    let program = world.start();
    world.serve(&program, service("first", &[80])).await.unwrap();
    let late = FaultAction::FailOperation { code: "InternalServerError".into(), message: "not now".into() };
    world.azure.inject(Fault::new(late).on_method("PUT").on_type(LOAD_BALANCERS).times(1));
    let _ = world.serve(&program, service("second", &[81])).await;
    world.serve(&program, service("second", &[81])).await.unwrap();
    world.serve(&program, service("third", &[82])).await.unwrap();
    assert_eq!(world.members("kube"), 3);
}
