//! Pools of addresses (`nodeIP`): the load balancer's own writes bring them in line with the nodes.

use azure_simulator::{Fault, FaultAction};
use cloud::{LoadBalancers, LogicalTime};
use serde_json::{Value, json};

use crate::world::*;

fn by_address() -> Value {
    json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"})
}

/// The addresses in the pools of a load balancer.
fn addresses(world: &World, load_balancer: &str) -> Vec<String> {
    let document = world.load_balancer(load_balancer).unwrap();
    let pools = document["properties"]["backendAddressPools"].as_array().unwrap();
    let entries =
        pools.iter().flat_map(|pool| pool["properties"]["loadBalancerBackendAddresses"].as_array().unwrap());
    let address = |entry: &Value| entry["properties"]["ipAddress"].as_str().map(str::to_owned);
    let mut found: Vec<String> = entries.filter_map(address).collect();
    found.sort();
    found
}

/// Adds a fourth machine, or deletes the last one.
fn scale(world: &World, program: &Program, machines: usize) {
    world.azure.scale(&id("virtualMachineScaleSets", "pool"), machines as u64).unwrap();
    for node in world.nodes.lock().iter() {
        program.provider.state().remove_node(node.name());
    }
    world.register_nodes();
    for node in world.nodes.lock().iter() {
        program.provider.state().apply_node(node.clone());
    }
}

/// LB-187: members are written with the load balancer; a node that joins or leaves is one write for each load balancer,
/// and a restart writes nothing.
#[tokio::test(start_paused = true)]
async fn nodes_come_and_go_with_one_write_for_each_load_balancer() {
    let world = World::new();
    let program = world.start_configured(&by_address());
    world.serve(&program, service("web", &[80])).await.unwrap();
    world.serve(&program, internal(service("inside", &[80]))).await.unwrap();
    assert_eq!(addresses(&world, "kube"), ["10.240.0.4", "10.240.0.5", "10.240.0.6"]);
    assert_eq!((world.writes(LOAD_BALANCERS), world.writes(INSTANCES), world.writes(SCALE_SETS)), (2, 0, 0));
    for machines in [4, 3] {
        scale(&world, &program, machines);
        world.azure.clear_journal();
        program.provider.update_nodes(LogicalTime::now()).await.unwrap();
        assert_eq!(world.all_writes().len(), 2, "{:#?}", world.all_writes());
        // Reads of load balancers and the security group for foreign changes (D1), and of each write's result.
        assert!(world.reads() <= 4, "{} reads", world.reads());
        assert_eq!(
            (addresses(&world, "kube").len(), addresses(&world, "kube-internal").len()),
            (machines, machines)
        );
    }
    world.azure.clear_journal();
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    let again = world.start_configured(&by_address());
    for service in ["web", "inside"] {
        let service = world.services.lock()[&key(service).to_string()].clone();
        world.ensure(&again, &service).await.unwrap();
    }
    assert_eq!(world.all_writes(), Vec::<String>::new());
}

/// LB-206: a pool that another client wrote meanwhile is read and planned again; the foreign change stays.
#[tokio::test(start_paused = true)]
async fn lb_206_a_lost_race_for_a_pool_is_planned_again() {
    let world = World::new();
    let program = world.start_configured(&by_address());
    world.serve(&program, service("web", &[80])).await.unwrap();
    scale(&world, &program, 4);
    world
        .azure
        .edit(&id("loadBalancers", "kube"), |document| document["tags"] = json!({"theirs": "1"}))
        .unwrap();
    world.azure.clear_journal();
    // Uses the cached state.
    program.provider.update_nodes(LogicalTime::BEGINNING).await.unwrap();
    assert_eq!(world.puts(LOAD_BALANCERS), [412, 200]);
    assert_eq!(addresses(&world, "kube").len(), 4);
    assert_eq!(world.load_balancer("kube").unwrap()["tags"]["theirs"], "1");
}

/// LB-185, LB-184: from interfaces to addresses and back; no member is left in between, models of scale sets included.
#[tokio::test(start_paused = true)]
async fn pools_change_from_interfaces_to_addresses_and_back() {
    let world = World::new();
    let first = world.start();
    world.serve(&first, service("web", &[80])).await.unwrap();
    assert_eq!(world.members("kube"), 3);
    let web = world.services.lock()[&key("web").to_string()].clone();
    let second = world.start_configured(&by_address());
    world.ensure(&second, &web).await.unwrap();
    assert_eq!((world.members("kube"), addresses(&world, "kube").len()), (0, 3));
    // A machine that is added now is created from the model.
    scale(&world, &second, 4);
    second.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!((world.members("kube"), addresses(&world, "kube").len()), (0, 4));
    let third = world.start();
    world.ensure(&third, &web).await.unwrap();
    assert_eq!((world.members("kube"), addresses(&world, "kube").len()), (4, 0));
    for extra in [by_address(), json!({}), by_address()] {
        let program = world.start_configured(&extra);
        world.ensure(&program, &web).await.unwrap();
        world.azure.clear_journal();
        world.ensure(&program, &web).await.unwrap();
        program.provider.update_nodes(LogicalTime::now()).await.unwrap();
        assert_eq!(world.all_writes(), Vec::<String>::new(), "{extra}");
    }
}

/// Two load balancers change the kind of their members: each machine is written once, and the preview says so.
#[tokio::test(start_paused = true)]
async fn what_is_previewed_for_two_load_balancers_is_written_once() {
    let world = World::new();
    let first = world.start();
    world.serve(&first, service("web", &[80])).await.unwrap();
    world.serve(&first, internal(service("inside", &[80]))).await.unwrap();
    for extra in [by_address(), json!({})] {
        let program = world.start_configured(&extra);
        let planned = program.provider.dry_run().await.unwrap();
        let names = |ids: &mut dyn Iterator<Item = String>| {
            let mut names: Vec<String> = ids.map(|id| id.to_lowercase()).collect();
            names.sort();
            names
        };
        let planned = names(&mut planned.plan.steps.iter().map(|step| step.target.as_str().to_owned()));
        world.azure.clear_journal();
        let services = ["web", "inside"].map(|name| world.services.lock()[&key(name).to_string()].clone());
        let (web, inside) =
            tokio::join!(world.ensure(&program, &services[0]), world.ensure(&program, &services[1]));
        web.unwrap();
        inside.unwrap();
        let journal = world.azure.journal();
        let writes = journal.entries.iter().filter(|entry| entry.method == "PUT" || entry.method == "PATCH");
        let done = names(&mut writes.filter_map(|entry| entry.resource.clone()));
        assert_eq!(planned, done, "{extra}");
        assert_eq!(planned.len(), 6, "a model, three machines, two load balancers: {planned:#?}");
    }
}

/// The load balancer is deleted with its last Service without reading any machine.
#[tokio::test(start_paused = true)]
async fn the_last_service_takes_pools_of_addresses_along() {
    let world = World::new();
    let program = world.start_configured(&by_address());
    world.serve(&program, service("web", &[80])).await.unwrap();
    world.azure.clear_journal();
    world.remove(&program, &service("web", &[80])).await.unwrap();
    assert_eq!(world.load_balancer("kube"), None);
    let journal = world.azure.journal();
    assert!(!journal.entries.iter().any(|entry| entry.path.contains("virtualMachineScaleSets")));
}

/// While Azure is busy, a change of nodes waits and is then written; nothing is lost.
#[tokio::test(start_paused = true)]
async fn a_change_of_nodes_outlasts_a_busy_azure() {
    let world = World::new();
    let program = world.start_configured(&by_address());
    world.serve(&program, service("web", &[80])).await.unwrap();
    scale(&world, &program, 4);
    let busy = FaultAction::Fail { status: 503, code: "ServerBusy".into(), message: "busy".into() };
    world.azure.inject(Fault::new(busy).on_method("PUT").on_type(LOAD_BALANCERS).times(3));
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(addresses(&world, "kube").len(), 4);
}

/// LB-186: with `enableMigrateToIPBasedBackendPoolAPI` Azure converts the interfaces to addresses; the pools are never
/// empty. A conversion that does not end blocks nothing.
#[tokio::test(start_paused = true)]
async fn lb_186_azure_migrates_pools_itself() {
    for gets_stuck in [false, true] {
        let world = World::new();
        world.serve(&world.start(), service("web", &[80])).await.unwrap();
        let web = world.services.lock()[&key("web").to_string()].clone();
        if gets_stuck {
            let accepted = Fault::new(FaultAction::Pretend { status: 200 });
            world.azure.inject(accepted.on_method("POST"));
        }
        let mut extra = by_address();
        extra["enableMigrateToIPBasedBackendPoolAPI"] = true.into();
        let program = world.start_configured(&extra);
        world.azure.clear_journal();
        let begin = tokio::time::Instant::now();
        world.ensure(&program, &web).await.unwrap();
        assert_eq!(begin.elapsed().as_secs() >= 600, gets_stuck, "{:?}", begin.elapsed());
        assert_eq!((world.members("kube"), addresses(&world, "kube").len()), (0, 3));
        let writes = world.all_writes();
        let first = &writes[0];
        assert!(first.starts_with("POST") && first.contains("/migrateToIpBased 200"), "{writes:#?}");
        scale(&world, &program, 4);
        program.provider.update_nodes(LogicalTime::now()).await.unwrap();
        assert_eq!((world.members("kube"), addresses(&world, "kube").len()), (0, 4));
    }
}

/// Nodes that are added during every write are new intents, not a conflict: no owner fails because of them, and a
/// Service whose own part is written does not wait for them.
#[tokio::test(start_paused = true)]
async fn nodes_that_come_during_every_write_fail_nobody() {
    let world = World::new();
    let program = world.start_configured(&by_address());
    world.serve(&program, service("web", &[80])).await.unwrap();
    world.slow();
    let come = async {
        for number in 0..40 {
            let mut node = k8s::Node::clone(&world.nodes.lock()[0]);
            node.metadata.name = Some(format!("late-{number}"));
            node.status.addresses[0].address = format!("10.240.1.{number}");
            program.provider.state().apply_node(std::sync::Arc::new(node));
            tokio::time::sleep(std::time::Duration::from_secs(4)).await;
        }
    };
    let begin = tokio::time::Instant::now();
    let update = async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        program.provider.update_nodes(LogicalTime::now()).await
    };
    let serve = async {
        world.serve(&program, service("more", &[81])).await.unwrap();
        begin.elapsed().as_secs()
    };
    let ((), updated, served) = tokio::join!(come, update, serve);
    updated.unwrap();
    assert!(served < 40, "it waited {served} s");
    assert_eq!(addresses(&world, "kube").len(), 43);
}

/// The admin states of entries in a load balancer's pools that differ from the default, by address or interface.
fn states(world: &World, load_balancer: &str) -> Vec<String> {
    let document: azure_types::LoadBalancer =
        serde_json::from_value(world.load_balancer(load_balancer).unwrap()).unwrap();
    let entries = planner::admin_state::entries(&document);
    entries
        .into_iter()
        .filter(|(_, state)| state.as_str() != "None")
        .map(|(_, state)| state.as_str().to_owned())
        .collect()
}

fn taint(world: &World, program: &Program, number: usize, key: Option<&str>) {
    let mut nodes = world.nodes.lock();
    let mut node = k8s::Node::clone(&nodes[number]);
    let taint =
        |key: &str| k8s::Taint { key: key.to_owned(), effect: "NoExecute".into(), ..Default::default() };
    node.spec.taints = key.map(taint).into_iter().collect();
    nodes[number] = std::sync::Arc::new(node);
    program.provider.state().apply_node(nodes[number].clone());
}

const OUT_OF_SERVICE: Option<&str> = Some(k8s::names::TAINT_OUT_OF_SERVICE);

/// LB-350, LB-351, LB-355, LB-356: whatever the members are, draining nodes are down on both load balancers with one
/// write each, whenever they joined; ensuring Services does not change that.
#[tokio::test(start_paused = true)]
async fn nodes_that_drain_are_down_on_all_load_balancers() {
    for mut extra in [by_address(), json!({})] {
        extra["enableLoadBalancerAdminState"] = true.into();
        let world = World::new();
        let program = world.start_configured(&extra);
        let draining = || LoadBalancers::update_draining_nodes(&program.provider);
        world.serve(&program, service("web", &[80])).await.unwrap();
        world.serve(&program, internal(service("inside", &[80]))).await.unwrap();
        taint(&world, &program, 1, OUT_OF_SERVICE);
        world.azure.clear_journal();
        let told = draining().await.unwrap();
        assert_eq!(told.values().filter(|is_down| **is_down).count(), 1, "{told:?}");
        assert_eq!(world.all_writes().len(), 2, "{:#?}", world.all_writes());
        for name in ["kube", "kube-internal"] {
            assert_eq!(states(&world, name), ["Down"], "{extra}");
        }
        // A node that joins while it drains.
        scale(&world, &program, 4);
        taint(&world, &program, 1, OUT_OF_SERVICE);
        taint(&world, &program, 3, OUT_OF_SERVICE);
        program.provider.update_nodes(LogicalTime::now()).await.unwrap();
        assert_eq!(states(&world, "kube"), ["Down", "Down"], "{extra}");
        world.azure.clear_journal();
        for name in ["web", "inside"] {
            let service = world.services.lock()[&key(name).to_string()].clone();
            world.ensure(&program, &service).await.unwrap();
        }
        draining().await.unwrap();
        assert_eq!(world.all_writes(), Vec::<String>::new(), "{extra}");
        taint(&world, &program, 1, None);
        taint(&world, &program, 3, None);
        let told = draining().await.unwrap();
        assert!(told.values().all(|is_down| !is_down) && told.len() == 4, "{told:?}");
        assert_eq!((states(&world, "kube").len(), world.all_writes().len()), (0, 2));
    }
}

/// One Service, and a node that has started to drain.
async fn with_a_node_that_drains() -> (World, Program) {
    let world = World::new();
    let mut extra = by_address();
    extra["enableLoadBalancerAdminState"] = true.into();
    let program = world.start_configured(&extra);
    world.serve(&program, service("web", &[80])).await.unwrap();
    taint(&world, &program, 0, OUT_OF_SERVICE);
    (world, program)
}

/// LB-358: another client wrote the load balancer meanwhile: it is read, and the admin state is written on top of that.
#[tokio::test(start_paused = true)]
async fn lb_358_a_lost_race_for_a_state_is_planned_again() {
    let (world, program) = with_a_node_that_drains().await;
    world
        .azure
        .edit(&id("loadBalancers", "kube"), |document| document["tags"] = json!({"theirs": "1"}))
        .unwrap();
    world.azure.clear_journal();
    LoadBalancers::update_draining_nodes(&program.provider).await.unwrap();
    assert_eq!((world.puts(LOAD_BALANCERS), states(&world, "kube").len()), (vec![412, 200], 1));
    assert_eq!(world.load_balancer("kube").unwrap()["tags"]["theirs"], "1");
}

/// LB-359, LB-363: Azure's refusal is returned to the caller; without the key no request is sent.
#[tokio::test(start_paused = true)]
async fn lb_359_lb_363_failures_are_given_and_nothing_is_asked_in_vain() {
    let (world, program) = with_a_node_that_drains().await;
    let fault = FaultAction::Fail { status: 500, code: "InternalServerError".into(), message: "oh".into() };
    world.azure.inject(Fault::new(fault).on_method("PUT").on_type(LOAD_BALANCERS));
    assert!(LoadBalancers::update_draining_nodes(&program.provider).await.is_err());
    world.azure.clear_faults();
    LoadBalancers::update_draining_nodes(&program.provider).await.unwrap();
    assert_eq!(states(&world, "kube").len(), 1);
    let off = world.start_configured(&by_address());
    taint(&world, &off, 1, OUT_OF_SERVICE);
    world.azure.clear_journal();
    assert!(!off.provider.drains_nodes());
    LoadBalancers::update_draining_nodes(&off.provider).await.unwrap();
    off.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(world.all_writes(), Vec::<String>::new());
}
