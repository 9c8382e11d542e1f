//! The security group lets in what the load balancer delivers, where it delivers it.

use std::collections::BTreeSet;

use serde_json::json;

use super::{after, ip, run, world};
use crate::security_group::AccessIntent;
use crate::security_group::rule::{destination_ports, items};
use crate::tests::{cluster, security_group, svc};
use crate::{Family, rule};

const NODES: [&str; 4] = ["10.0.1.10", "10.0.1.11", "fd00:1::10", "fd00:1::11"];

fn of_family<'a>(addresses: &[&'a str], family: Family) -> BTreeSet<&'a str> {
    addresses.iter().copied().filter(|address| Family::of(ip(address)) == family).collect()
}

/// LB-138, LB-140, LB-141, LB-285: whatever is asked for, each family's packets are let in with the destination
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

/// While others of the same address family are planned, what arrives at nodes for internal IPv6 is kept.
#[test]
fn rules_of_internal_ipv6_services_survive_the_plans_of_others() {
    let v6 = svc("a1").tcp(80).internal().families(&["IPv6"]).ranges(&["::/0"]).published(&["fd00::8"]);
    let other = svc("b1").tcp(81).published(&["20.0.0.2"]);
    let nodes: Vec<_> = NODES[..2].iter().chain(&["fd00:1::10", "fd00:1::11"]).map(|node| ip(node)).collect();
    let of = |service: &crate::tests::Svc, address: &str| AccessIntent::Present {
        service: service.intent(&cluster()),
        addresses: vec![ip(address)],
        node_addresses: nodes.clone(),
    };
    let empty = security_group(json!([]));
    let everybody = world(&[&v6, &other]);
    let group = after(&empty, &run(&empty, &[of(&v6, "fd00::8")], &everybody));
    let both = after(&group, &run(&group, &[of(&other, "20.0.0.2")], &everybody));
    assert_eq!(super::told(&both).len(), 2);
    assert!(super::told(&both)[0].ends_with("-> fd00:1::10,fd00:1::11 10080"), "{:?}", super::told(&both));
    assert_eq!(run(&both, &[of(&v6, "fd00::8")], &everybody).step, None);
}
