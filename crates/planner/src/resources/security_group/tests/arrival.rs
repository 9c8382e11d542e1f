//! The security group allows the traffic that the load balancer delivers, at the destination where it arrives.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::{addresses_of_nodes, after, ip, run, world};
use crate::model::Family;
use crate::order::tests::Azure;
use crate::order::tests::{Svc, cluster, node, nodes, security_group, svc};
use crate::resources::load_balancer::rule;
use crate::resources::security_group::intent::AccessIntent;
use crate::resources::security_group::rule::{destination_ports, items};

const NODES: [&str; 4] = ["10.0.1.10", "10.0.1.11", "fd00:1::10", "fd00:1::11"];

fn of_family<'a>(addresses: &[&'a str], family: Family) -> BTreeSet<&'a str> {
    addresses.iter().copied().filter(|address| Family::of(ip(address)) == family).collect()
}

/// LB-138, LB-140, LB-141, LB-285: whatever a Service asks for, each family's packets are allowed with the destination
/// and the port that its load-balancing rule gives them.
#[test]
fn security_rules_are_for_the_port_and_destination_of_the_load_balancing_rule() {
    let frontends = ["20.0.0.1", "2001:db8::1"];
    for choice in 0..32 {
        let [internal, v6_only, dual, at_nodes, ha] = [1, 2, 4, 8, 16].map(|bit| choice & bit != 0);
        let mut service = svc("test1").tcp(80).udp(53).ranges(&["0.0.0.0/0", "::/0"]);
        if v6_only || dual {
            service = service.families(if dual { &["IPv4", "IPv6"] } else { &["IPv6"] });
        }
        for (wanted, key) in [
            (internal, "azure-load-balancer-internal"),
            (at_nodes, "azure-disable-load-balancer-floating-ip"),
            (ha, "azure-load-balancer-enable-high-availability-ports"),
        ] {
            if wanted {
                service = service.annotate(key, "true");
            }
        }
        let intent = service.intent(&cluster());
        let families = intent.families.clone();
        let mine = |address: &&&str| families.contains(&Family::of(ip(address)));
        let present = AccessIntent::Present {
            service: intent.clone(),
            addresses: frontends.iter().filter(mine).map(|address| ip(address)).collect(),
            node_addresses: NODES.iter().map(|address| ip(address)).collect(),
        };
        let group = security_group(json!([]));
        let written = after(&group, &run(&group, &[present], &world(&[&service])));
        let mut admitted = BTreeSet::new();
        for rule in written.properties.as_ref().unwrap().security_rules.as_ref().unwrap() {
            let p = rule.properties.as_ref().unwrap();
            let to: BTreeSet<String> = items(&p.destination_address_prefix, &p.destination_address_prefixes)
                .map(str::to_owned)
                .collect();
            for port in destination_ports(p).unwrap() {
                admitted.insert((p.protocol.as_ref().unwrap().as_str().to_owned(), to.clone(), port));
            }
        }
        let mut delivered = BTreeSet::new();
        for family in &families {
            for rule in rule::desired(&cluster(), &intent, *family).rules {
                let to = of_family(if rule.floating_ip { &frontends } else { &NODES }, *family);
                let to: BTreeSet<String> = to.into_iter().map(str::to_owned).collect();
                if rule.protocol == "All" {
                    // HA ports deliver to the port that clients use.
                    delivered.insert(("Tcp".to_owned(), to.clone(), 80));
                    delivered.insert(("Udp".to_owned(), to, 53));
                } else {
                    delivered.insert((rule.protocol.to_owned(), to, rule.backend_port));
                }
            }
        }
        assert_eq!(admitted, delivered, "internal {internal}, {families:?}, at nodes {at_nodes}, HA {ha}");
    }
}

/// Rules at nodes for internal IPv6 are kept while other Services of the same address family are planned.
#[test]
fn rules_of_internal_ipv6_services_survive_the_plans_of_others() {
    let v6 = svc("a1").tcp(80).internal().families(&["IPv6"]).ranges(&["::/0"]).published(&["fd00::8"]);
    let other = svc("b1").tcp(81).published(&["20.0.0.2"]);
    let nodes: Vec<_> = NODES[..2].iter().chain(&["fd00:1::10", "fd00:1::11"]).map(|node| ip(node)).collect();
    let of = |service: &crate::order::tests::Svc, address: &str| AccessIntent::Present {
        service: service.intent(&cluster()),
        addresses: vec![ip(address)],
        node_addresses: nodes.clone(),
    };
    let empty = security_group(json!([]));
    let usage = world(&[&v6, &other]);
    let group = after(&empty, &run(&empty, &[of(&v6, "fd00::8")], &usage));
    let both = after(&group, &run(&group, &[of(&other, "20.0.0.2")], &usage));
    assert_eq!(crate::resources::security_group::tests::summary(&both).len(), 2);
    assert!(
        crate::resources::security_group::tests::summary(&both)[0]
            .ends_with("-> fd00:1::10,fd00:1::11 10080"),
        "{:?}",
        crate::resources::security_group::tests::summary(&both)
    );
    assert_eq!(run(&both, &[of(&v6, "fd00::8")], &usage).step, None);
}

const DENY: &str = "azure-deny-all-except-load-balancer-source-ranges";

fn at_nodes(service: &Svc, frontend: &str, nodes: &[&str]) -> AccessIntent {
    AccessIntent::Present {
        service: service.intent(&cluster()),
        addresses: vec![ip(frontend)],
        node_addresses: nodes.iter().map(|node| ip(node)).collect(),
    }
}

/// LB-400: other traffic arrives at nodes, too: for kubelets, for other Services, and health probes for this one. A
/// Service that denies all else denies it there only at its own ports.
#[test]
fn what_arrives_at_nodes_is_denied_for_the_services_ports_alone() {
    let v4 = svc("test1").tcp(80).udp(53).ranges(&["10.0.0.0/24"]).annotate(DENY, "true");
    let v4 = v4.annotate("azure-disable-load-balancer-floating-ip", "true");
    let v6 =
        svc("test2").tcp(80).families(&["IPv6"]).internal().ranges(&["fd00::/64"]).annotate(DENY, "true");
    for (family, service, frontend, node, range) in [
        (Family::V4, &v4, "20.0.0.1", "10.0.1.10", "10.0.0.0/24"),
        (Family::V6, &v6, "fd00::8", "fd00:1::10", "fd00::/64"),
    ] {
        let group = security_group(json!([]));
        let planned = run(&group, &[at_nodes(service, frontend, &[node])], &world(&[service]));
        let rules: Vec<String> = crate::resources::security_group::tests::summary(&after(&group, &planned))
            .iter()
            .map(|rule| rule.split(' ').filter(|word| !word.starts_with("k8s")).collect::<Vec<_>>().join(" "))
            .collect();
        let mut expected = vec![
            format!("500 Allow Tcp {range} -> {node} 10080"),
            format!("501 Allow Tcp AzureLoadBalancer -> {node} 10080"),
            format!("4095 Deny Tcp * -> {node} 10080"),
        ];
        if family == Family::V4 {
            expected.insert(1, format!("501 Allow Udp {range} -> {node} 10053"));
            expected[2] = expected[2].replace("501", "502");
            expected.insert(3, format!("4094 Deny Udp * -> {node} 10053"));
        }
        assert_eq!(rules, expected);
    }
}

/// LB-401: one Service's denials at nodes stay while others are planned, and are removed with it.
#[test]
fn denials_at_nodes_live_as_long_as_their_service() {
    let closed = |name: &str, port: i32| {
        let service = svc(name).tcp(port).ranges(&["10.0.0.0/24"]).annotate(DENY, "true");
        service.annotate("azure-disable-load-balancer-floating-ip", "true").published(&["20.0.0.1"])
    };
    let (a, b) = (closed("a1", 80), closed("b1", 81));
    let nodes = &NODES[..2];
    let empty = security_group(json!([]));
    let usage = world(&[&a, &b]);
    let one = after(&empty, &run(&empty, &[at_nodes(&a, "20.0.0.1", nodes)], &usage));
    let both = after(&one, &run(&one, &[at_nodes(&b, "20.0.0.2", nodes)], &usage));
    assert_eq!(crate::resources::security_group::tests::summary(&both).len(), 6);
    for (service, frontend) in [(&a, "20.0.0.1"), (&b, "20.0.0.2")] {
        assert_eq!(run(&both, &[at_nodes(service, frontend, nodes)], &usage).step, None);
    }
    let left =
        run(&both, &[crate::resources::security_group::tests::absent(&b, &["20.0.0.2"])], &world(&[&a]));
    assert_eq!(
        crate::resources::security_group::tests::summary(&after(&both, &left)),
        crate::resources::security_group::tests::summary(&one)
    );
}

/// LB-402: the replaced program denies all traffic at nodes, which closes them. A takeover opens them again.
#[test]
fn a_denial_of_everything_at_nodes_is_taken_back() {
    let service = svc("a1").tcp(80).ranges(&["10.0.0.0/24"]).annotate(DENY, "true");
    let service = service.annotate("azure-disable-load-balancer-floating-ip", "true");
    let group = security_group(json!([{ "name": "k8s-azure-lb_deny-all_IPv4", "properties": {
        "priority": 4095, "access": "Deny", "direction": "Inbound", "protocol": "*",
        "sourceAddressPrefix": "*", "sourcePortRange": "*", "destinationPortRange": "*",
        "destinationAddressPrefixes": NODES[..2],
    } }]));
    let planned = run(&group, &[at_nodes(&service, "20.0.0.1", &NODES[..2])], &world(&[&service]));
    assert!(
        crate::resources::security_group::tests::summary(&after(&group, &planned))
            .iter()
            .all(|rule| !rule.contains("deny-all"))
    );
}

/// LB-456: if packets arrive at nodes, ports are open at addresses of the Service's own families. The replaced program
/// opens them at nodes' addresses of both; a takeover closes the unused ones.
#[test]
fn lb_456_ports_at_nodes_are_open_for_the_families_of_the_service_alone() {
    let service = svc("a1").tcp(80).annotate("azure-disable-load-balancer-floating-ip", "true");
    let open = |name: &str, priority: i32, nodes: &[&str]| {
        json!({"name": name, "properties": {"priority": priority, "access": "Allow", "direction": "Inbound",
            "protocol": "Tcp", "sourceAddressPrefix": "Internet", "sourcePortRange": "*",
            "destinationPortRanges": ["10080"], "destinationAddressPrefixes": nodes}})
    };
    let empty = security_group(json!([]));
    let planned = run(&empty, &[at_nodes(&service, "20.0.0.1", &NODES)], &world(&[&service]));
    let summary = crate::resources::security_group::tests::summary(&after(&empty, &planned));
    assert_eq!(summary.len(), 1, "{summary:#?}");
    assert!(summary[0].contains("10.0.1.10,10.0.1.11 10080"), "{summary:#?}");
    let name = summary[0].split(' ').nth(1).unwrap();
    let of_both = security_group(json!([
        open(name, 500, &NODES[..2]),
        open(&name.replace("IPv4", "IPv6"), 501, &NODES[2..]),
    ]));
    let planned = run(&of_both, &[at_nodes(&service, "20.0.0.1", &NODES)], &world(&[&service]));
    assert_eq!(crate::resources::security_group::tests::summary(&after(&of_both, &planned)), summary);
}

/// LB-403, LB-452: a refused Service keeps its load-balancing rules; the traffic that they deliver stays allowed until
/// the Service is planned.
#[test]
fn what_a_refused_service_still_lives_on_stays() {
    let floating_off = "azure-disable-load-balancer-floating-ip";
    let served = svc("a1").tcp(80).annotate(floating_off, "true").published(&["20.0.0.1"]);
    let other = svc("b1").tcp(81).annotate(floating_off, "true").published(&["20.0.0.2"]);
    let all_nodes = nodes([node("alpha", 0), node("alpha", 1)]);
    let mut azure = Azure::new();
    azure.converge(&[served.arc(), other.arc()], &all_nodes);
    let bad = |service: Svc| service.annotate("azure-load-balancer-tcp-idle-timeout", "3");
    for refused in [
        bad(served.clone().annotate(floating_off, "false")),
        bad(served.clone().ranges(&["10.0.0.0/24"])),
        bad(served.clone().change(|s| s.spec.ports[0].node_port = 31000)),
        // Refused because of Azure's state, not because of the Service.
        served.clone().annotate(floating_off, "false").annotate("azure-pip-name", "missing"),
        // Refused on its destination, and still served where it was.
        served.clone().internal().annotate("azure-load-balancer-internal-subnet", "missing"),
        served
            .clone()
            .annotate(floating_off, "false")
            .internal()
            .annotate("azure-load-balancer-internal-subnet", "missing"),
    ] {
        let services = [refused.arc(), other.arc()];
        assert_eq!(azure.plan(&services, &all_nodes).plan.steps, []);
        let alone = [other.clone().deleting().arc()];
        let planned = azure.plan(&[refused.arc(), alone[0].clone()], &all_nodes);
        let changes = planned.plan.steps.iter().flat_map(|step| &step.changes);
        let changes: Vec<String> = changes.map(ToString::to_string).collect();
        assert!(changes.iter().all(|change| !change.contains("10080")), "{changes:#?}");
    }
}

/// LB-408: Azure assigns the address of a deleted node to an internal frontend at once. The rule with the node's
/// address allows no traffic to the frontend.
#[test]
fn the_address_of_a_node_that_went_is_not_open_where_it_is_used_next() {
    let at_node = svc("a1").tcp(80).annotate("azure-disable-load-balancer-floating-ip", "true");
    let at_node = at_node.published(&["20.0.0.1"]);
    let internal = svc("b1").tcp(81).internal().published(&["10.0.1.11"]).ranges(&["10.0.0.0/24"]);
    let empty = security_group(json!([]));
    let before = at_nodes(&at_node, "20.0.0.1", &NODES[..2]);
    let group = after(&empty, &run(&empty, &[before], &world(&[&at_node])));
    let services = [at_node.arc(), internal.arc()];
    let one_node = nodes([node("alpha", 0)]);
    let usage = crate::resources::security_group::usage::ClusterUsage::of_known(
        &cluster(),
        &mut crate::service::ParsedServices::default(),
        &services,
        Arc::new(addresses_of_nodes(&one_node)),
        &[],
        &[],
        true,
    );
    let now = at_nodes(&at_node, "20.0.0.1", &NODES[..1]);
    let planned = run(&group, std::slice::from_ref(&now), &usage);
    let written = after(&group, &planned);
    assert!(
        crate::resources::security_group::tests::summary(&written)[0].ends_with("-> 10.0.1.10 10080"),
        "{:?}",
        crate::resources::security_group::tests::summary(&written)
    );
    // Its own rules, and those of others at their own addresses, are independent of it.
    let served = AccessIntent::Present {
        service: internal.intent(&cluster()),
        addresses: vec![ip("10.0.1.11")],
        node_addresses: vec![],
    };
    let both = after(&written, &run(&written, &[served], &usage));
    assert_eq!(crate::resources::security_group::tests::summary(&both).len(), 2);
    assert_eq!(run(&both, &[now], &usage).step, None);
}

/// LB-461: Azure assigns the address of a deleted machine to a frontend while the node still exists. The Service's
/// denials there stay, whichever Service is planned meanwhile.
#[test]
fn lb_461_an_address_that_was_a_nodes_is_the_services() {
    let closed = svc("a1").tcp(80).internal().ranges(&["10.9.0.0/16"]).annotate(DENY, "true");
    let closed = closed.published(&[NODES[0]]);
    let other = svc("b1").tcp(80).published(&["20.0.0.2"]);
    let usage = world(&[&closed, &other]);
    assert!(usage.node_addresses.contains(&ip(NODES[0])));
    let empty = security_group(json!([]));
    let group = after(&empty, &run(&empty, &[at_nodes(&closed, NODES[0], &NODES[1..2])], &usage));
    let rules = crate::resources::security_group::tests::summary(&group);
    assert_eq!(rules.len(), 2, "{rules:?}");
    let planned = run(&group, &[at_nodes(&other, "20.0.0.2", &NODES[..2])], &usage);
    let left = crate::resources::security_group::tests::summary(&after(&group, &planned));
    assert!(rules.iter().all(|rule| left.contains(rule)), "{left:?}");
}
