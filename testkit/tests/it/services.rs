//! One Service at a time: from its manifest to packets, and back to nothing.

use azure_simulator::packet::Protocol::{Tcp, Udp};
use serde_json::{Value, json};
use testkit::{World, run, service};

const STRANGER: &str = "192.0.2.1";
const CUSTOMER: &str = "198.51.100.20";

/// Foreign parts in the resources that we share with others.
fn put_foreign_things(world: &World) {
    let address = world.network("publicIPAddresses", "foreign");
    world.put_foreign(
        &address,
        json!({"location": "westeurope", "sku": {"name": "Standard"}, "tags": {"owner": "somebody"},
            "properties": {"publicIPAllocationMethod": "Static"}}),
    );
    let balancer = world.load_balancer();
    let part = |kind: &str, name: &str| json!({"id": balancer.child(kind, name)});
    world.put_foreign(
        &balancer,
        json!({"location": "westeurope", "sku": {"name": "Standard"}, "tags": {"owner": "somebody"},
        "properties": {
            "frontendIPConfigurations": [
                {"name": "theirs", "properties": {"publicIPAddress": {"id": address}}}],
            "backendAddressPools": [{"name": "their-pool"}],
            "probes": [{"name": "their-probe", "properties": {
                "protocol": "Tcp", "port": 22, "intervalInSeconds": 5, "numberOfProbes": 2}}],
            "loadBalancingRules": [{"name": "their-rule", "properties": {
                "frontendIPConfiguration": part("frontendIPConfigurations", "theirs"),
                "backendAddressPool": part("backendAddressPools", "their-pool"),
                "probe": part("probes", "their-probe"),
                "protocol": "Tcp", "frontendPort": 22, "backendPort": 22}}],
        }}),
    );
    world.edit_foreign(&world.security_group(), |group| {
        group["tags"] = json!({"owner": "somebody"});
        group["properties"]["securityRules"] = json!([{"name": "their-rule", "properties": {
                "priority": 500, "direction": "Inbound", "access": "Allow", "protocol": "Tcp",
                "sourceAddressPrefix": "192.0.2.99", "sourcePortRange": "*",
                "destinationAddressPrefix": "10.240.0.4", "destinationPortRange": "22"}}]);
    });
}

/// The shared load balancer without our pool and without what changes with every write.
fn foreign_parts(world: &World) -> Value {
    let mut balancer = world.azure.document(&world.load_balancer()).unwrap();
    let pools = balancer["properties"]["backendAddressPools"].as_array_mut().unwrap();
    pools.retain(|pool| pool["name"] != "kubernetes");
    without_etags(&mut balancer);
    balancer
}

fn without_etags(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("etag");
            members.values_mut().for_each(without_etags);
        }
        Value::Array(items) => items.iter_mut().for_each(without_etags),
        _ => {}
    }
}

#[test]
fn manifests_become_addresses_that_pass_traffic_and_leave_nothing_behind() {
    run(async || {
        let world = World::builder().start().await;
        put_foreign_things(&world);
        let (before, foreign) = (world.azure_state(), foreign_parts(&world));

        world.apply(include_str!("../../../examples/shop.yaml")).await;
        world.apply(include_str!("../../../examples/resolver.yaml")).await;
        world.apply(include_str!("../../../examples/orders.yaml")).await;
        world.settle().await;

        let shop = world.address("shop/web");
        for port in [80, 443] {
            let verdict = world.from_internet(STRANGER, shop, port, Tcp);
            assert!(verdict.arrives, "{verdict:#?}");
        }
        assert!(!world.from_internet(STRANGER, shop, 81, Tcp).arrives);
        assert_eq!(world.reached(shop, 80).len(), 3);

        let resolver = world.address("default/resolver");
        let verdict = world.from_internet(CUSTOMER, resolver, 53, Udp);
        assert!(verdict.arrives, "{verdict:#?}");
        assert!(!world.from_internet(CUSTOMER, resolver, 53, Tcp).arrives, "only UDP was asked for");
        assert!(!world.from_internet(STRANGER, resolver, 53, Udp).arrives, "a stranger's");

        let orders = world.address("default/orders");
        assert!(orders.to_string().starts_with("10.240."), "{orders}");
        let sender = world.node_names().remove(0);
        let verdict = world.from_node(&sender, orders, 5432, Tcp);
        assert!(verdict.arrives, "{verdict:#?}");
        assert!(!world.from_internet(STRANGER, orders, 5432, Tcp).arrives);

        for key in ["shop/web", "default/resolver", "default/orders"] {
            world.delete(key);
        }
        world.settle().await;
        for key in ["shop/web", "default/resolver", "default/orders"] {
            assert!(world.service(key).is_null(), "{key} is still there: {:#?}", world.events(key));
        }
        // The load balancer is also in use by others and stays, and with it our pool and the nodes in it, for the next
        // Service. Everything else is as before.
        assert_eq!(foreign_parts(&world), foreign);
        let mut differences = before.differences(&world.azure_state());
        differences.retain(|line| {
            !line.starts_with(' ')
                && !line.contains("/virtualMachineScaleSets/")
                && !line.ends_with("/loadBalancers/kubernetes")
        });
        assert_eq!(differences, Vec::<String>::new());
    });
}

#[test]
fn the_last_service_takes_the_load_balancer_and_all_memberships_along() {
    run(async || {
        let world = World::builder().start().await;
        let before = world.azure_state();
        world.create(service("shop/web").tcp(80).udp(53));
        world.create(service("shop/db").tcp(5432).internal());
        world.settle().await;
        assert!(!before.differences(&world.azure_state()).is_empty());
        world.delete("shop/web");
        world.delete("shop/db");
        world.settle().await;
        assert_eq!(before.differences(&world.azure_state()), Vec::<String>::new());
    });
}

#[test]
fn only_the_source_ranges_may_enter_and_a_change_of_them_is_followed() {
    run(async || {
        let world = World::builder().start().await;
        world.create(service("shop/web").source_ranges(&["198.51.100.0/24"]));
        world.settle().await;
        let address = world.address("shop/web");
        assert!(world.from_internet(CUSTOMER, address, 80, Tcp).arrives);
        assert!(!world.from_internet(STRANGER, address, 80, Tcp).arrives);
        world.change("shop/web", &json!({"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}}));
        world.settle().await;
        assert!(!world.from_internet(CUSTOMER, address, 80, Tcp).arrives);
        assert!(world.from_internet(STRANGER, address, 80, Tcp).arrives);
    });
}

#[test]
fn with_policy_local_the_probe_asks_for_the_services_own_endpoints() {
    run(async || {
        let world = World::builder().start().await;
        world.create(service("shop/web").local());
        world.settle().await;
        let address = world.address("shop/web");
        assert_eq!(world.reached(address, 80), world.node_names());
        let port = world.service("shop/web")["spec"]["healthCheckNodePort"].as_i64().unwrap();
        let balancer = world.azure.document(&world.load_balancer()).unwrap();
        let probes = balancer["properties"]["probes"].as_array().unwrap();
        assert!(probes.iter().any(|probe| probe["properties"]["port"] == port), "{probes:#?}");
        // The Service's own pods exist on two of the nodes, which are skipped.
        let nodes = world.node_names();
        world.confine_pods("shop/web", &nodes[..1]);
        world.settle().await;
        assert_eq!(world.reached(address, 80), nodes[..1]);
    });
}

/// The list of public IPs was read before: the address is found all the same, and there is no warning.
#[test]
fn an_address_that_was_made_a_moment_ago_is_served_without_a_warning() {
    run(async || {
        let world = World::builder().start().await;
        world.create(service("shop/before"));
        world.settle().await;
        let own = world.network("publicIPAddresses", "own");
        world.put_foreign(
            &own,
            json!({"location": "westeurope", "sku": {"name": "Standard"},
                "properties": {"publicIPAllocationMethod": "Static"}}),
        );
        let document = world.azure.document(&own).unwrap();
        let address = document["properties"]["ipAddress"].as_str().unwrap();
        world.create(service("shop/web").annotation("azure-load-balancer-ipv4", address));
        world.settle().await;
        assert_eq!(world.address("shop/web").to_string(), address);
        let events = world.events("shop/web");
        assert!(events.iter().all(|event| !event.starts_with("Warning ")), "{events:#?}");
    });
}
