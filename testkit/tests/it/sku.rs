//! A cluster whose load balancers are of SKU Basic.

use std::time::Duration;

use azure_simulator::typical_latency;
use testkit::types::{LOAD_BALANCERS, PUBLIC_IPS};
use testkit::{World, make_basic, run, service};

const MINUTE: Duration = Duration::from_secs(60);

/// LB-205: Services that got traffic before get it afterwards, at the same addresses, from load balancers of SKU
/// Standard. A restart writes nothing.
#[test]
fn lb_205_services_on_basic_load_balancers_move_to_standard_ones() {
    run(async || {
        let mut world = World::builder().nodes(3).latency(typical_latency()).start().await;
        world.create(service("shop/web"));
        world.create(service("shop/other"));
        world.create(service("shop/inside").internal());
        world.settle().await;
        let keys = ["shop/web", "shop/other", "shop/inside"];
        let before = keys.map(|key| world.address(key));
        let reached = |world: &World| before.map(|address| world.reached(address, 80).len());
        world.stop().await;
        make_basic(&world.azure);
        assert_eq!(reached(&world), [3; 3]);

        world.start();
        let is_standard = |document: &serde_json::Value| document["sku"]["name"] == "Standard";
        let all = |world: &World, kind: &str| world.azure.documents_of_type(kind);
        world
            .until("all are standard", 20 * MINUTE, |world| {
                let balancers = all(world, LOAD_BALANCERS);
                balancers.len() == 2 && balancers.iter().all(is_standard)
            })
            .await;
        world.settle().await;
        assert!(all(&world, PUBLIC_IPS).iter().all(is_standard));
        assert_eq!(keys.map(|key| world.address(key)), before);
        assert_eq!(reached(&world), [3; 3]);
        world.azure.clear_journal();
        world.restart().await;
        world.settle().await;
        assert_eq!(world.changes(), [""; 0]);
    });
}
