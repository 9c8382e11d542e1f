//! Worlds with several load balancers of a flavor (`multipleStandardLoadBalancerConfigurations`).

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use azure_simulator::typical_latency;
use serde_json::{Value, json};
use testkit::types::LOAD_BALANCERS;
use testkit::{NodePool, World, WorldBuilder, run, service};

use crate::random::Random;

const MINUTE: Duration = Duration::from_secs(60);
const NAMED: &str = "azure-load-balancer-configurations";

/// Three scale sets of two machines; the first two are primary sets.
fn builder(entries: &[Value]) -> WorldBuilder {
    let config = json!({
        "loadBalancerBackendPoolConfigurationType": "nodeIP",
        "multipleStandardLoadBalancerConfigurations": entries,
    });
    let builder = World::builder().nodes(2).config(&config);
    builder.pool(NodePool::new("second", "second", 2)).pool(NodePool::new("third", "third", 2))
}

fn entries(second: &Value) -> Vec<Value> {
    let set = World::builder().build().scale_set().name().to_owned();
    let mut other = json!({"name": "second", "primaryVMSet": "second"});
    for (key, value) in second.as_object().unwrap() {
        other[key] = value.clone();
    }
    vec![json!({"name": "kubernetes", "primaryVMSet": set}), other]
}

/// The load balancer whose frontend has the Service's address.
fn place(world: &World, key: &str) -> String {
    let uid = world.service(key)["metadata"]["uid"].as_str().unwrap().replace('-', "");
    let base: String = format!("a{uid}").chars().take(32).collect();
    let holds = |document: &Value| {
        let rules = document["properties"]["loadBalancingRules"].as_array().cloned().unwrap_or_default();
        rules.iter().any(|rule| rule["name"].as_str().is_some_and(|name| name.starts_with(&base)))
    };
    let all = world.azure.documents_of_type(LOAD_BALANCERS);
    let names: Vec<String> =
        all.iter().filter(|one| holds(one)).map(|one| one["name"].as_str().unwrap().to_owned()).collect();
    names.join(" ")
}

fn reached(world: &World, address: IpAddr) -> BTreeSet<String> {
    world.reached(address, 80).into_iter().collect()
}

fn load_balancers(world: &World) -> usize {
    world.azure.documents_of_type(LOAD_BALANCERS).len()
}

/// LB-222, LB-238, LB-242, LB-246: Services on two load balancers get traffic, each from nodes of its own. A Service
/// whose annotation changes moves, with its address, and gets traffic again. A restart writes nothing. An empty load
/// balancer is deleted, and its nodes go to the other.
#[test]
fn lb_238_lb_242_lb_246_two_load_balancers_share_services_and_nodes() {
    run(async || {
        let world = builder(&entries(&json!({}))).latency(typical_latency());
        let mut world = world.start().await;
        world.create(service("shop/a").annotation(NAMED, "kubernetes"));
        world.create(service("shop/b").annotation(NAMED, "second"));
        world.create(service("shop/inside").annotation(NAMED, "second").internal());
        world.settle().await;
        assert_eq!(place(&world, "shop/a"), "kubernetes");
        assert_eq!(place(&world, "shop/b"), "second");
        assert_eq!(place(&world, "shop/inside"), "second-internal");
        let of = |key: &str| reached(&world, world.address(key));
        let all: BTreeSet<String> = world.node_names().into_iter().collect();
        let (of_a, of_b) = (of("shop/a"), of("shop/b"));
        assert!(of_a.is_disjoint(&of_b) && of_a.len() + of_b.len() == all.len(), "{of_a:?} {of_b:?}");
        assert!(of_b.iter().filter(|node| node.starts_with("second")).count() == 2, "{of_b:?}");

        world.azure.clear_journal();
        world.restart().await;
        world.settle().await;
        assert_eq!(world.changes(), [""; 0], "a restart writes nothing (LB-246)");

        let before = world.address("shop/a");
        let annotation = format!("service.beta.kubernetes.io/{NAMED}");
        world.change("shop/a", &json!({"metadata": {"annotations": {annotation: "second"}}}));
        world.until("it has moved", 10 * MINUTE, |world| place(world, "shop/a") == "second").await;
        world.settle().await;
        assert_eq!(world.address("shop/a"), before, "an address moves along");
        assert_eq!(load_balancers(&world), 2, "the first is empty and gone");
        assert_eq!(reached(&world, before), all, "all nodes are for the only one");
        for key in ["shop/a", "shop/b", "shop/inside"] {
            world.delete(key);
        }
        world.settle().await;
        assert_eq!(load_balancers(&world), 0);
    });
}

/// LB-229, LB-230: labels of a Service or its namespace select, and a change of them moves the Service at once
/// (LB-432).
#[test]
fn lb_229_lb_230_labels_move_services() {
    for (selector, kind) in [("serviceLabelSelector", "Service"), ("serviceNamespaceSelector", "Namespace")] {
        run(async || {
            let team = json!({selector: {"matchLabels": {"team": "a"}}});
            let world = builder(&entries(&team)).start().await;
            world.create(service("shop/web"));
            world.create(service("other/stays"));
            world.settle().await;
            assert_eq!(place(&world, "shop/web"), "kubernetes");
            let label = |value: Value| {
                let (namespace, name) = if kind == "Service" { ("shop", "web") } else { ("", "shop") };
                let patch = json!({"metadata": {"labels": {"team": value}}});
                world.kubernetes.merge(kind, namespace, name, &patch).unwrap();
            };
            for (value, expected) in [(json!("a"), "second"), (Value::Null, "kubernetes")] {
                label(value);
                world.until(kind, MINUTE, |world| place(world, "shop/web") == expected).await;
                world.settle().await;
                let reached = reached(&world, world.address("shop/web"));
                assert!(!reached.is_empty(), "{kind}: traffic goes on");
                assert_eq!(place(&world, "other/stays"), "kubernetes");
            }
        });
    }
}

/// LB-244, LB-245, LB-247, LB-249: nodes follow their labels; nodes that join, leave and come back are placed; nodes
/// without a place are reported.
#[test]
fn lb_244_lb_245_lb_247_lb_249_nodes_have_their_places() {
    run(async || {
        let gpu = json!({"nodeSelector": {"matchLabels": {"pool": "gpu"}}});
        let world = builder(&entries(&gpu)).latency(typical_latency()).start().await;
        world.create(service("shop/a").annotation(NAMED, "kubernetes"));
        world.create(service("shop/b").annotation(NAMED, "second"));
        world.settle().await;
        let of = |world: &World, key: &str| reached(world, world.address(key));
        let third: Vec<String> =
            world.node_names().into_iter().filter(|node| node.starts_with("third")).collect();
        assert!(third.iter().all(|node| of(&world, "shop/a").contains(node)));
        let label = |node: &str, key: &str, value: Value| {
            let patch = json!({"metadata": {"labels": {key: value}}});
            world.kubernetes.merge("Node", "", node, &patch).unwrap();
        };
        label(&third[0], "pool", json!("gpu"));
        let moved = |world: &World| of(world, "shop/b").contains(&third[0]);
        world.until("the label moves it", 10 * MINUTE, moved).await;
        world.settle().await;
        assert!(!of(&world, "shop/a").contains(&third[0]));

        let exclude = "node.kubernetes.io/exclude-from-external-load-balancers";
        label(&third[0], exclude, json!(""));
        world.until("it is excluded", 10 * MINUTE, |world| !moved(world)).await;
        label(&third[0], exclude, Value::Null);
        world.until("it is back", 10 * MINUTE, moved).await;

        world.azure.scale(&world.scale_set(), 4).unwrap();
        world.until("new nodes of a primary set", 10 * MINUTE, |world| of(world, "shop/a").len() == 5).await;
        // Only the selected and the primary nodes have a place after the first load balancer is deleted.
        world.delete("shop/a");
        world.settle().await;
        assert_eq!(of(&world, "shop/b").len(), 3);
        world.create(service("shop/c").annotation(NAMED, "second"));
        world.settle().await;
        let told =
            |event: &String| event.contains("FailedToFindLoadBalancerForNode") && event.contains(&third[1]);
        assert!(world.events("shop/c").iter().any(told), "{:?}", world.events("shop/c"));
    });
}

/// LB-261: without the list, Services on another load balancer move to the cluster's, and the load balancer that they
/// leave is deleted. LB-260: whatever its annotation names, a Service can be deleted.
#[test]
fn lb_260_lb_261_several_load_balancers_become_one() {
    run(async || {
        let mut world = builder(&entries(&json!({}))).start().await;
        world.create(service("shop/a").annotation(NAMED, "kubernetes"));
        world.create(service("shop/b").annotation(NAMED, "second"));
        world.settle().await;
        let annotation = format!("service.beta.kubernetes.io/{NAMED}");
        world.change("shop/b", &json!({"metadata": {"annotations": {annotation: "nobody"}}}));
        world.until("it is refused", MINUTE, |world| world.is_refused("shop/b")).await;
        world.delete("shop/b");
        world.settle().await;
        assert_eq!(load_balancers(&world), 1, "LB-260");

        world.create(service("shop/c").annotation(NAMED, "second"));
        world.settle().await;
        let before = world.address("shop/c");
        world.stop().await;
        world.patch_config(&json!({"multipleStandardLoadBalancerConfigurations": null}));
        world.start();
        world.settle().await;
        assert_eq!(place(&world, "shop/c"), "kubernetes");
        assert_eq!((load_balancers(&world), world.address("shop/c")), (1, before));
        assert_eq!(reached(&world, before).len(), 6);
    });
}

/// LB-434: two load balancers swap their machine sets. No node is ever behind both, and traffic continues and finally
/// arrives at the other's nodes.
#[test]
fn lb_434_load_balancers_swap_their_nodes() {
    run(async || {
        let first = World::builder().build().scale_set().name().to_owned();
        let swapped = [
            json!({"name": "kubernetes", "primaryVMSet": "second"}),
            json!({"name": "second", "primaryVMSet": first}),
        ];
        let mut world = builder(&entries(&json!({}))).latency(typical_latency()).start().await;
        world.create(service("shop/a").annotation(NAMED, "kubernetes"));
        world.create(service("shop/b").annotation(NAMED, "second"));
        world.settle().await;
        let reached = |world: &World| ["shop/a", "shop/b"].map(|key| reached(world, world.address(key)));
        let of_sets = |all: [BTreeSet<String>; 2]| {
            all.map(|nodes| {
                nodes.into_iter().filter(|node| !node.starts_with("third")).collect::<BTreeSet<_>>()
            })
        };
        let [of_a, of_b] = of_sets(reached(&world));
        world.stop().await;
        world.patch_config(&json!({"multipleStandardLoadBalancerConfigurations": swapped}));
        world.azure.clear_journal();
        world.start();
        let has_moved = |world: &World| {
            let [a, b] = reached(world);
            assert!(a.is_disjoint(&b), "{a:?} {b:?}");
            of_sets([a, b]) == [of_b.clone(), of_a.clone()]
        };
        world.until("they have swapped", 10 * MINUTE, has_moved).await;
        assert_eq!(world.writes(LOAD_BALANCERS), 4, "{:#?}", world.changes());
        world.settle().await;
    });
}

/// LB-430: Services that are created at once are spread, and each is on one load balancer.
#[test]
fn lb_430_services_that_come_at_once_are_spread() {
    run(async || {
        let world = builder(&entries(&json!({}))).latency(typical_latency()).start().await;
        let keys: Vec<String> = (0..20).map(|number| format!("shop/s{number}")).collect();
        keys.iter().for_each(|key| world.create(service(key)));
        world.settle().await;
        let on = |name: &str| keys.iter().filter(|key| place(&world, key) == name).count();
        assert_eq!((on("kubernetes"), on("second")), (10, 10));
    });
}

/// Whatever happens to annotations, labels and nodes, everything comes to rest with each Service on one load balancer,
/// its address answering, and no write pending; a restart in between does not change that.
#[test]
fn several_load_balancers_come_to_rest_whatever_happens() {
    run(async || {
        let mut random = Random::new(testkit::seed::current());
        let second = json!({"serviceLabelSelector": {"matchLabels": {"team": "a"}},
                            "nodeSelector": {"matchLabels": {"pool": "gpu"}}});
        let mut entries = entries(&second);
        entries.push(json!({"name": "third", "primaryVMSet": "third"}));
        let mut world = builder(&entries).start().await;
        let keys: Vec<String> = (0..5).map(|number| format!("shop/s{number}")).collect();
        keys.iter().for_each(|key| world.create(service(key)));
        for _ in 0..12 {
            for _ in 0..1 + random.below(3) {
                let key = &keys[random.below(keys.len())];
                let nodes = world.node_names();
                let node = &nodes[random.below(nodes.len())];
                let name = ["kubernetes", "second", "third", ""][random.below(4)];
                let team = [Value::Null, json!("a")][random.below(2)].clone();
                let internal = ["true", "false"][random.below(2)];
                let annotate = |key: &str, value: &str| json!({"metadata": {"annotations": {format!("service.beta.kubernetes.io/{key}"): value}}});
                match random.below(5) {
                    0 => world.change(key, &annotate(NAMED, name)),
                    1 => world.change(key, &annotate("azure-load-balancer-internal", internal)),
                    2 => world.change(key, &json!({"metadata": {"labels": {"team": team}}})),
                    3 => {
                        let pool = [Value::Null, json!("gpu")][random.below(2)].clone();
                        let patch = json!({"metadata": {"labels": {"pool": pool}}});
                        world.kubernetes.merge("Node", "", node, &patch).unwrap();
                    }
                    _ => world.azure.scale(&world.scale_set(), 1 + random.below(3) as u64).unwrap(),
                }
            }
            if random.below(3) == 0 {
                world.restart().await;
            }
            world.settle().await;
            for key in keys.iter().filter(|key| !world.is_refused(key)) {
                assert_eq!(place(&world, key).split(' ').count(), 1, "{key}: {}", place(&world, key));
            }
        }
        keys.iter().for_each(|key| world.delete(key));
        world.settle().await;
        assert_eq!(load_balancers(&world), 0);
    });
}
