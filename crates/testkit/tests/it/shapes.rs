//! Worlds of several shapes.

use std::time::Duration;

use azure_simulator::LatencyProfile;
use azure_types::ResourceId;
use serde_json::json;
use testkit::{Finding, NodePool, StandaloneMachine, World, run, service};

const MINUTE: Duration = Duration::from_secs(60);
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

#[test]
fn a_service_of_both_families_has_an_address_of_each_in_a_dual_stack_world() {
    run(async || {
        let world = World::builder().dual_stack().latency(LatencyProfile::typical()).start().await;
        world.create(service("shop/web").both_families());
        world.create(service("shop/inside").both_families().internal());
        world.settle().await;
        for key in ["shop/web", "shop/inside"] {
            let addresses = world.addresses(key);
            assert_eq!(addresses.iter().filter(|a| a.is_ipv6()).count(), 1, "{key}: {addresses:?}");
            assert_eq!(addresses.len(), 2, "{key}: {addresses:?}");
        }
        world.delete("shop/web");
        world.delete("shop/inside");
        world.settle().await;
    });
}

/// What the node controller makes of them afterwards is not the kubelets' matter.
#[test]
fn kubelets_report_an_address_of_each_family() {
    run(async || {
        let world = World::builder().dual_stack().nodes(2).control_plane().build();
        world.until("nodes have registered", MINUTE, |world| world.node_names().len() == 3).await;
        for name in world.node_names() {
            let node = world.node(&name);
            let addresses = node["status"]["addresses"].as_array().unwrap();
            let internal = addresses.iter().filter(|address| address["type"] == "InternalIP");
            let families: Vec<bool> =
                internal.map(|address| address["address"].as_str().unwrap().contains(':')).collect();
            assert_eq!(families, [false, true], "{name}: {addresses:?}");
        }
    });
}

#[test]
fn an_internal_service_takes_its_address_from_the_subnet_that_it_names() {
    run(async || {
        let world = World::builder().subnet("fronts", &["10.241.7.0/24"]).start().await;
        world.create(
            service("shop/db").internal().annotation("azure-load-balancer-internal-subnet", "fronts"),
        );
        world.settle().await;
        assert!(
            world.address("shop/db").to_string().starts_with("10.241.7."),
            "{}",
            world.address("shop/db")
        );
    });
}

#[test]
fn machines_of_all_pools_take_traffic() {
    run(async || {
        let world = World::builder().nodes(2).pool(NodePool::new("more", "more", 2)).start().await;
        world.create(service("shop/web"));
        world.settle().await;
        assert_eq!(world.node_names().len(), 4);
        assert_eq!(world.reached(world.address("shop/web"), 80), world.node_names());
    });
}

#[test]
fn the_control_plane_gets_no_traffic() {
    run(async || {
        let world = World::builder().nodes(2).control_plane().start().await;
        assert_eq!(world.node_names().len(), 3);
        world.create(service("shop/web"));
        world.settle().await;
        let reached = world.reached(world.address("shop/web"), 80);
        assert_eq!(reached.len(), 2);
        assert!(!reached.contains(&"control-plane-0".to_owned()));
    });
}

/// Standalone machines, one of them with two interfaces, machines of an availability set in a group of its own, and
/// flexible scale sets, beside a uniform one whose machines have the same prefix: packets reach all of them, by both
/// families, wherever the Service is; and all are gone from the pools when it is.
#[test]
fn machines_of_every_kind_take_traffic() {
    run(async || {
        let world = World::builder()
            .dual_stack()
            .nodes(2)
            .pool(NodePool::new("flexible", "worker", 2).flexible())
            .machine(StandaloneMachine::new("worker-a").with_second_interface())
            .machine(StandaloneMachine::new("worker-b").in_availability_set("placed").in_group("machines"))
            .start()
            .await;
        assert_eq!(world.node_names().len(), 6);
        world.create(service("shop/web").both_families());
        world.create(service("shop/db").internal());
        world.settle().await;
        for key in ["shop/web", "shop/db"] {
            for address in world.addresses(key) {
                assert_eq!(world.reached(address, 80), world.node_names(), "{key} at {address}");
            }
        }
        world.delete("shop/web");
        world.settle().await;
        assert_eq!(world.reached(world.address("shop/db"), 80), world.node_names());
        world.delete("shop/db");
        world.settle().await;
    });
}

/// NODE-200: the node controller of this release cannot initialise them, and an event says so.
#[test]
fn nodes_of_other_machines_than_of_uniform_sets_stay_uninitialized() {
    run(async || {
        let pool = NodePool::new("flexible", "flex", 1).flexible();
        let machine = StandaloneMachine::new("alone");
        let world = World::builder().nodes(1).pool(pool).machine(machine).start().await;
        let names = world.node_names();
        assert_eq!(names.len(), 3, "{names:?}");
        for name in names.iter().filter(|name| !name.starts_with("worker")) {
            assert!(world.taints(name).contains(&UNINITIALIZED.to_owned()), "{name}");
            let mut events = world.events(name);
            events.retain(|event| event.starts_with("Warning "));
            assert_eq!(events.len(), 1, "{name}: {events:#?}");
            assert!(events[0].starts_with("Warning FailedToInitializeNode: "), "{}", events[0]);
            assert!(events[0].contains("cloud-node-manager"), "{}", events[0]);
        }
    });
}

/// NODE-202: nobody asks whether a machine outside of uniform sets is there, and what is unknown is not absent.
#[test]
fn node_202_the_address_of_a_virtual_machine_that_is_gone_goes_with_its_node() {
    for pools in ["nodeIPConfiguration", "nodeIP"] {
        run(async || {
            let machine = StandaloneMachine::new("alone");
            let config = json!({"loadBalancerBackendPoolConfigurationType": pools});
            let world = World::builder().config(&config).nodes(1).machine(machine.clone()).start().await;
            world.create(service("shop/web").annotation("azure-disable-load-balancer-floating-ip", "true"));
            world.settle().await;
            let node = world.node("alone");
            let address = node["status"]["addresses"][0]["address"].as_str().unwrap();
            let named = |id: ResourceId| {
                world.azure.document(&id).unwrap().to_string().contains(&format!("\"{address}\""))
            };
            assert!(named(world.security_group()), "{pools}: packets arrive at the nodes' addresses");
            world.azure.delete(&world.shape.machine(&machine)).unwrap();
            world.azure.delete(&world.shape.interface(&machine)).unwrap();
            let left = |finding: &Finding| match finding {
                Finding::SecurityRuleWithoutDestination { destination, .. } => destination == address,
                Finding::MemberWithoutMachine { member, .. } => member == address,
                _ => false,
            };
            let left = world.settle_despite(left).await;
            assert!(!left.is_empty(), "{pools}: the address is the node's while the node is listed");
            assert_eq!(world.node_names().len(), 2, "{pools}: {:?}", world.node_names());
            world.kubernetes.delete("Node", "", "alone").unwrap();
            world.settle().await;
            for id in [world.security_group(), world.load_balancer()] {
                assert!(!named(id.clone()), "{pools}: {id} names {address}");
            }
        });
    }
}

/// A cluster without any scale set.
#[test]
fn availability_sets_alone_take_traffic() {
    run(async || {
        let machine = |name: &str| StandaloneMachine::new(name).in_availability_set("workers");
        let mut builder = World::builder().config(&json!({"vmType": "standard"})).nodes(0);
        for name in ["one", "two", "three"] {
            builder = builder.machine(machine(name));
        }
        let world = builder.start().await;
        world.create(service("shop/web"));
        world.settle().await;
        assert_eq!(world.reached(world.address("shop/web"), 80), world.node_names());
        assert_eq!(world.node_names().len(), 3);
        world.shape.lay_out_machine(&world.azure, &machine("four")).unwrap();
        world.settle().await;
        assert_eq!(world.reached(world.address("shop/web"), 80).len(), 4);
    });
}

#[test]
fn azure_json_can_be_changed() {
    run(async || {
        let world = World::builder().nodes(1).config(&json!({"loadBalancerName": "shared"})).start().await;
        world.create(service("shop/web"));
        world.settle().await;
        assert!(world.azure.document(&world.network("loadBalancers", "shared")).is_some());
    });
}
