//! The text of each kind of change is unchanged: logs, events and scripts contain it.

use k8s::ObjectKey;

use super::*;
use crate::model::{AdminState, Family};
use crate::outcome::change::in_words;
use crate::outcome::{FrontendSource, Replacement, TrafficClass, Unfinished};

fn text(text: &str) -> String {
    text.to_owned()
}

fn list(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| text(item)).collect()
}

fn web() -> ObjectKey {
    ObjectKey::new("shop", "web")
}

fn of_public_ips() -> Vec<(Change, &'static str)> {
    let family = Family::V4;
    vec![
        (Change::TagAdded { name: text("a"), value: text("b") }, "tag a=b added"),
        (Change::TagChanged { name: text("a"), from: text("b"), to: text("c") }, "tag a: b → c"),
        (Change::TagRemoved { name: text("a") }, "tag a removed"),
        (Change::Repaired(Unfinished::Write), "written again as it is: Azure did not finish the last write"),
        (Change::Repaired(Unfinished::Operation), "written again as it is: the last operation on it failed"),
        (Change::Restored, "restored: Azure accepted a change and then refused it"),
        (Change::PublicIpCreated { family, zones: Vec::new() }, "static IPv4 address"),
        (Change::PublicIpCreated { family, zones: list(&["1", "2"]) }, "static IPv4 address in zones 1, 2"),
        (Change::PublicIpShared { service: web() }, "shop/web uses it too"),
        (
            Change::PublicIpGivenUp { service: web(), others: Vec::new() },
            "shop/web no longer uses it, and no other Service does",
        ),
        (
            Change::PublicIpGivenUp { service: web(), others: list(&["a/b", "a/c"]) },
            "shop/web no longer uses it; a/b, a/c still does",
        ),
        (Change::PublicIpReplaced(Replacement::Family(Family::V6)), "will be created again as IPv6"),
        (Change::PublicIpReplaced(Replacement::IpTags), "will be created again with the requested IP tags"),
        (Change::PublicIp(difference("SKU", "none", "Standard")), "SKU none → Standard"),
        (Change::IpTagsChanged, "IP tags changed"),
        (Change::DnsLabelAdded { label: text("a") }, "DNS label a"),
        (Change::DnsLabelChanged { from: None, to: text("a") }, "DNS label none → a"),
        (Change::DnsLabelRemoved { label: text("a") }, "DNS label a removed"),
    ]
}

fn of_load_balancers() -> Vec<(Change, &'static str)> {
    let (frontend, pool) = (|| text("f"), || text("p"));
    let source = FrontendSource::PublicIp(text("ip"));
    let chosen = FrontendSource::Subnet { name: text("apps"), address: None };
    let asked = FrontendSource::Subnet { name: text("apps"), address: "10.0.0.9".parse().ok() };
    let member =
        |member, joins| Change::Membership { member, joins, pool: pool(), load_balancer: text("lb") };
    vec![
        (
            Change::FrontendAdded { frontend: frontend(), service: web(), source },
            "frontend f added for shop/web (public IP ip)",
        ),
        (
            Change::FrontendAdded { frontend: frontend(), service: web(), source: chosen },
            "frontend f added for shop/web (subnet apps, address chosen by Azure)",
        ),
        (
            Change::FrontendMoved { frontend: frontend(), source: asked },
            "frontend f: moved to subnet apps, address 10.0.0.9",
        ),
        (
            Change::FrontendPublicIp { frontend: frontend(), from: text("a"), to: text("b") },
            "frontend f: public IP a → b",
        ),
        (
            Change::FrontendAddress { frontend: frontend(), from: None, to: "10.0.0.9".parse().unwrap() },
            "frontend f: address none → 10.0.0.9",
        ),
        (Change::FrontendRemoved { frontend: frontend(), service: web() }, "frontend f of shop/web removed"),
        (
            Change::LeftoverFrontendRemoved { frontend: frontend() },
            "frontend f removed: its Service is gone, or served elsewhere",
        ),
        (Change::LastFrontendGone, "the last frontend is gone"),
        (Change::BasicLoadBalancerRetired, "SKU Basic: one of SKU Standard takes its place"),
        (
            Change::RuleAdded { rule: text("r"), protocol: text("Tcp"), port: 80, backend_port: 30_080 },
            "rule r added: Tcp port 80 → backend port 30080",
        ),
        (
            Change::RuleChanged { rule: text("r"), difference: difference("idle timeout", "4", "5") },
            "rule r: idle timeout 4 → 5",
        ),
        (Change::RuleRemoved { rule: text("r") }, "rule r removed"),
        (
            Change::ProbeAdded {
                probe: text("q"),
                protocol: text("Http"),
                port: 30_081,
                path: text("/healthz"),
                interval: 5,
            },
            "probe q added: Http 30081/healthz every 5 s",
        ),
        (
            Change::ProbeChanged { probe: text("q"), difference: difference("port", "1", "2") },
            "probe q: port 1 → 2",
        ),
        (Change::ProbeRemoved { probe: text("q") }, "probe q removed"),
        (Change::SharedProbeRemoved { probe: text("q") }, "probe q removed: no rule uses it"),
        (Change::PoolAdded { pool: pool() }, "backend pool p added"),
        (Change::PoolRemoved { pool: pool() }, "backend pool p removed: no rule uses it"),
        (
            Change::PoolMembers {
                pool: pool(),
                come: vec![(text("n"), "10.0.0.4".parse().unwrap())],
                gone: list(&["10.0.0.5", "10.0.0.6", "10.0.0.7", "10.0.0.8", "10.0.0.9"]),
            },
            "backend pool p: members +n (10.0.0.4), -10.0.0.5, -10.0.0.6, -10.0.0.7, -10.0.0.8 and 1 more",
        ),
        (
            Change::PoolOfAddresses { pool: pool(), network: text("net") },
            "backend pool p: its members are addresses of virtual network net",
        ),
        (
            Change::PoolOfInterfaces { pool: pool() },
            "backend pool p: addresses removed: the nodes' network interfaces join instead",
        ),
        (
            Change::AdminState { pool: pool(), state: AdminState::Down, nodes: list(&["a", "b"]) },
            "backend pool p: adminState Down of a, b (draining)",
        ),
        (
            Change::AdminState { pool: pool(), state: AdminState::None, nodes: list(&["a"]) },
            "backend pool p: adminState None of a (back)",
        ),
        (member(Member::NewInstances, true), "new instances: joins backend pool p of load balancer lb"),
        (member(Member::Node(text("n")), false), "node n leaves backend pool p of load balancer lb"),
        (member(Member::Instance, false), "leaves backend pool p of load balancer lb"),
        (
            member(Member::Interface(text("nic")), false),
            "interface nic, which has no machine, leaves backend pool p of load balancer lb",
        ),
    ]
}

fn of_others() -> Vec<(Change, &'static str)> {
    let rule = || text("r");
    let traffic = || TrafficClass {
        access: text("Allow"),
        protocol: text("Tcp"),
        ports: list(&["80", "443"]),
        sources: list(&["Internet"]),
    };
    vec![
        (
            Change::SecurityRuleAdded {
                rule: rule(),
                traffic: traffic(),
                destinations: list(&["20.0.0.1", "20.0.0.2"]),
                priority: 500,
            },
            "rule r added: Allow Tcp 80,443 from Internet to 20.0.0.1, 20.0.0.2 (priority 500)",
        ),
        (
            Change::SecurityRuleDestinations { rule: rule(), come: list(&["a", "b"]), gone: list(&["c"]) },
            "rule r: destinations +a +b -c",
        ),
        (
            Change::SecurityRuleGathered { rule: rule(), prefixes: 7 },
            "rule r: the same destinations as 7 prefixes",
        ),
        (
            Change::SecurityRuleRestored { rule: rule(), traffic: traffic() },
            "rule r: set right again: Allow Tcp 80,443 from Internet",
        ),
        (
            Change::SecurityRuleRemoved { rule: rule(), destinations: list(&["a", "b"]) },
            "rule r removed: no Service needs it for a, b",
        ),
        (
            Change::PrivateLinkAdded { name: text("pls-f"), service: web(), frontend: text("f") },
            "private link service pls-f of shop/web added: it offers frontend f",
        ),
        (
            Change::PrivateLinkAddresses { count: 2, subnet: text("s"), chosen: list(&["10.0.0.9"]) },
            "addresses: 2 of subnet s, 10.0.0.9 among them",
        ),
        (
            Change::PrivateLinkAddresses { count: 1, subnet: text("s"), chosen: Vec::new() },
            "addresses: 1 of subnet s",
        ),
        (Change::ProxyProtocol { on: true }, "PROXY protocol on"),
        (
            Change::PrivateLinkList { list: "visibility", from: Vec::new(), to: list(&["a", "b"]) },
            "visibility none → a b",
        ),
        (
            Change::ConnectionRemoved { name: text("pls-f") },
            "connection removed: private link service pls-f goes",
        ),
        (Change::PrivateLinkRemoved { name: text("pls-f") }, "private link service pls-f removed"),
        (
            Change::SubnetOpened,
            "network policies of private link services disabled: Azure takes none there otherwise",
        ),
    ]
}

fn of_routes() -> Vec<(Change, &'static str)> {
    let (route, range) = (|| text("n____102443024"), "10.244.3.0/24".parse().unwrap());
    vec![
        (
            Change::RouteAdded { route: route(), range, next_hop: "10.0.1.10".parse().unwrap() },
            "route n____102443024 added: 10.244.3.0/24 → 10.0.1.10",
        ),
        (
            Change::RouteChanged { route: route(), difference: difference("next hop", "none", "10.0.1.10") },
            "route n____102443024: next hop none → 10.0.1.10",
        ),
        (Change::RouteRemoved { route: route(), range }, "route n____102443024 to 10.244.3.0/24 removed"),
    ]
}

#[test]
fn each_kind_of_change_has_its_words() {
    let all = [of_public_ips(), of_load_balancers(), of_others(), of_routes()].concat();
    for (change, words) in &all {
        assert_eq!(change.to_string(), *words, "{change:?}");
    }
    assert_eq!(in_words(&[Change::Restored, Change::LastFrontendGone]).matches("; ").count(), 1);
}

/// Logs, events and plans contain no placeholder for an address that Azure has not chosen.
#[test]
fn addresses_that_are_not_known_yet_are_named_so_in_every_list() {
    for (mut change, words) in of_others() {
        change.rename_addresses(|_| text("?"));
        assert!(!change.to_string().contains("20.0.0."), "{words}");
    }
    let (from, to) = (Some(text("0.0.0.1")), "10.0.0.9".parse().unwrap());
    let mut change = Change::FrontendAddress { frontend: text("f"), from, to };
    change.rename_addresses(|_| text("?"));
    assert_eq!(change.to_string(), "frontend f: address ? → 10.0.0.9");
}
