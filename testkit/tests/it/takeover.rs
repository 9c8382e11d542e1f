//! The resources that the replaced program leaves behind, created here by its rules of names and ownership
//! (`docs/rules`), for every kind of machine and pool: taking them over writes nothing.

use std::collections::BTreeMap;

use azure_simulator::RequestKind;
use azure_types::ResourceId;
use serde_json::{Value, json};
use testkit::{NodePool, StandaloneMachine, World, WorldBuilder, run, service};

/// The hash in the names of security rules for TCP port 80, as the replaced program computes it from what they allow.
const FROM_ANYONE: &str = "d39272f7f57ed937951650d93992ad77";
const FROM_ONE_CLIENT: &str = "1b6c40b87eca82449617bb19fb69c3b3";

/// The client that a Service with source ranges allows.
const CLIENT: &str = "203.0.113.7/32";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Members {
    Interfaces,
    Addresses,
}

type Builder = fn() -> WorldBuilder;

/// A cluster to be taken over.
struct Case {
    name: &'static str,
    builder: Builder,
    members: Members,
    dual_stack: bool,
    /// With two load balancers, the second one has the internal Services and this scale set's nodes.
    second: Option<&'static str>,
}

fn uniform() -> WorldBuilder {
    World::builder().nodes(2)
}

fn flexible() -> WorldBuilder {
    World::builder().nodes(0).pool(NodePool::new("flexible", "flex", 2).flexible())
}

fn placed() -> WorldBuilder {
    let machine = |name: &str| StandaloneMachine::new(name).in_availability_set("placed");
    World::builder().nodes(0).machine(machine("placed-a")).machine(machine("placed-b"))
}

fn standalone() -> WorldBuilder {
    let second = StandaloneMachine::new("alone-b").with_second_interface().in_group("machines");
    World::builder().nodes(0).machine(StandaloneMachine::new("alone-a")).machine(second)
}

fn mixed() -> WorldBuilder {
    uniform()
        .pool(NodePool::new("flexible", "flex", 1).flexible())
        .machine(StandaloneMachine::new("alone-a"))
        .machine(StandaloneMachine::new("placed-a").in_availability_set("placed"))
        .control_plane()
}

fn two_sets() -> WorldBuilder {
    uniform().pool(NodePool::new("others", "other", 2))
}

fn cases() -> Vec<Case> {
    let kinds: [(&str, Builder); 5] = [
        ("uniform", uniform),
        ("flexible", flexible),
        ("availability set", placed),
        ("standalone", standalone),
        ("mixed", mixed),
    ];
    let mut cases = Vec::new();
    for (name, builder) in kinds {
        for members in [Members::Interfaces, Members::Addresses] {
            for dual_stack in [false, true] {
                cases.push(Case { name, builder, members, dual_stack, second: None });
            }
        }
    }
    for dual_stack in [false, true] {
        let members = Members::Addresses;
        cases.push(Case { name: "two sets", builder: two_sets, members, dual_stack, second: Some("others") });
    }
    cases
}

/// LB-457: every kind of machine and pool, one and two families, one and two load balancers: external and internal,
/// policy Local, source ranges, a user's address that two Services share.
#[test]
fn lb_457_what_the_replaced_program_left_is_taken_over_without_a_write() {
    for case in cases() {
        run(async || {
            let mut world = case.world().await;
            case.leave_behind(&world);
            // Waits for the endpoints of every Service.
            world.come_to_rest().await;
            let before = world.azure_state();
            let statuses = case.statuses(&world);
            world.azure.clear_journal();
            world.start();
            world.settle().await;
            let said = format!("{} by {:?}, dual stack {}", case.name, case.members, case.dual_stack);
            let journal = world.azure.journal();
            let written = journal.entries.iter().filter(|entry| entry.kind != RequestKind::Read);
            let written: Vec<String> =
                written.map(|entry| format!("{} {} {:?}", entry.method, entry.path, entry.changes)).collect();
            assert_eq!(written, [""; 0], "{said}");
            assert_eq!(before.differences(&world.azure_state()), [""; 0], "{said}");
            assert_eq!(case.statuses(&world), statuses, "{said}");
        });
    }
}

/// A Service of the corpus of this test.
struct Left {
    key: &'static str,
    base: String,
    internal: bool,
    local: bool,
    /// The Service whose frontend it shares.
    shares: Option<&'static str>,
    port: i64,
    object: Value,
}

impl Case {
    fn families(&self) -> &'static [&'static str] {
        if self.dual_stack { &["IPv4", "IPv6"] } else { &["IPv4"] }
    }

    /// Nodes without Services, and no controllers.
    async fn world(&self) -> World {
        let pools = if self.members == Members::Addresses { "nodeIP" } else { "nodeIPConfiguration" };
        let mut config = json!({"loadBalancerBackendPoolConfigurationType": pools});
        if let Some(second) = self.second {
            let first = uniform().build().scale_set().name().to_owned();
            config["multipleStandardLoadBalancerConfigurations"] = json!([
                {"name": "kubernetes", "primaryVMSet": first}, {"name": "second", "primaryVMSet": second}]);
        }
        let builder = (self.builder)().config(&config);
        let builder = if self.dual_stack { builder.dual_stack() } else { builder };
        let mut world = builder.start().await;
        world.stop().await;
        world
    }

    /// The load balancer of a Service.
    fn balancer(&self, left: &Left) -> String {
        match (left.internal, self.second) {
            (true, Some(_)) => "second-internal".to_owned(),
            (true, None) => "kubernetes-internal".to_owned(),
            (false, _) => "kubernetes".to_owned(),
        }
    }

    fn leave_behind(&self, world: &World) {
        let both = |service: testkit::ServiceBuilder| {
            if self.dual_stack { service.both_families() } else { service }
        };
        let named = |key: &str| service(key).annotation("azure-pip-name", "kept");
        world.create(both(service("shop/web")));
        world.create(both(service("shop/db").internal()));
        world.create(service("shop/local").local());
        world.create(service("shop/guarded").source_ranges(&[CLIENT]));
        world.create(named("shop/first"));
        world.create(named("shop/second").tcp(25));
        // (internal, local, the Service that it shares with, port)
        let kinds = [
            ("shop/web", false, false, None, 80),
            ("shop/db", true, false, None, 80),
            ("shop/local", false, true, None, 80),
            ("shop/guarded", false, false, None, 80),
            ("shop/first", false, false, None, 80),
            ("shop/second", false, false, Some("shop/first"), 25),
        ];
        let left: Vec<Left> = kinds
            .into_iter()
            .map(|(key, internal, local, shares, port)| {
                let object = world.service(key);
                let uid = object["metadata"]["uid"].as_str().unwrap().replace('-', "");
                let base = format!("a{uid}").chars().take(32).collect();
                Left { key, base, internal, local, shares, port, object }
            })
            .collect();
        self.leave_addresses(world, &left);
        self.leave_load_balancers(world, &left);
        self.leave_members(world);
        let addresses: BTreeMap<&str, Vec<String>> =
            left.iter().map(|one| (one.key, self.addresses(world, one, &left))).collect();
        self.leave_security_rules(world, &addresses);
        for one in &left {
            let ingress: Vec<Value> =
                addresses[one.key].iter().map(|address| json!({"ip": address})).collect();
            let (namespace, name) = one.key.split_once('/').unwrap();
            let finalizers =
                json!({"metadata": {"finalizers": ["service.kubernetes.io/load-balancer-cleanup"]}});
            world.change(one.key, &finalizers);
            let status = json!({"status": {"loadBalancer": {"ingress": ingress}}});
            world.kubernetes.merge_status("Service", namespace, name, &status).unwrap();
        }
    }

    fn families_of(&self, left: &Left) -> &'static [&'static str] {
        if ["shop/web", "shop/db"].contains(&left.key) { self.families() } else { &["IPv4"] }
    }

    fn leave_addresses(&self, world: &World, left: &[Left]) {
        let public_ip = |name: &str, family: &str, tags: Value| {
            let document = json!({"location": "westeurope", "sku": {"name": "Standard"}, "tags": tags, "zones": ["1", "2", "3"],
                "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": family}});
            world.azure.put(&world.network("publicIPAddresses", name), document).unwrap();
        };
        public_ip("kept", "IPv4", json!({"owner": "somebody"}));
        let with_one = ["shop/web", "shop/local", "shop/guarded"];
        for one in left.iter().filter(|one| with_one.contains(&one.key)) {
            for family in self.families_of(one) {
                let tags = json!({"k8s-azure-cluster-name": "kubernetes", "k8s-azure-service": one.key});
                public_ip(&format!("kubernetes-{}{}", one.base, suffix(family)), family, tags);
            }
        }
    }

    fn leave_load_balancers(&self, world: &World, left: &[Left]) {
        let mut documents: BTreeMap<String, Value> = BTreeMap::new();
        for one in left {
            let name = self.balancer(one);
            let id = world.network("loadBalancers", &name);
            let document = documents.entry(name).or_insert_with(|| {
                json!({"location": "westeurope", "sku": {"name": "Standard"}, "properties": {
                    "frontendIPConfigurations": [], "backendAddressPools": [], "probes": [], "loadBalancingRules": []}})
            });
            let properties = document["properties"].as_object_mut().unwrap();
            for family in self.families_of(one) {
                let pool = self.pool(one, family);
                let pools = properties["backendAddressPools"].as_array_mut().unwrap();
                if !pools.iter().any(|other| other["name"] == pool.as_str()) {
                    pools.push(json!({"name": pool}));
                }
                let owner = one.shares.map_or(one, |key| left.iter().find(|other| other.key == key).unwrap());
                let frontend = format!("{}{}", owner.base, suffix(family));
                if one.shares.is_none() {
                    let frontends = properties["frontendIPConfigurations"].as_array_mut().unwrap();
                    frontends.push(self.frontend(world, one, &frontend, family));
                }
                let rule = format!("{}-TCP-{}{}", one.base, one.port, suffix(family));
                let port = &one.object["spec"]["ports"][0];
                let floats = !(one.internal && *family == "IPv6");
                let health_check = &one.object["spec"]["healthCheckNodePort"];
                let probe = match health_check.as_i64() {
                    Some(port) if one.local => format!("{}-TCP-{port}{}", one.base, suffix(family)),
                    _ => rule.clone(),
                };
                properties["probes"].as_array_mut().unwrap().push(json!({"name": probe, "properties": {
                    "protocol": if one.local { "Http" } else { "Tcp" },
                    "port": if one.local { health_check } else { &port["nodePort"] },
                    "requestPath": one.local.then_some("/healthz"),
                    "intervalInSeconds": 5, "probeThreshold": 2}}));
                properties["loadBalancingRules"].as_array_mut().unwrap().push(
                    json!({"name": rule, "properties": {
                    "frontendIPConfiguration": {"id": id.child("frontendIPConfigurations", &frontend)},
                    "backendAddressPool": {"id": id.child("backendAddressPools", &pool)},
                    "probe": {"id": id.child("probes", &probe)},
                    "protocol": "Tcp", "frontendPort": one.port,
                    "backendPort": if floats { json!(one.port) } else { port["nodePort"].clone() },
                    "enableFloatingIP": floats, "enableTcpReset": true, "idleTimeoutInMinutes": 4,
                    "loadDistribution": "Default", "disableOutboundSnat": false}}),
                );
            }
        }
        for (name, document) in documents {
            world.azure.put(&world.network("loadBalancers", &name), document).unwrap();
        }
    }

    /// The pool of a Service: its own if it has policy Local and there are several load balancers.
    fn pool(&self, left: &Left, family: &str) -> String {
        if self.second.is_some() && left.local {
            return left.key.replace('/', "-");
        }
        format!("kubernetes{}", suffix(family))
    }

    fn frontend(&self, world: &World, left: &Left, name: &str, family: &str) -> Value {
        if left.internal {
            return json!({"name": name, "zones": ["1", "2", "3"], "properties": {
                "privateIPAllocationMethod": "Dynamic", "privateIPAddressVersion": family,
                "subnet": {"id": world.node_subnet()}}});
        }
        let public_ip =
            if left.key == "shop/first" { "kept".to_owned() } else { format!("kubernetes-{name}") };
        json!({"name": name, "properties": {"publicIPAddress": {"id": world.network("publicIPAddresses", &public_ip)}}})
    }

    /// Lets every node except the control plane's join.
    fn leave_members(&self, world: &World) {
        let balancers = world.azure.documents_of_type("Microsoft.Network/loadBalancers");
        for balancer in balancers {
            let id: ResourceId = balancer["id"].as_str().unwrap().parse().unwrap();
            for pool in balancer["properties"]["backendAddressPools"].as_array().unwrap() {
                let pool = id.child("backendAddressPools", pool["name"].as_str().unwrap());
                let is_ipv6 = pool.name().to_lowercase().ends_with("-ipv6");
                if self.members == Members::Addresses {
                    let nodes = self.nodes_of(world, &id, &pool);
                    join_by_address(world, &id, &pool, &nodes, is_ipv6);
                } else {
                    join_by_interface(world, &pool, is_ipv6);
                }
            }
        }
    }

    /// The nodes of a pool, each with its addresses: those of its load balancer, or those with endpoints of a Service,
    /// wherever they are.
    fn nodes_of(
        &self,
        world: &World,
        balancer: &ResourceId,
        pool: &ResourceId,
    ) -> Vec<(String, Vec<String>)> {
        let of_second = |name: &str| name.starts_with("other");
        let is_shared = self.second.is_some() && !pool.name().starts_with("shop-");
        let is_there = |name: &String| {
            !name.starts_with("control-plane")
                && (!is_shared || of_second(name) == balancer.name().starts_with("second"))
        };
        let names = world.node_names().into_iter().filter(is_there);
        let addresses = |name: &String| {
            let node = world.node(name);
            let addresses = node["status"]["addresses"].as_array().unwrap();
            let internal = addresses.iter().filter(|address| address["type"] == "InternalIP");
            internal.map(|address| address["address"].as_str().unwrap().to_owned()).collect()
        };
        names.map(|name| (name.clone(), addresses(&name))).collect()
    }

    fn addresses(&self, world: &World, one: &Left, left: &[Left]) -> Vec<String> {
        let owner = one.shares.map_or(one, |key| left.iter().find(|other| other.key == key).unwrap());
        let document = world.azure.document(&world.network("loadBalancers", &self.balancer(one))).unwrap();
        let frontends = document["properties"]["frontendIPConfigurations"].as_array().unwrap();
        let of_owner =
            frontends.iter().filter(|frontend| frontend["name"].as_str().unwrap().starts_with(&owner.base));
        of_owner
            .map(|frontend| {
                let properties = &frontend["properties"];
                let public_ip = properties["publicIPAddress"]["id"].as_str();
                let address = match public_ip {
                    Some(id) => {
                        world.azure.document(&id.parse().unwrap()).unwrap()["properties"]["ipAddress"].clone()
                    }
                    None => properties["privateIPAddress"].clone(),
                };
                address.as_str().unwrap().to_owned()
            })
            .collect()
    }

    fn leave_security_rules(&self, world: &World, addresses: &BTreeMap<&str, Vec<String>>) {
        let of = |keys: &[&str], is_ipv6: bool| -> Vec<String> {
            let all = keys.iter().flat_map(|key| addresses[key].clone());
            all.filter(|address| address.contains(':') == is_ipv6).collect()
        };
        let rule = |name: String,
                    priority: u32,
                    access: &str,
                    protocol: &str,
                    from: &str,
                    port: Option<&str>,
                    to: Vec<String>| {
            let mut properties = json!({"priority": priority, "direction": "Inbound", "access": access,
                "protocol": protocol, "sourceAddressPrefix": from, "sourcePortRange": "*"});
            match port {
                Some(port) => properties["destinationPortRanges"] = json!([port]),
                None => properties["destinationPortRange"] = "*".into(),
            }
            match to.as_slice() {
                [one] => properties["destinationAddressPrefix"] = one.as_str().into(),
                _ => properties["destinationAddressPrefixes"] = json!(to),
            }
            json!({"name": name, "properties": properties})
        };
        let open = ["shop/web", "shop/local", "shop/first"];
        let allow = |family: &str, hash: &str| format!("k8s-azure-lb_allow_{family}_{hash}");
        let mut rules = vec![
            rule(allow("IPv4", FROM_ANYONE), 500, "Allow", "Tcp", "Internet", Some("80"), of(&open, false)),
            rule(
                allow("IPv4", FROM_ONE_CLIENT),
                501,
                "Allow",
                "Tcp",
                CLIENT,
                Some("80"),
                of(&["shop/guarded"], false),
            ),
            rule(
                allow("IPv4", FROM_ANYONE_25),
                502,
                "Allow",
                "Tcp",
                "Internet",
                Some("25"),
                of(&["shop/second"], false),
            ),
        ];
        if self.dual_stack {
            let to = of(&open, true);
            rules.push(rule(allow("IPv6", FROM_ANYONE), 503, "Allow", "Tcp", "Internet", Some("80"), to));
        }
        world
            .azure
            .edit(&world.security_group(), |group| group["properties"]["securityRules"] = json!(rules))
            .unwrap();
    }

    fn statuses(&self, world: &World) -> Vec<Value> {
        let services = world.kubernetes.list("Service");
        services.iter().map(|service| service.value()["status"].clone()).collect()
    }
}

/// The name of the rule for TCP port 25 from anyone.
const FROM_ANYONE_25: &str = "d8c08d935504b756aaa1f845c48478db";

fn suffix(family: &str) -> &'static str {
    if family == "IPv6" { "-IPv6" } else { "" }
}

fn join_by_address(
    world: &World,
    balancer: &ResourceId,
    pool: &ResourceId,
    nodes: &[(String, Vec<String>)],
    is_ipv6: bool,
) {
    let mut members = Vec::new();
    for (name, addresses) in nodes {
        for address in addresses.iter().filter(|address| address.contains(':') == is_ipv6) {
            members.push(json!({"name": name, "properties": {"ipAddress": address}}));
        }
    }
    world
        .azure
        .edit(balancer, |document| {
            let pools = document["properties"]["backendAddressPools"].as_array_mut().unwrap();
            let of_it = pools.iter_mut().find(|other| other["name"] == pool.name()).unwrap();
            of_it["properties"] = json!({"virtualNetwork": {"id": world.shape.network()}, "loadBalancerBackendAddresses": members});
        })
        .unwrap();
}

/// Models and instances of scale sets, and interfaces of other machines.
fn join_by_interface(world: &World, pool: &ResourceId, is_ipv6: bool) {
    let join = |interface: &mut Value| {
        let configurations =
            interface.pointer_mut("/properties/ipConfigurations").unwrap().as_array_mut().unwrap();
        let version = if is_ipv6 { "IPv6" } else { "IPv4" };
        let of_family =
            configurations.iter_mut().find(|one| one["properties"]["privateIPAddressVersion"] == version);
        let properties = &mut of_family.unwrap()["properties"];
        if properties["loadBalancerBackendAddressPools"].is_null() {
            properties["loadBalancerBackendAddressPools"] = json!([]);
        }
        properties["loadBalancerBackendAddressPools"].as_array_mut().unwrap().push(json!({"id": pool}));
    };
    let id_of = |document: &Value| document["id"].as_str().unwrap().parse::<ResourceId>().unwrap();
    for (kind, at) in [
        (
            "Microsoft.Compute/virtualMachineScaleSets",
            "/properties/virtualMachineProfile/networkProfile/networkInterfaceConfigurations/0",
        ),
        (
            "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
            "/properties/networkProfileConfiguration/networkInterfaceConfigurations/0",
        ),
    ] {
        for document in world.azure.documents_of_type(kind) {
            world.azure.edit(&id_of(&document), |document| join(document.pointer_mut(at).unwrap())).unwrap();
        }
    }
    for machine in world.azure.documents_of_type("Microsoft.Compute/virtualMachines") {
        if machine["tags"]["role"] != "control-plane" {
            let interface = machine.pointer("/properties/networkProfile/networkInterfaces/0/id").unwrap();
            world.azure.edit(&interface.as_str().unwrap().parse().unwrap(), join).unwrap();
        }
    }
}
