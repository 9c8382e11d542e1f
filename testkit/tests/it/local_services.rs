//! Services with pools of their own, with the nodes of their endpoints, where several load balancers share the
//! Services.

use std::collections::BTreeSet;
use std::time::Duration;

use azure_simulator::packet::Protocol;
use azure_simulator::typical_latency;
use serde_json::{Value, json};
use testkit::{NodePool, World, run, service};

const MINUTE: Duration = Duration::from_secs(60);

/// The nodes in the pools that are named after a Service.
fn members(world: &World, load_balancer: &str, pool: &str) -> BTreeSet<String> {
    let id = world.network("loadBalancers", load_balancer);
    let document = world.azure.document(&id).unwrap_or_default();
    let pools = document["properties"]["backendAddressPools"].as_array().cloned().unwrap_or_default();
    let entries = pools.iter().filter(|one| one["name"] == pool).flat_map(|one| {
        one["properties"]["loadBalancerBackendAddresses"].as_array().cloned().unwrap_or_default()
    });
    entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

fn one(node: &str) -> BTreeSet<String> {
    BTreeSet::from([node.to_owned()])
}

fn move_pods(world: &World, key: &str, nodes: &[String]) {
    let (namespace, name) = key.split_once('/').unwrap();
    let endpoint = |(number, node): (usize, &String)| json!({"addresses": [format!("10.244.0.{}", number + 1)], "nodeName": node, "conditions": {"ready": true}});
    let endpoints: Vec<Value> = nodes.iter().enumerate().map(endpoint).collect();
    let slice = format!("{name}-by-hand");
    world.kubernetes.merge("EndpointSlice", namespace, &slice, &json!({"endpoints": endpoints})).unwrap();
}

/// LB-250, LB-251, LB-257, LB-259: traffic arrives only on the nodes with endpoints, wherever these move, and through
/// the cluster's pool when the Service changes to policy Cluster.
#[test]
fn pools_of_local_services_follow_their_endpoints() {
    run(async || {
        let config = json!({
            "loadBalancerBackendPoolConfigurationType": "nodeIP",
            "multipleStandardLoadBalancerConfigurations": [{"name": "kubernetes", "primaryVMSet": "workers"}],
        });
        let world = World::builder().dual_stack().nodes(3).config(&config);
        let world = world.latency(typical_latency()).start().await;
        let all = world.node_names();
        world.create(service("shop/web").both_families().local());
        world.create(service("shop/inside").internal().local());
        world.create(service("shop/other").tcp(81));
        for key in ["shop/web", "shop/inside"] {
            world.confine_pods(key, &all[..1]);
        }
        world.settle().await;
        let web = world.addresses("shop/web");
        assert_eq!(web.len(), 2);
        let reaches = |world: &World, nodes: &[String]| web.iter().all(|to| world.reached(*to, 80) == nodes);
        assert!(reaches(&world, &all[..1]));
        let pools = ["shop-web", "shop-web-ipv6"];
        assert_eq!(pools.map(|pool| members(&world, "kubernetes", pool)), [one(&all[0]), one(&all[0])]);
        assert_eq!(members(&world, "kubernetes-internal", "shop-inside"), one(&all[0]));

        for key in ["shop/web", "shop/inside"] {
            move_pods(&world, key, &all[1..2]);
        }
        world
            .until("pools follow", MINUTE, |world| members(world, "kubernetes", "shop-web") == one(&all[1]))
            .await;
        world.settle().await;
        assert!(reaches(&world, &all[1..2]));
        assert_eq!(pools.map(|pool| members(&world, "kubernetes", pool)), [one(&all[1]), one(&all[1])]);
        assert!(world.from_node(&all[0], world.address("shop/inside"), 80, Protocol::Tcp).arrives);
        assert!(
            world.events("shop/web").iter().any(|event| event.contains("LoadBalancerBackendPoolUpdated"))
        );

        world.change("shop/web", &json!({"spec": {"externalTrafficPolicy": "Cluster"}}));
        world.settle().await;
        assert_eq!(pools.map(|pool| members(&world, "kubernetes", pool).len()), [0, 0]);
        for key in ["shop/web", "shop/inside"] {
            world.delete(key);
        }
        world.settle().await;
        assert_eq!(world.azure.document(&world.network("loadBalancers", "kubernetes-internal")), None);
        world.delete("shop/other");
        world.settle().await;
    });
}

/// LB-250, LB-255: whichever of several load balancers a Service is on, its pool is there and contains the nodes with
/// its endpoints, including those of another load balancer; it moves along with the Service.
#[test]
fn a_pool_is_where_its_service_is() {
    run(async || {
        let config = json!({
            "loadBalancerBackendPoolConfigurationType": "nodeIP",
            "multipleStandardLoadBalancerConfigurations": [
                {"name": "kubernetes", "primaryVMSet": "workers"}, {"name": "second", "primaryVMSet": "more"},
            ],
        });
        let world =
            World::builder().nodes(2).pool(NodePool::new("more", "more", 1)).config(&config).start().await;
        let all = world.node_names();
        let on_second = "service.beta.kubernetes.io/azure-load-balancer-configurations";
        world.create(service("shop/other").tcp(81));
        world.create(service("shop/web").local().annotation("azure-load-balancer-configurations", "second"));
        let worker = all.iter().find(|node| node.starts_with("worker")).unwrap().clone();
        let more = all.iter().find(|node| node.starts_with("more")).unwrap().clone();
        world.confine_pods("shop/web", std::slice::from_ref(&more));
        world.settle().await;
        assert_eq!(members(&world, "second", "shop-web"), one(&more));
        assert_eq!(world.reached(world.address("shop/web"), 80), [more]);
        move_pods(&world, "shop/web", std::slice::from_ref(&worker));
        world.until("it follows", MINUTE, |world| members(world, "second", "shop-web") == one(&worker)).await;
        assert_eq!(world.reached(world.address("shop/web"), 80), std::slice::from_ref(&worker));
        world.change("shop/web", &json!({"metadata": {"annotations": {on_second: "kubernetes"}}}));
        world.settle().await;
        assert_eq!(members(&world, "second", "shop-web"), BTreeSet::new());
        assert_eq!(members(&world, "kubernetes", "shop-web"), one(&worker));
        assert_eq!(world.reached(world.address("shop/web"), 80), [worker]);
        world.delete("shop/web");
        world.delete("shop/other");
        world.settle().await;
    });
}
