//! Worlds whose pools hold addresses (`nodeIP`).

use std::time::Duration;

use azure_simulator::packet::Protocol;
use azure_simulator::typical_latency;
use serde_json::{Value, json};
use testkit::{NodePool, StandaloneMachine, World, run, service};

const MINUTE: Duration = Duration::from_secs(60);

/// LB-187, LB-190: all nodes except the control plane get the traffic of every kind of Service, and pools follow the
/// nodes.
#[test]
fn nodes_are_members_by_their_addresses() {
    run(async || {
        let config = json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"});
        let world = World::builder().dual_stack().nodes(3).control_plane().config(&config);
        let world = world.latency(typical_latency()).start().await;
        world.create(service("shop/web").both_families());
        world.create(service("shop/inside").both_families().internal());
        world.create(service("shop/node").annotation("azure-disable-load-balancer-floating-ip", "true"));
        world.settle().await;
        let workers = |world: &World| -> Vec<String> {
            let names = world.node_names().into_iter();
            names.filter(|name| !name.contains("control-plane")).collect()
        };
        // A machine behind an internal load balancer may not reach itself through it; the control plane is not behind
        // it.
        let outside = world.node_names().into_iter().find(|name| name.contains("control-plane")).unwrap();
        let served = |world: &World| {
            let public = ["shop/web", "shop/node"].map(|key| world.addresses(key)).concat();
            let inside = |to| world.from_node(&outside, to, 80, Protocol::Tcp).arrives;
            public.into_iter().all(|address| world.reached(address, 80) == workers(world))
                && world.addresses("shop/inside").into_iter().all(inside)
        };
        assert_eq!(workers(&world).len(), 3);
        assert!(served(&world));
        world.azure.scale(&world.scale_set(), 5).unwrap();
        world
            .until("new nodes take traffic", 10 * MINUTE, |world| workers(world).len() == 5 && served(world))
            .await;
        world.azure.scale(&world.scale_set(), 2).unwrap();
        world
            .until("old nodes are gone", 30 * MINUTE, |world| workers(world).len() == 2 && served(world))
            .await;
        world.settle().await;
        for key in ["shop/web", "shop/inside", "shop/node"] {
            world.delete(key);
        }
        world.settle().await;
    });
}

/// The node's taints with or without the out-of-service taint.
fn tainted(world: &World, node: &str, is_out: bool) -> Value {
    const KEY: &str = "node.kubernetes.io/out-of-service";
    let node = world.node(node);
    let mut taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    taints.retain(|taint| taint["key"] != KEY);
    if is_out {
        taints.push(json!({"key": KEY, "value": "mine", "effect": "NoSchedule"}));
    }
    json!({"spec": {"taints": taints}})
}

/// LB-350, LB-351: for both kinds of members, after the taint the node gets no new connections and old ones continue;
/// both are restored when the taint is removed. There is no delay of ours between the taint and the write.
#[test]
fn a_node_that_drains_gets_no_new_connections_and_keeps_old_ones() {
    for kind in ["nodeIP", "nodeIPConfiguration"] {
        run(async || {
            let config = json!({
                "loadBalancerBackendPoolConfigurationType": kind, "enableLoadBalancerAdminState": true,
            });
            let world = World::builder()
                .nodes(2)
                .pool(NodePool::new("flexible", "flexible", 1).flexible())
                .machine(StandaloneMachine::new("standalone"))
                .config(&config)
                .start()
                .await;
            world.create(service("shop/web"));
            world.settle().await;
            let address = world.address("shop/web");
            let all = world.node_names();
            assert_eq!(world.reached(address, 80), all);
            for node in &all {
                let before = world.network_now();
                world.kubernetes.merge("Node", "", node, &tainted(&world, node, true)).unwrap();
                let begin = tokio::time::Instant::now();
                while world.reached(address, 80).contains(node) {
                    assert!(
                        begin.elapsed() < Duration::from_millis(100),
                        "{kind} {node}: {:?}",
                        begin.elapsed()
                    );
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                let report = world.flows_since(&before, address, 80);
                let change = report.change.as_ref().unwrap();
                assert_eq!((change.broken, change.moved), (0, 0), "{}", report.sentence());
                let drained =
                    report.nodes.iter().find(|flows| flows.node.eq_ignore_ascii_case(node)).unwrap();
                assert!(drained.kept > 0 && drained.new == 0, "{kind}: {drained:?}");
                world.kubernetes.merge("Node", "", node, &tainted(&world, node, false)).unwrap();
                world
                    .until("it takes connections again", MINUTE, |world| world.reached(address, 80) == all)
                    .await;
            }
            world.settle().await;
            world.delete("shop/web");
            world.settle().await;
        });
    }
}
