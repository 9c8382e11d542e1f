//! Worlds of several shapes.

use std::time::Duration;

use azure_simulator::{Documents, PowerState, typical_latency};
use azure_types::ResourceId;
use serde_json::json;
use testkit::types::{INSTANCES, MACHINES};
use testkit::{NodePool, StandaloneMachine, World, run, service};

const MINUTE: Duration = Duration::from_secs(60);
const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

#[test]
fn a_service_of_both_families_has_an_address_of_each_in_a_dual_stack_world() {
    run(async || {
        let world = World::builder().dual_stack().latency(typical_latency()).start().await;
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

/// What the node controller changes afterwards does not concern the kubelets.
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
/// flexible scale sets, next to a uniform one whose machines have the same prefix: packets reach all of them, in both
/// families, whichever load balancer the Service is on; and all have left the pools when it is deleted.
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

/// NODE-043: each node is described by its own machine, though all names begin alike; and when the machines are deleted
/// one after the other, each deletes only its own node.
#[test]
fn machines_of_every_kind_are_described_and_none_is_confused() {
    run(async || {
        let flexible = NodePool::new("flexible", "worker", 2).flexible();
        let world = World::builder()
            .nodes(2)
            .pool(NodePool { size: "Standard_D4s_v5".to_owned(), ..flexible })
            .machine(StandaloneMachine::new("worker-a"))
            .machine(StandaloneMachine::new("worker-b").in_availability_set("placed"))
            .machine(StandaloneMachine::new("worker-c").in_availability_set("placed").in_group("machines"))
            .start()
            .await;
        world.create(service("shop/web"));
        world.settle().await;
        let documents = [INSTANCES, MACHINES].map(|kind| world.azure.of_type(kind)).concat();
        assert_eq!(documents.len(), 7);
        for document in documents {
            let properties = &document["properties"];
            let name = properties["osProfile"]["computerName"].as_str().unwrap().to_lowercase();
            let node = world.node(&name);
            let id = node["spec"]["providerID"].as_str().unwrap().strip_prefix("azure://").unwrap();
            assert!(id.eq_ignore_ascii_case(document["id"].as_str().unwrap()), "{name}: {id}");
            let size = document["sku"]["name"].as_str().or(properties["hardwareProfile"]["vmSize"].as_str());
            let labels = &node["metadata"]["labels"];
            assert_eq!(labels["node.kubernetes.io/instance-type"].as_str(), size, "{name}");
            let zone = document["zones"][0].as_str().map(|zone| format!("westeurope-{zone}"));
            assert_eq!(labels["topology.kubernetes.io/zone"], zone.unwrap_or("0".to_owned()), "{name}");
            let interface = properties["networkProfile"]["networkInterfaces"][0]["id"].as_str().unwrap();
            let interface = world.azure.document(&interface.parse().unwrap()).unwrap();
            let address = &interface["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"];
            assert_eq!(&node["status"]["addresses"][0]["address"], address, "{name}");
            assert_eq!(world.taints(&name), Vec::<String>::new(), "{name}");
        }
        let mut names = world.node_names();
        while names.len() > 1 {
            let lost = names.remove(names.len() / 2);
            world.azure.delete(&world.machine(&lost)).unwrap();
            world.settle().await;
            assert_eq!(world.node_names(), names, "{lost} is gone");
            assert_eq!(world.reached(world.address("shop/web"), 80), names, "{lost} is gone");
        }
    });
}

/// NODE-034: machines of every kind that stop are tainted, and lose the taint when they run again.
#[test]
fn machines_of_every_kind_are_tainted_while_they_are_shut_down() {
    run(async || {
        let world = World::builder()
            .nodes(1)
            .pool(NodePool::new("flexible", "worker", 1).flexible())
            .machine(StandaloneMachine::new("worker-a"))
            .machine(StandaloneMachine::new("worker-b").in_availability_set("placed"))
            .start()
            .await;
        let names = world.node_names();
        assert_eq!(names.len(), 4);
        for (state, is_tainted) in [(PowerState::Deallocated, true), (PowerState::Running, false)] {
            for name in &names {
                world.azure.set_power_state(&world.machine(name), state).unwrap();
            }
            tokio::time::sleep(10 * MINUTE).await;
            assert_eq!(world.node_names(), names);
            for name in &names {
                assert_eq!(world.taints(name).contains(&SHUTDOWN.to_owned()), is_tainted, "{name} {state:?}");
            }
        }
    });
}

/// A deleted machine's address is removed from security rules and from pools of addresses.
#[test]
fn the_address_of_a_virtual_machine_that_is_gone_goes_with_it() {
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
            world.settle().await;
            assert_eq!(world.node_names().len(), 1, "{pools}: {:?}", world.node_names());
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
