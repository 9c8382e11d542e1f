//! Properties of every planner, over random Services, nodes and foreign resources.

mod worth;

use std::collections::BTreeMap;
use std::sync::Arc;

use azure_types::{IpConfiguration, SubResource};
use k8s::{Node, Service};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::alone::Alone;
use super::*;
use crate::machines::holder::Holder;
use crate::model::Flavor;
use crate::order::cluster_plan::plan_cluster;
use crate::outcome::{Action, Purpose};
use crate::resources::load_balancer::frontend;
use crate::resources::public_ip as addresses;

/// This number of cases, or that of `PROPTEST_CASES`.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    if asked { ProptestConfig::default() } else { ProptestConfig::with_cases(usual) }
}

/// The random choices for one Service.
#[derive(Debug, Clone)]
struct Choice {
    ports: Vec<(&'static str, i32)>,
    internal: bool,
    families: usize,
    local: bool,
    floating: bool,
    subnet: bool,
    ha: bool,
    access: usize,
    deny: bool,
    pinned: bool,
    link: bool,
}

fn choice() -> impl Strategy<Value = Choice> {
    let port = (prop::sample::select(vec!["TCP", "UDP"]), prop::sample::select(vec![53, 80, 443, 8080]));
    let ports = prop::collection::btree_set(port, 1..4).prop_map(|set| set.into_iter().collect());
    let bits = (any::<bool>(), 0..4_usize, any::<bool>(), any::<bool>(), any::<bool>());
    (ports, bits, any::<bool>(), 0..8_usize, any::<bool>(), prop::bool::weighted(0.2), any::<bool>())
        .prop_map(|(ports, (internal, families, local, floating, subnet), ha, access, deny, pinned, link)| {
            Choice { ports, internal, families, local, floating, subnet, ha, access, deny, pinned, link }
        })
}

/// A UID as API servers assign them.
fn uid(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:011}0")
}

fn service(number: usize, choice: &Choice) -> Svc {
    let mut service = svc(&format!("s{number}")).change(|s| s.metadata.uid = Some(uid(number)));
    for (protocol, port) in &choice.ports {
        service = service.port(protocol, *port);
    }
    for (index, port) in service.0.spec.ports.iter_mut().enumerate() {
        port.node_port = 30000 + i32::try_from(number * 10 + index).unwrap();
    }
    service =
        service.families([&["IPv4"][..], &["IPv6"], &["IPv4", "IPv6"], &["IPv6", "IPv4"]][choice.families]);
    if choice.internal {
        service = service.internal();
    }
    if choice.local {
        service = service.local(31000 + i32::try_from(number).unwrap());
    }
    if !choice.floating {
        service = service.annotate("azure-disable-load-balancer-floating-ip", "true");
    }
    if choice.subnet {
        service = service.annotate("azure-load-balancer-internal-subnet", "other");
    }
    if choice.ha {
        service = service.annotate("azure-load-balancer-enable-high-availability-ports", "true");
    }
    service = match choice.access {
        1 => service.ranges(&["10.0.0.0/24", "192.168.0.0/16"]),
        2 => service.ranges(&["0.0.0.0/0"]),
        3 => service.annotate("azure-allowed-service-tags", "AzureCloud,Storage"),
        4 => service.annotate("azure-allowed-ip-ranges", "bad"),
        5 => service.ranges(&["2001:db8::/32"]),
        6 => service.ranges(&["203.0.113.7/32", "203.0.113.9/32", "2001:DB8:0::7/128"]),
        7 => service.annotate("azure-allowed-service-tags", "azurecloud"),
        _ => service,
    };
    if choice.deny {
        service = service.annotate("azure-deny-all-except-load-balancer-source-ranges", "true");
    }
    if choice.link && (choice.internal || !choice.floating) && choice.families != 1 {
        service = service.annotate("azure-pls-create", "true");
    }
    if choice.pinned {
        let name = format!("brought-{}", number % 2);
        service =
            service.annotate("azure-pip-name", &name).annotate("azure-pip-name-ipv6", &format!("{name}-v6"));
    }
    service
}

fn services(choices: &[Choice]) -> Vec<Svc> {
    choices.iter().enumerate().map(|(number, choice)| service(number, choice)).collect()
}

/// Some nodes, some of them excluded.
fn some_nodes() -> impl Strategy<Value = Vec<Arc<Node>>> {
    prop::collection::vec(0..4_u32, 8).prop_map(|states| {
        let all = [("alpha", 0), ("alpha", 1), ("alpha", 2), ("beta", 0), ("beta", 1)];
        let all = all.map(|(set, number)| node(set, number)).into_iter();
        let all = all.chain(["alone", "gamma_1", "other-1"].map(machine_node));
        let made = all.zip(states).filter(|(_, state)| *state > 0).map(|(node, state)| {
            if state == 1 { labelled(node, k8s::names::LABEL_EXCLUDE_FROM_LOAD_BALANCERS, "") } else { node }
        });
        nodes(made)
    })
}

/// Azure with foreign resources, and public IPs that users brought along. Some machines of each kind are in foreign
/// pools: on our load balancer, or on another one, and then they cannot join ours.
fn world() -> Azure {
    world_of(cluster())
}

fn world_of(cluster: Cluster) -> Azure {
    let mut azure = Azure::of(cluster);
    let group = azure.cluster.network_group("rg");
    let theirs = |balancer: &str| {
        let balancer = group.resource("Microsoft.Network", "loadBalancers", balancer);
        SubResource::to(balancer.child("backendAddressPools", "theirs"))
    };
    let (ours, others) = (theirs("testCluster"), theirs("other"));
    let machines = &mut azure.observed.machines;
    for (instance, pool) in machines.scale_sets[0].1.iter_mut().zip([&ours, &others]) {
        let properties = Arc::make_mut(instance).properties.as_mut().unwrap();
        let profile = Arc::make_mut(properties.network_profile_configuration.as_mut().unwrap());
        profile.configurations_mut()[0].pools_mut().push(pool.clone());
    }
    let more = [network_interface("other-1"), network_interface("other-2")].map(Arc::new);
    machines.interfaces.extend(more);
    for (interface, pool) in machines.interfaces.iter_mut().zip([&ours, &ours, &others]) {
        Arc::make_mut(interface).configurations_mut()[0].pools_mut().push(pool.clone());
    }
    let lb = azure.cluster.load_balancer_id(&azure.cluster.placement(Flavor::External));
    let frontend = lb.child("frontendIPConfigurations", "theirs");
    let egress = public_ip(&azure.cluster, "egress", Some("20.1.0.1"), json!({}));
    let theirs = json!({
        "id": lb, "name": "testCluster", "etag": "l0", "location": "westus", "sku": {"name": "Standard"},
        "unknown": {"kept": true},
        "properties": {
            "unknown": [1],
            "frontendIPConfigurations": [{"name": "theirs", "id": frontend, "properties": {
                "publicIPAddress": {"id": egress.id}, "unknown": "x"}}],
            "backendAddressPools": [{"name": "theirs", "id": lb.child("backendAddressPools", "theirs"),
                "properties": {"unknown": 2, "loadBalancerBackendAddresses": []}}],
            "probes": [{"name": "theirs", "id": lb.child("probes", "theirs"),
                "properties": {"protocol": "Tcp", "port": 1, "numberOfProbes": 3}}],
            "loadBalancingRules": [{"name": "theirs", "id": lb.child("loadBalancingRules", "theirs"), "properties": {
                "frontendIPConfiguration": {"id": frontend}, "protocol": "Tcp", "frontendPort": 80, "backendPort": 80,
                "backendAddressPool": {"id": lb.child("backendAddressPools", "theirs")}, "unknown": true}}],
            "outboundRules": [{"name": "theirs", "properties": {
                "frontendIPConfigurations": [{"id": frontend}], "allocatedOutboundPorts": 1024}}],
        },
    });
    azure.observed.load_balancers.push(Arc::new(serde_json::from_value(theirs).unwrap()));
    azure.observed.public_ips.push(Arc::new(egress));
    for number in 0..2 {
        for (suffix, address) in [("", format!("20.1.1.{number}")), ("-v6", format!("2001:db8:1::{number}"))]
        {
            let name = format!("brought-{number}{suffix}");
            azure.observed.public_ips.push(Arc::new(public_ip(
                &azure.cluster,
                &name,
                Some(&address),
                json!({"mine": "yes"}),
            )));
        }
    }
    azure.observed.security_group = Some(security_group(json!([
        {"name": "theirs", "unknown": 1, "properties": {"priority": 500, "access": "Allow", "direction": "Inbound",
            "protocol": "Tcp", "sourceAddressPrefix": "*", "sourcePortRange": "*", "destinationPortRange": "22",
            "destinationAddressPrefix": "*", "unknown": "x"}},
    ])));
    // Settled: values that Azure itself fills in are present.
    let lb = azure.observed.load_balancers[0].clone();
    let step = Step {
        action: Action::Update,
        target: lb.id.clone().unwrap(),
        if_match: lb.etag.clone(),
        document: Some(Document::LoadBalancer(Box::new(LoadBalancer::clone(&lb)))),
        changes: Vec::new(),
        purpose: Purpose::Change,
        on_behalf_of: Vec::new(),
        ownership: Vec::new(),
    };
    azure.take(&step);
    azure
}

/// Everything foreign, without versions.
fn foreign(azure: &Azure) -> Value {
    let lb = azure.load_balancer(Flavor::External).expect("holds foreign parts");
    let mut document = serde_json::to_value(lb).unwrap();
    let kinds =
        ["frontendIPConfigurations", "backendAddressPools", "probes", "loadBalancingRules", "outboundRules"];
    for kind in kinds {
        let list = document["properties"][kind].as_array_mut().unwrap();
        list.retain(|member| member["name"] == "theirs");
    }
    document.as_object_mut().unwrap().remove("etag");
    let rules =
        azure.observed.security_group.as_ref().unwrap().properties.as_ref().unwrap().security_rules.clone();
    let mut rules: Vec<Value> = rules
        .unwrap()
        .iter()
        .filter(|rule| rule.name.as_deref() == Some("theirs"))
        .map(|rule| serde_json::to_value(rule).unwrap())
        .collect();
    // The model of Azure fills in empty lists at the first write.
    for rule in &mut rules {
        rule.as_object_mut().unwrap().remove("id");
        rule["properties"].as_object_mut().unwrap().retain(|_, value| *value != json!([]));
    }
    let mut brought = azure.observed.public_ips.clone();
    brought
        .retain(|ip| ip.name.as_deref().is_some_and(|name| name == "egress" || name.starts_with("brought")));
    let brought: BTreeMap<String, Value> = brought
        .into_iter()
        .map(|mut ip| {
            let document = Arc::make_mut(&mut ip);
            document.etag = None;
            document.properties.as_mut().unwrap().ip_configuration = None;
            (ip.name.clone().unwrap(), serde_json::to_value(ip).unwrap())
        })
        .collect();
    json!({"balancer": document, "rules": rules, "public IPs": brought, "members": foreign_members(azure)})
}

/// The machines in foreign pools, with the pools.
fn foreign_members(azure: &Azure) -> Vec<String> {
    fn pools_of(name: &ResourceId, holder: &impl Holder) -> Vec<String> {
        let pools = holder.configurations().iter().flat_map(IpConfiguration::pools);
        let pools = pools.filter_map(|pool| pool.id.as_ref()).filter(|pool| pool.name() == "theirs");
        pools.map(|pool| format!("{name} in {pool}")).collect()
    }
    let machines = &azure.observed.machines;
    let instances = machines.scale_sets.iter().flat_map(|(_, instances)| instances);
    let mut found: Vec<String> = instances
        .flat_map(|instance| {
            let profile = &instance.properties.as_ref().unwrap().network_profile_configuration;
            pools_of(instance.id.as_ref().unwrap(), profile.as_deref().unwrap())
        })
        .collect();
    let interfaces = machines.interfaces.iter();
    found.extend(interfaces.flat_map(|one| pools_of(one.id.as_ref().unwrap(), &**one)));
    assert_eq!(found.len(), 5, "{found:?}");
    found
}

/// The pools of single Services, and foreign ones.
fn local_pool_names(load_balancer: &LoadBalancer) -> impl Iterator<Item = &str> {
    let pools = load_balancer.properties.iter().flat_map(|p| p.backend_address_pools.iter().flatten());
    pools.filter_map(|pool| pool.name.as_deref()).filter(|name| !name.starts_with("testCluster"))
}

/// Our resources, which should be gone once no Service is left.
fn ours(azure: &Azure) -> Vec<String> {
    let mut found = Vec::new();
    for lb in &azure.observed.load_balancers {
        let p = lb.properties.as_ref().unwrap();
        let frontends = p.frontend_ip_configurations.iter().flatten().map(frontend::name_of);
        let names = frontends
            .chain(rule_names(lb))
            .chain(probe_names(lb))
            .chain(local_pool_names(lb))
            .filter(|name| *name != "theirs")
            .map(str::to_owned);
        found.extend(names);
    }
    let managed = azure.observed.public_ips.iter().filter_map(|ip| ip.name.clone());
    found.extend(managed.filter(|name| name.starts_with("testCluster")));
    found.extend(azure.observed.private_links.iter().filter_map(|link| link.name.clone()));
    let group = azure.observed.security_group.as_ref().unwrap().properties.as_ref().unwrap();
    let rules = group.security_rules.iter().flatten().filter_map(|rule| rule.name.clone());
    found.extend(rules.filter(|name| name != "theirs"));
    found
}

/// The name of the public IP of a second cluster of the same name, for its own Service `default/s0`.
const NEIGHBOUR: &str = "testCluster-a257b965551374ad2b091ef3f07043ad";

/// The resources of a second cluster of the same name: a public IP, and a security rule that it shares with Services
/// that ask for the same traffic.
fn neighbour(azure: &mut Azure) {
    let tags = json!({"k8s-azure-service": "default/s0", "k8s-azure-cluster-name": "testCluster"});
    let public_ip = public_ip(&azure.cluster, NEIGHBOUR, Some("198.18.0.9"), tags);
    azure.observed.public_ips.push(Arc::new(public_ip));
    let group = azure.observed.security_group.as_mut().unwrap().properties.as_mut().unwrap();
    let rule = json!({"name": "k8s-azure-lb_allow_IPv4_234b136ff3f7895c6a238305b665c7ea", "properties": {
        "priority": 501, "access": "Allow", "direction": "Inbound", "protocol": "Tcp",
        "sourceAddressPrefix": "Internet", "sourcePortRange": "*", "destinationPortRanges": ["53"],
        "destinationAddressPrefix": "198.18.0.9",
    }});
    group.security_rules.as_mut().unwrap().push(serde_json::from_value(rule).unwrap());
    azure.attach();
}

/// Which of them exist.
fn neighbours(azure: &Azure) -> (Value, bool) {
    let mut public_ips = azure.observed.public_ips.iter();
    let public_ip = public_ips.find(|one| one.name.as_deref() == Some(NEIGHBOUR));
    let open =
        crate::resources::security_group::open_addresses(azure.observed.security_group.as_ref().unwrap());
    (json!(public_ip.map(|one| &one.tags)), open.contains(&"198.18.0.9".parse().unwrap()))
}

/// Whether a fact that a step on a public IP gives as evidence is true in Azure. Facts of other resources concern their
/// parts.
fn holds(azure: &Azure, step: &Step, fact: &ownership::Evidence) -> bool {
    let Some(held) = azure.observed.public_ips.iter().find(|one| one.id.as_ref() == Some(&step.target))
    else {
        return true;
    };
    match fact {
        ownership::Evidence::Tag { key, value } => {
            held.tags.as_ref().is_some_and(|tags| tags.get(key) == Some(value))
        }
        ownership::Evidence::Name { name, .. } => step.target.name() == name,
        _ => true,
    }
}

/// The existing parts that a step removes without a proof.
fn unproven(azure: &Azure, step: &Step) -> Vec<String> {
    let target = step.target.to_string();
    if step.action != Action::Create && step.ownership.is_empty() {
        return vec![target];
    }
    let false_facts =
        step.ownership.iter().flat_map(ownership::Proof::evidence).filter(|fact| !holds(azure, step, fact));
    let false_facts: Vec<String> = false_facts.map(|fact| format!("{target}: {fact}")).collect();
    if !false_facts.is_empty() {
        return false_facts;
    }
    let proven = |part: &String| step.ownership.iter().any(|proof| proof.part() == Some(part));
    let parts: Vec<String> = match &step.document {
        None => match step.ownership.iter().any(|proof| proof.part().is_none()) {
            true => Vec::new(),
            false => vec![target],
        },
        Some(Document::LoadBalancer(after)) => {
            let mut all = azure.observed.load_balancers.iter();
            let before = all.find(|one| one.id.as_ref() == Some(&step.target));
            let parts = |one: &LoadBalancer| -> Vec<String> {
                let p = one.properties.as_ref().unwrap();
                let frontends = p.frontend_ip_configurations.iter().flatten();
                let frontends = frontends.map(|one| format!("frontend {}", frontend::name_of(one)));
                let rules = rule_names(one).into_iter().map(|name| format!("rule {name}"));
                let probes = probe_names(one).into_iter().map(|name| format!("probe {name}"));
                frontends.chain(rules).chain(probes).collect()
            };
            let kept = parts(after);
            before
                .map(|one| parts(one))
                .unwrap_or_default()
                .into_iter()
                .filter(|one| !kept.contains(one))
                .collect()
        }
        Some(Document::SecurityGroup(after)) => {
            let before = crate::resources::security_group::open_addresses(
                azure.observed.security_group.as_ref().unwrap(),
            );
            let after = crate::resources::security_group::open_addresses(after);
            before.difference(&after).map(|address| format!("destination {address}")).collect()
        }
        Some(_) => Vec::new(),
    };
    parts.into_iter().filter(|part| !proven(part)).collect()
}

/// The Services with the addresses in their status that Azure shows for these Services.
fn with_status(azure: &Azure, before: &[Svc], services: &[Svc]) -> Vec<Svc> {
    let all = azure.observed.load_balancers.iter().cloned();
    let load_balancers = azure.cluster.own_load_balancers(all, &arcs(before));
    let status = |service: &Svc| {
        let mine = before.iter().find(|one| one.0.key() == service.0.key());
        let sequence = mine.map(|one| {
            crate::order::sequence::Sequence::remove(
                crate::service::ServiceRemoval::of(&azure.cluster, &one.0).into(),
            )
        });
        let shown = sequence
            .map(|one| one.observed_addresses(&azure.cluster, &load_balancers, &azure.observed.public_ips));
        let shown: Vec<String> = shown.iter().flatten().map(ToString::to_string).collect();
        service.clone().published(&shown.iter().map(String::as_str).collect::<Vec<_>>())
    };
    services.iter().map(status).collect()
}

/// The same, if these nodes were deleted unobserved: a rule at the address of such a node could also belong to another
/// cluster, and stays.
fn ours_but_for(azure: &mut Azure, departed: &[Arc<Node>], nodes: &[Arc<Node>]) -> Vec<String> {
    let stays: std::collections::BTreeSet<String> = departed
        .iter()
        .filter(|node| nodes.iter().all(|one| one.name() != node.name()))
        .flat_map(|node| node.internal_addresses().map(|address| address.to_string()).collect::<Vec<_>>())
        .collect();
    let group = azure.observed.security_group.as_mut().unwrap().properties.as_mut().unwrap();
    group.security_rules.as_mut().unwrap().retain(|rule| {
        let p = rule.properties.as_ref().unwrap();
        let listed = p.destination_address_prefixes.iter().flatten().chain(&p.destination_address_prefix);
        !listed.into_iter().all(|one| stays.contains(one))
    });
    ours(azure)
}

/// Whether a Service has what it wants on its load balancer, and addresses for it.
fn served(azure: &Azure, service: &Svc) -> Result<(), String> {
    let intent = service.intent(&azure.cluster);
    let lb = azure.load_balancer(intent.flavor).ok_or("no load balancer")?;
    let balancer = azure.cluster.placement(intent.flavor);
    let claimed = addresses::claimed(&azure.cluster, intent.removal(), &azure.observed.public_ips);
    let frontends = frontend::frontends_of(
        &azure.cluster,
        &balancer,
        &Arc::new(lb.clone()).into(),
        intent.removal(),
        &claimed,
    );
    for family in &intent.families {
        let found: Vec<_> = frontends.iter().filter(|frontend| frontend.family == *family).collect();
        let [frontend] = found.as_slice() else { return Err(format!("{family}: {frontends:?}")) };
        if frontend.private_address.is_none() && frontend.public_ip.is_none() {
            return Err(format!("no address: {frontend:?}"));
        }
        for wanted in crate::resources::load_balancer::rule::desired(&azure.cluster, &intent, *family).rules {
            let rule = rules(lb).iter().find(|rule| rule.name.as_deref() == Some(&wanted.name));
            let properties =
                rule.and_then(|rule| rule.properties.as_ref()).ok_or(format!("no {wanted:?}"))?;
            let at = properties.frontend_ip_configuration.as_ref().and_then(|f| f.id.clone());
            if at.as_ref() != Some(&frontend.id) || properties.backend_port != Some(wanted.backend_port) {
                return Err(format!("{wanted:?} is {properties:?}"));
            }
        }
    }
    Ok(())
}

/// Removes or changes one of our resources, as a careless user might; Azure accepts it.
fn spoil(azure: &mut Azure, what: usize, which: &prop::sample::Index) {
    let is_ours = |name: &Option<String>| name.as_deref().is_some_and(|name| name != "theirs");
    let observed = &mut azure.observed;
    if what < 3 {
        let Some(group) = observed.security_group.as_mut() else { return };
        let rules = group.properties.as_mut().unwrap().security_rules.as_mut().unwrap();
        let mine: Vec<usize> = (0..rules.len()).filter(|at| is_ours(&rules[*at].name)).collect();
        if mine.is_empty() {
            return;
        }
        let at = mine[which.index(mine.len())];
        let properties = rules[at].properties.as_mut().unwrap();
        match what {
            0 => drop(rules.remove(at)),
            1 => {
                properties.source_address_prefix = Some("192.0.2.0/24".to_owned());
                properties.source_address_prefixes = Some(Vec::new());
            }
            _ => {
                properties.destination_port_range = None;
                properties.destination_port_ranges = Some(vec!["1".to_owned()]);
            }
        }
        return;
    }
    let balancers = observed.load_balancers.len();
    if balancers == 0 {
        return;
    }
    let properties =
        Arc::make_mut(&mut observed.load_balancers[which.index(balancers)]).properties.as_mut().unwrap();
    let rules = properties.load_balancing_rules.get_or_insert_default();
    let mine: Vec<usize> = (0..rules.len()).filter(|at| is_ours(&rules[*at].name)).collect();
    let Some(at) = (!mine.is_empty()).then(|| mine[which.index(mine.len())]) else { return };
    let rule = rules[at].properties.as_mut().unwrap();
    match what {
        3 => drop(rules.remove(at)),
        4 => rule.backend_port = Some(1),
        5 => (rule.idle_timeout_in_minutes, rule.enable_floating_ip) = (Some(29), Some(false)),
        // Its probe is removed with all rules that use it.
        6 => {
            let probe = rule.probe.take().and_then(|probe| probe.id);
            for other in rules.iter_mut().filter_map(|rule| rule.properties.as_mut()) {
                if other.probe.as_ref().is_some_and(|own| own.id == probe) {
                    other.probe = None;
                }
            }
            properties.probes.get_or_insert_default().retain(|one| one.id != probe || probe.is_none());
        }
        // Its frontend is removed with all its rules.
        7 => {
            let frontend = rule.frontend_ip_configuration.as_ref().and_then(|reference| reference.id.clone());
            rules.retain(|rule| {
                let reference = rule.properties.as_ref().and_then(|p| p.frontend_ip_configuration.as_ref());
                reference.is_none_or(|reference| reference.id != frontend)
            });
            let frontends = properties.frontend_ip_configurations.get_or_insert_default();
            let links = observed.private_links.iter().filter_map(|link| link.properties.as_ref());
            let mut offered = links.flat_map(|p| p.load_balancer_frontend_ip_configurations.iter().flatten());
            if !offered.any(|reference| reference.id == frontend) {
                frontends.retain(|one| one.id != frontend);
            }
        }
        _ => {
            for probe in properties.probes.iter_mut().flatten().filter(|probe| is_ours(&probe.name)) {
                probe.properties.as_mut().unwrap().interval_in_seconds = Some(77);
            }
        }
    }
    azure.attach();
}

fn arcs(services: &[Svc]) -> Vec<Arc<Service>> {
    services.iter().map(Svc::arc).collect()
}

proptest! {
    #![proptest_config(cases(64))]

    /// Planning again after a plan is applied gives an empty plan, nothing foreign changes, and when all Services are
    /// deleted, so is everything that was theirs.
    #[test]
    fn plans_converge_touch_nothing_foreign_and_leave_nothing(
        choices in prop::collection::vec(choice(), 1..6),
        nodes in some_nodes(),
    ) {
        let services = services(&choices);
        let mut azure = world();
        let before = foreign(&azure);
        let end = azure.converge(&arcs(&services), &nodes);
        prop_assert_eq!(&foreign(&azure), &before);
        for service in services.iter().filter(|s| !end.refused.iter().any(|(key, _)| *key == s.0.key())) {
            prop_assert_eq!(served(&azure, service), Ok(()));
        }
        prop_assert!(azure.plan(&arcs(&services), &nodes).plan.is_empty());

        let gone: Vec<_> = services.iter().map(|service| service.clone().deleting().arc()).collect();
        azure.converge(&gone, &nodes);
        prop_assert_eq!(&foreign(&azure), &before);
        prop_assert_eq!(ours(&azure), Vec::<String>::new());
    }

    /// LB-607: nothing that exists is deleted, and nothing is removed from it, without a proof, and nothing of a second
    /// cluster is a target: it has the same name, shares the group and the security group, and has Services of the same
    /// names.
    #[test]
    fn nothing_is_taken_without_a_proof(
        old in prop::collection::vec(choice(), 1..5),
        new in prop::collection::vec(choice(), 0..5),
        nodes in some_nodes(),
    ) {
        let mut azure = world();
        neighbour(&mut azure);
        let before = (foreign(&azure), neighbours(&azure));
        for (services, all_go) in [(services(&old), false), (services(&new), false), (services(&new), true)] {
            let mut wanted = services;
            for (number, choice) in old.iter().enumerate().skip(wanted.len()) {
                wanted.push(service(number, choice).deleting());
            }
            let wanted: Vec<Svc> = wanted.into_iter().map(|one| if all_go { one.deleting() } else { one }).collect();
            for _ in 0..6 {
                let planned = azure.plan(&arcs(&wanted), &nodes).plan;
                if planned.is_empty() {
                    break;
                }
                for step in &planned.steps {
                    prop_assert_eq!(unproven(&azure, step), Vec::<String>::new(), "{}", planned);
                    // A resource that a plan writes twice has the version of the first write then.
                    let if_match = azure.etag_of(&step.target).flatten();
                    azure.take(&Step { if_match, ..step.clone() });
                }
                prop_assert_eq!(&(foreign(&azure), neighbours(&azure)), &before);
            }
        }
    }

    /// From any intermediate state, and whatever the Services wanted before, the same end is reached.
    #[test]
    fn plans_converge_from_states_that_were_applied_in_part(
        old in prop::collection::vec(choice(), 1..5),
        new in prop::collection::vec(choice(), 1..5),
        cut in 0..12_usize,
        old_nodes in some_nodes(),
        nodes in some_nodes(),
    ) {
        let mut azure = world();
        let before = foreign(&azure);
        azure.converge(&arcs(&services(&old)), &old_nodes);
        // Deleted Services leave first; the others change in place.
        let mut wanted = services(&new);
        for (number, choice) in old.iter().enumerate().skip(new.len()) {
            wanted.push(service(number, choice).deleting());
        }
        let wanted = arcs(&with_status(&azure, &services(&old), &wanted));
        let planned = azure.plan(&wanted, &nodes);
        azure.apply(&crate::outcome::Plan { steps: planned.plan.steps.into_iter().take(cut).collect() });
        azure.converge(&wanted, &nodes);
        prop_assert_eq!(&foreign(&azure), &before);

        let gone: Vec<_> = wanted.iter().map(|service| Svc((**service).clone()).deleting().arc()).collect();
        azure.converge(&gone, &nodes);
        prop_assert_eq!(&foreign(&azure), &before);
        prop_assert_eq!(ours_but_for(&mut azure, &old_nodes, &nodes), Vec::<String>::new());
    }

    /// Whichever of our resources were removed or changed, they are repaired; foreign ones are left unchanged.
    #[test]
    fn plans_converge_from_spoilt_states(
        choices in prop::collection::vec(choice(), 1..5),
        nodes in some_nodes(),
        spoils in prop::collection::vec((0..9_usize, any::<prop::sample::Index>()), 1..6),
    ) {
        let services = services(&choices);
        let mut azure = world();
        let before = foreign(&azure);
        azure.converge(&arcs(&services), &nodes);
        for (what, which) in &spoils {
            spoil(&mut azure, *what, which);
        }
        let end = azure.converge(&arcs(&services), &nodes);
        prop_assert_eq!(&foreign(&azure), &before);
        for service in services.iter().filter(|s| !end.refused.iter().any(|(key, _)| *key == s.0.key())) {
            prop_assert_eq!(served(&azure, service), Ok(()));
        }
        let gone: Vec<_> = services.iter().map(|service| service.clone().deleting().arc()).collect();
        azure.converge(&gone, &nodes);
        prop_assert_eq!(&foreign(&azure), &before);
        prop_assert_eq!(ours(&azure), Vec::<String>::new());
    }

    /// The same if Services have pools of their own, wherever their endpoints were and are.
    #[test]
    fn pools_of_services_converge(
        old in prop::collection::vec(choice(), 1..4),
        new in prop::collection::vec(choice(), 1..4),
        (before, after) in (prop::collection::vec(0..8_u32, 4), prop::collection::vec(0..8_u32, 4)),
        nodes in some_nodes(),
    ) {
        let endpoints = |masks: &[u32]| {
            let on = |mask: u32| (0..3).filter(move |number| mask & (1 << number) != 0);
            let names = |mask| on(mask).map(|number| node("alpha", number).name().to_owned()).collect();
            let keys = (0..).map(|number| k8s::ObjectKey::new("default", format!("s{number}")));
            Some(keys.zip(masks).map(|(key, mask)| (key, names(*mask))).collect())
        };
        let mut azure = world_of(cluster_with(json!({
            "loadBalancerBackendPoolConfigurationType": "nodeIP",
            "multipleStandardLoadBalancerConfigurations": [{"name": "testCluster", "primaryVMSet": "alpha"}],
        })));
        let theirs = foreign(&azure);
        azure.observed.endpoints = endpoints(&before);
        azure.converge(&arcs(&services(&old)), &nodes);
        azure.observed.endpoints = endpoints(&after);
        let mut wanted = services(&new);
        for (number, choice) in old.iter().enumerate().skip(new.len()) {
            wanted.push(service(number, choice).deleting());
        }
        let wanted = arcs(&with_status(&azure, &services(&old), &wanted));
        let end = azure.converge(&wanted, &nodes);
        prop_assert_eq!(&foreign(&azure), &theirs);
        let mut expected: Vec<String> = Vec::new();
        for service in wanted.iter().filter(|service| service.is_local() && service.is_to_be_served()) {
            if end.refused.iter().all(|(key, _)| *key != service.key()) {
                let intent = crate::service::ServiceIntent::from_service(&azure.cluster, service).unwrap();
                let names = intent.families.iter().map(|family| crate::service::local_pool::name(&service.key(), *family));
                expected.extend(names);
            }
        }
        if end.refused.is_empty() {
            let balancers = azure.observed.load_balancers.iter();
            let mut found: Vec<_> =
                balancers.flat_map(|one| local_pool_names(one)).filter(|name| *name != "theirs").map(str::to_owned).collect();
            found.sort();
            expected.sort();
            prop_assert_eq!(found, expected);
        }
        let gone: Vec<_> = wanted.iter().map(|service| Svc((**service).clone()).deleting().arc()).collect();
        azure.converge(&gone, &nodes);
        prop_assert_eq!(&foreign(&azure), &theirs);
        prop_assert_eq!(ours(&azure), Vec::<String>::new());
    }

    /// The order of the input does not change the output.
    #[test]
    fn the_order_of_inputs_does_not_matter(
        choices in prop::collection::vec(choice(), 2..7),
        nodes in some_nodes(),
        seed in any::<u64>(),
    ) {
        let services = arcs(&services(&choices));
        let mut azure = world();
        let first: Vec<_> = services.iter().step_by(2).cloned().collect();
        azure.converge(&first, &nodes);
        let planned = azure.plan(&services, &nodes);

        let shuffle = |length: usize| {
            let mut order: Vec<usize> = (0..length).collect();
            order.sort_by_key(|index| (*index as u64 + 1).wrapping_mul(seed | 1).rotate_left(17));
            order
        };
        let shuffled: Vec<_> = shuffle(services.len()).into_iter().map(|i| services[i].clone()).collect();
        let mixed: Vec<_> = shuffle(nodes.len()).into_iter().map(|i| nodes[i].clone()).collect();
        let mut observed = azure.observed.clone();
        observed.public_ips = shuffle(observed.public_ips.len())
            .into_iter()
            .map(|i| observed.public_ips[i].clone())
            .collect();
        observed.machines.scale_sets.reverse();
        observed.machines.scale_sets.iter_mut().for_each(|(_, instances)| instances.reverse());
        observed.machines.interfaces.reverse();
        observed.machines.virtual_machines.reverse();
        let again = plan_cluster(&azure.cluster, &shuffled, &mixed, &observed);
        prop_assert_eq!(planned, again);
    }

    /// Services reconciled one at a time, in any order, do not undo each other's work: soon nothing is written any
    /// more, and a plan for all together agrees. They leave one at a time as well, whichever of them was first on a
    /// shared resource.
    #[test]
    fn one_service_at_a_time_comes_to_the_same_end(
        choices in prop::collection::vec(choice(), 1..6),
        nodes in some_nodes(),
        backwards in any::<bool>(),
    ) {
        let mut azure = world();
        // A managed address that some of them share.
        azure.observed.public_ips.push(Arc::new(public_ip(&azure.cluster, "shared", Some("20.1.2.1"), json!({
            "k8s-azure-service": "default/elsewhere", "k8s-azure-cluster-name": "testCluster"}))));
        let before = foreign(&azure);
        let services: Vec<Svc> = services(&choices)
            .into_iter()
            .zip(&choices)
            .map(|(service, choice)| {
                if choice.deny { service.annotate("azure-pip-name", "shared") } else { service }
            })
            .collect();
        let mut alone = Alone::new(azure, arcs(&services), nodes);
        let mut quiet = false;
        for _ in 0..4 {
            quiet = alone.round() == 0;
        }
        prop_assert!(quiet, "still writes: {}", alone.azure.plan(&alone.all, &alone.nodes));
        if alone.refused.is_empty() {
            let mut published = services.clone();
            for service in &mut published {
                let ips = alone.programmed.get(&service.0.key()).cloned().unwrap_or_default();
                let ips: Vec<String> = ips.iter().map(ToString::to_string).collect();
                *service = service.clone().published(&ips.iter().map(String::as_str).collect::<Vec<_>>());
            }
            let planned = alone.azure.plan(&arcs(&published), &alone.nodes);
            prop_assert!(planned.plan.is_empty(), "{}", planned);
        }
        prop_assert_eq!(&foreign(&alone.azure), &before);

        let mut order: Vec<usize> = (0..services.len()).collect();
        if backwards {
            order.reverse();
        }
        for number in order {
            let gone = services[number].clone().deleting().arc();
            alone.all.retain(|service| service.key() != gone.key());
            alone.reconcile(&gone);
        }
        prop_assert_eq!(&foreign(&alone.azure), &before);
        prop_assert_eq!(ours(&alone.azure), Vec::<String>::new());
        let shared = alone.azure.observed.public_ips.iter().find(|ip| ip.name.as_deref() == Some("shared")).unwrap();
        prop_assert_eq!(&shared.tags.as_ref().unwrap()["k8s-azure-service"], "default/elsewhere");
    }
}

/// A random find: while others leave, the rule of an internal IPv6 Service with HA ports stays at its nodes.
#[test]
fn rules_at_nodes_stay_while_others_leave() {
    let choice =
        |internal: bool, families: usize, ha: bool, ports: Vec<(&'static str, i32)>, access: usize| Choice {
            ports,
            internal,
            families,
            local: false,
            floating: false,
            subnet: false,
            ha,
            access,
            deny: false,
            link: false,
            pinned: false,
        };
    let mut azure = world();
    let old = [choice(false, 0, false, vec![("TCP", 53)], 0), choice(true, 1, true, vec![("TCP", 53)], 2)];
    azure.converge(&arcs(&services(&old)), &[]);
    let mut wanted = services(&[choice(true, 1, true, vec![("TCP", 53), ("TCP", 80)], 2)]);
    wanted.push(service(1, &old[1]).deleting());
    let nodes = nodes([node("beta", 1)]);
    azure.converge(&arcs(&wanted), &nodes);
}
