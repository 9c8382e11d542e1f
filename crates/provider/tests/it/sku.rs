//! Load balancers of SKU Basic are replaced by those of SKU Standard.

use std::net::IpAddr;
use std::sync::Arc;

use azure_simulator::{Fault, FaultAction};
use cloud::{LoadBalancers, LogicalTime};
use k8s::Node;
use serde_json::json;
use simulated_cluster::{NodePool, Shape, StandaloneMachine};
use testkit::make_basic;

use crate::world::*;

/// The writes to a type, in order: method and name.
fn order(world: &World) -> Vec<String> {
    let writes = world.all_writes();
    let short = |write: &String| {
        let (method, rest) = write.split_once(' ').unwrap();
        let path = rest.split(['?', ' ']).next().unwrap();
        let parts: Vec<&str> = path.rsplit('/').take(2).collect();
        format!("{method} {}/{}", parts[1], parts[0])
    };
    writes.iter().map(short).collect()
}

/// LB-205, SE-22: addresses become static, machines leave, the load balancers are deleted; then the public IP becomes a
/// standard one, and the load balancers are created again. Addresses stay, and a second reconcile writes nothing.
#[tokio::test(start_paused = true)]
async fn lb_205_basic_load_balancers_are_deleted_and_made_again() {
    for members in ["nodeIPConfiguration", "nodeIP"] {
        let extra = json!({"loadBalancerBackendPoolConfigurationType": members});
        let world = World::new();
        let program = world.start_configured(&extra);
        let outside = world.serve(&program, service("web", &[80])).await.unwrap().addresses;
        let inside = world.serve(&program, internal(service("db", &[5432]))).await.unwrap().addresses;
        drop(program);
        make_basic(&world.azure);
        world.azure.clear_journal();

        let program = world.start_configured(&extra);
        let (web, db) = (world.stored(&service("web", &[80])), world.stored(&service("db", &[5432])));
        let (web, db) = futures::join!(world.ensure(&program, &web), world.ensure(&program, &db));
        let found: [Vec<IpAddr>; 2] = [web.unwrap().addresses, db.unwrap().addresses];
        assert_eq!(found, [outside, inside], "{members}");
        let order = order(&world);
        let of = |what: &str| {
            let found: Vec<usize> = (0..order.len()).filter(|at| order[*at] == what).collect();
            assert!(!found.is_empty(), "{what}: {order:#?}");
            found
        };
        let public_ip = of("PUT publicIPAddresses/kube-aweb");
        assert_eq!(public_ip.len(), 2, "{order:#?}");
        let deleted = of("DELETE loadBalancers/kube");
        assert!(public_ip[0] < deleted[0] && deleted[0] < public_ip[1], "{order:#?}");
        let made = of("PUT loadBalancers/kube");
        assert!(public_ip[1] < made[0] && (deleted.len(), made.len()) == (1, 1), "{order:#?}");
        assert_eq!(of("DELETE loadBalancers/kube-internal").len(), 1, "{order:#?}");
        for name in ["kube", "kube-internal"] {
            assert_eq!(world.load_balancer(name).unwrap()["sku"]["name"], "Standard");
        }
        if members == "nodeIPConfiguration" {
            assert_eq!((world.members("kube"), world.members("kube-internal")), (3, 3));
        }
        world.azure.clear_journal();
        let again = world.start_configured(&extra);
        for name in ["web", "db"] {
            world.ensure(&again, &world.stored(&service(name, &[80]))).await.unwrap();
        }
        assert_eq!(world.all_writes(), [""; 0], "{members}");
    }
}

/// LB-455: a load balancer of SKU Basic is kept while it contains foreign parts.
#[tokio::test(start_paused = true)]
async fn lb_455_a_basic_load_balancer_that_others_use_stays() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    drop(program);
    make_basic(&world.azure);
    let pool = id("loadBalancers", "kube").child("backendAddressPools", "theirs");
    let kube = id("loadBalancers", "kube");
    world
        .azure
        .edit(&kube, |document| {
            let pools = document["properties"]["backendAddressPools"].as_array_mut().unwrap();
            pools.push(json!({"name": pool.name()}));
        })
        .unwrap();
    world.azure.clear_journal();
    let program = world.start();
    let refused = world.ensure(&program, &world.stored(&service("web", &[80]))).await.unwrap_err();
    assert!(refused.to_string().contains("move or delete backend pool theirs"), "{refused}");
    assert_eq!(world.all_writes(), [""; 0]);
    world
        .azure
        .edit(&kube, |document| {
            let pools = document["properties"]["backendAddressPools"].as_array_mut().unwrap();
            pools.retain(|pool| pool["name"] != "theirs");
        })
        .unwrap();
    world.azure.clear_journal();
    world.ensure(&program, &world.stored(&service("web", &[80]))).await.unwrap();
    assert_eq!(world.load_balancer("kube").unwrap()["sku"]["name"], "Standard");
}

/// LB-455: it is also kept if foreign parts are added while it is emptied.
#[tokio::test(start_paused = true)]
async fn lb_455_what_comes_while_it_is_emptied_keeps_a_basic_load_balancer() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    drop(program);
    make_basic(&world.azure);
    let kube = id("loadBalancers", "kube");
    let pools = world.load_balancer("kube").unwrap()["properties"]["backendAddressPools"].clone();
    let mut pools: Vec<_> =
        pools.as_array().unwrap().iter().map(|pool| json!({"name": pool["name"]})).collect();
    pools.push(json!({"name": "theirs"}));
    let theirs = FaultAction::Interfere {
        id: Some(kube),
        patch: json!({"properties": {"backendAddressPools": pools}}),
    };
    world.azure.inject(Fault::new(theirs).on_method("PUT").on_type(SCALE_SETS).times(1));
    world.azure.clear_journal();
    let program = world.start();
    let refused = world.ensure(&program, &world.stored(&service("web", &[80]))).await.unwrap_err();
    assert!(refused.to_string().contains("move or delete backend pool theirs"), "{refused}");
    assert_eq!(world.load_balancer("kube").unwrap()["sku"]["name"], "Basic");
}

/// LB-011, LB-019: with SKU Basic each load balancer has the machines of its scale set, also those that are added
/// later; a Service that names another set moves there. Afterwards nothing is left to do, and the preview says so.
#[tokio::test(start_paused = true)]
async fn lb_019_basic_load_balancers_serve_one_set_each() {
    let extra = json!({"loadBalancerSku": "basic", "primaryScaleSetName": "pool"});
    let shape =
        Shape { pools: vec![NodePool::new("pool", "pool", 2), NodePool::new("more", "more", 1)], ..shape() };
    let world = World::of(&shape);
    let program = world.start_configured(&extra);
    const MODE: &str = "azure-load-balancer-mode";
    let web = world.serve(&program, service("web", &[80])).await.unwrap().addresses;
    world.serve(&program, internal(annotated(service("db", &[5432]), MODE, "more"))).await.unwrap();
    assert_eq!(world.load_balancer("kube").unwrap()["sku"]["name"], "Basic");
    assert_eq!((world.members("kube"), world.members("more-internal")), (2, 1));

    world.azure.scale(&id("virtualMachineScaleSets", "more"), 2).unwrap();
    world.register_nodes();
    world.nodes.lock().iter().for_each(|node| program.provider.state().apply_node(node.clone()));
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!((world.members("kube"), world.members("more-internal")), (2, 2), "they have joined");

    let moved = annotated(service("web", &[80]), MODE, "more");
    assert_eq!(world.serve(&program, moved).await.unwrap().addresses, web, "the address goes along");
    assert!(world.load_balancer("kube").is_none(), "no Service is left on it");
    assert_eq!((world.members("more"), world.members("more-internal")), (2, 2));
    world.azure.clear_journal();
    let again = world.start_configured(&extra);
    for name in ["web", "db"] {
        world.ensure(&again, &world.stored(&service(name, &[80]))).await.unwrap();
    }
    again.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(world.all_writes(), [""; 0]);
    let plan = again.provider.dry_run().await.unwrap();
    assert!(plan.plan.is_empty() && plan.refused.is_empty(), "{plan}");

    for name in ["web", "db"] {
        world.remove(&again, &service(name, &[80])).await.unwrap();
    }
    assert!(world.documents(LOAD_BALANCERS).is_empty() && world.documents(PUBLIC_IPS).is_empty());
}

/// LB-439: a node whose machine Azure does not list yet is retried until it is behind the load balancer of its set.
#[tokio::test(start_paused = true)]
async fn lb_439_a_node_whose_machine_is_not_listed_yet_joins_the_load_balancer_of_its_set_later() {
    let extra = json!({
        "loadBalancerSku": "basic", "vmType": "standard", "primaryAvailabilitySetName": "workers",
    });
    let machine = |name: &str| StandaloneMachine::new(name).in_availability_set("workers");
    let shape = Shape { pools: Vec::new(), machines: vec![machine("first")], ..shape() };
    let world = World::of(&shape);
    let mut late = Node::clone(&world.nodes.lock()[0]);
    late.metadata.name = Some("second".to_owned());
    late.spec.provider_id = late.spec.provider_id.replace("/first", "/second");
    let program = world.start_configured(&extra);
    world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(world.members("kube"), 1);
    assert!(!program.provider.waits_for_machines(), "all nodes are known");

    // It is a node before Azure lists its machine.
    program.provider.state().apply_node(Arc::new(late));
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert!(program.provider.waits_for_machines());
    program.provider.update_waiting_machines(LogicalTime::now()).await.unwrap();
    assert_eq!(world.members("kube"), 1);
    shape.lay_out_machine(&world.azure, &machine("second")).unwrap();
    program.provider.update_waiting_machines(LogicalTime::now()).await.unwrap();
    assert_eq!(world.members("kube"), 2);
    assert!(!program.provider.waits_for_machines());
}

/// NODE-083: with SKU Basic, too, the machine of a deleted node leaves, although its set is no longer known.
#[tokio::test(start_paused = true)]
async fn node_083_the_machine_of_a_deleted_node_leaves_the_load_balancer_of_its_set() {
    let placed = |name: &str, set: &str| StandaloneMachine::new(name).in_availability_set(set);
    let scale_sets =
        Shape { pools: vec![NodePool::new("pool", "pool", 2), NodePool::new("more", "more", 2)], ..shape() };
    let machines =
        vec![placed("a", "pool"), placed("b", "pool"), placed("more-a", "more"), placed("more-b", "more")];
    let availability_sets = Shape { pools: Vec::new(), machines, ..shape() };
    for (shape, extra) in [
        (scale_sets, json!({"primaryScaleSetName": "pool"})),
        (availability_sets, json!({"vmType": "standard", "primaryAvailabilitySetName": "pool"})),
    ] {
        let world = World::of(&shape);
        let mut config = json!({"loadBalancerSku": "basic"});
        config.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let program = world.start_configured(&config);
        world.serve(&program, service("web", &[80])).await.unwrap();
        let db = annotated(service("db", &[5432]), "azure-load-balancer-mode", "more");
        world.serve(&program, db).await.unwrap();
        let members = || (world.members("kube"), world.members("more"));
        assert_eq!(members(), (2, 2));
        let nodes = world.nodes.lock().clone();
        for node in nodes {
            let without = if node.name().starts_with("more") { (2, 1) } else { (1, 2) };
            program.provider.state().remove_node(node.name());
            program.provider.update_nodes(LogicalTime::now()).await.unwrap();
            assert_eq!(members(), without, "without {}", node.name());
            world.azure.clear_journal();
            program.provider.update_nodes(LogicalTime::now()).await.unwrap();
            assert_eq!(world.all_writes(), [""; 0]);
            program.provider.state().apply_node(node);
            program.provider.update_nodes(LogicalTime::now()).await.unwrap();
            assert_eq!(members(), (2, 2));
        }
    }
}
