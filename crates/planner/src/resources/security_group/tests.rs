//! Cases of `docs/rules/security-groups.md`. The load balancer's address is 20.0.0.1 unless stated.

mod admission;
mod arrival;
mod in_force;
mod limits;
mod spelling;

use std::net::IpAddr;
use std::sync::Arc;

use azure_types::SecurityGroup;
use serde_json::{Value, json};

use super::addresses::recorded;
use super::intent::AccessIntent;
use super::plan::{SecurityGroupPlan, plan, services_named_in};
use super::usage::{ClusterUsage, addresses_of_nodes};
use crate::model::Cluster;
use crate::order::tests::{Svc, cluster, cluster_with, node, nodes, security_group, svc};
use crate::outcome::{Change, Document, Refusal};
use crate::service::{ParsedServices, ServiceRemoval, Traffic, WantedRule};

const TCP_443_80: &str = "k8s-azure-lb_allow_IPv4_556f7044ec033071ec0dfcf7cd85bc93";
const UDP_53: &str = "k8s-azure-lb_allow_IPv4_eacf5e21d4ad7b5345009ad51af9d388";

pub(super) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(super) fn present(service: &Svc, addresses: &[&str]) -> AccessIntent {
    AccessIntent::Present {
        service: service.intent(&cluster()),
        addresses: addresses.iter().map(|address| ip(address)).collect(),
        node_addresses: vec![ip("10.0.1.10"), ip("10.0.1.11")],
    }
}

pub(super) fn absent(service: &Svc, addresses: &[&str]) -> AccessIntent {
    AccessIntent::Absent {
        service: Arc::new(ServiceRemoval::of(&cluster(), &service.0)),
        addresses: addresses.iter().map(|address| ip(address)).collect(),
    }
}

/// The usage of a cluster where these are all Services and two nodes run.
pub(super) fn world(services: &[&Svc]) -> ClusterUsage {
    let services: Vec<_> = services.iter().map(|service| service.arc()).collect();
    ClusterUsage::of_known(
        &cluster(),
        &mut ParsedServices::default(),
        &services,
        Arc::new(addresses_of_nodes(&nodes([node("alpha", 0), node("alpha", 1)]))),
        &[],
        &[],
        true,
    )
}

fn run_on(
    cluster: &Cluster,
    group: &SecurityGroup,
    batch: &[AccessIntent],
    world: &ClusterUsage,
) -> SecurityGroupPlan {
    plan(cluster, group, batch, world)
}

pub(super) fn run(group: &SecurityGroup, batch: &[AccessIntent], world: &ClusterUsage) -> SecurityGroupPlan {
    run_on(&cluster(), group, batch, world)
}

/// The group after a plan is applied.
pub(super) fn after(group: &SecurityGroup, planned: &SecurityGroupPlan) -> SecurityGroup {
    match planned.step.as_ref().map(|step| step.document.as_ref().unwrap()) {
        Some(Document::SecurityGroup(document)) => (**document).clone(),
        None => group.clone(),
        other => panic!("{other:?}"),
    }
}

/// One line per rule, by priority.
pub(super) fn summary(group: &SecurityGroup) -> Vec<String> {
    let mut rules = group.properties.as_ref().unwrap().security_rules.clone().unwrap();
    rules.sort_by_key(|rule| rule.properties.as_ref().unwrap().priority);
    let list = |single: &Option<String>, plural: &Option<Vec<String>>| {
        crate::resources::security_group::rule::items(single, plural).collect::<Vec<_>>().join(",")
    };
    rules
        .iter()
        .map(|rule| {
            let p = rule.properties.as_ref().unwrap();
            format!(
                "{} {} {} {} {} -> {} {}",
                p.priority.unwrap(),
                rule.name.as_ref().unwrap(),
                p.access.as_ref().unwrap(),
                p.protocol.as_ref().unwrap(),
                list(&p.source_address_prefix, &p.source_address_prefixes),
                list(&p.destination_address_prefix, &p.destination_address_prefixes),
                list(&p.destination_port_range, &p.destination_port_ranges),
            )
        })
        .collect()
}

/// The rules that one Service gets in an empty group.
fn rules_of(service: &Svc) -> Vec<String> {
    let group = security_group(json!([]));
    let planned = run(&group, &[present(service, &["20.0.0.1"])], &world(&[service]));
    assert_eq!(planned.refused, []);
    summary(&after(&group, &planned))
}

pub(super) fn allow(
    priority: i32,
    name: &str,
    protocol: &str,
    source: &str,
    to: &[&str],
    ports: &[&str],
) -> Value {
    json!({"name": name, "properties": {
        "priority": priority, "access": "Allow", "direction": "Inbound", "protocol": protocol,
        "sourceAddressPrefix": source, "sourcePortRange": "*", "destinationPortRanges": ports,
        "destinationAddressPrefixes": to, "sourceAddressPrefixes": []}})
}

fn web() -> Svc {
    svc("test1").tcp(80).tcp(443).udp(53).published(&["20.0.0.1"])
}

#[test]
fn lb_270_lb_271_one_rule_a_protocol_and_no_second_write() {
    // LB-270: what a new Service gets.
    let service = web();
    let group = security_group(json!([]));
    let planned = run(&group, &[present(&service, &["20.0.0.1"])], &world(&[&service]));
    let written = after(&group, &planned);
    assert_eq!(
        summary(&written),
        [
            format!("500 {TCP_443_80} Allow Tcp Internet -> 20.0.0.1 443,80"),
            format!("501 {UDP_53} Allow Udp Internet -> 20.0.0.1 53"),
        ]
    );
    let properties =
        written.properties.as_ref().unwrap().security_rules.as_ref().unwrap()[0].properties.as_ref();
    assert_eq!(properties.unwrap().destination_address_prefix.as_deref(), Some("20.0.0.1"));
    assert_eq!(properties.unwrap().destination_port_ranges.as_ref().unwrap(), &["443", "80"]);
    // LB-271: unchanged on a second run.
    let again = run(&written, &[present(&service, &["20.0.0.1"])], &world(&[&service]));
    assert_eq!(again, SecurityGroupPlan::default());
}

/// LB-272.
#[test]
fn lb_272_services_with_equal_content_share_rules() {
    let (a, b) = (web(), svc("test2").tcp(80).tcp(443).udp(53).published(&["20.0.0.2"]));
    let group = security_group(json!([]));
    let first = after(&group, &run(&group, &[present(&a, &["20.0.0.1"])], &world(&[&a, &b])));
    let planned = run(&first, &[present(&b, &["20.0.0.2"])], &world(&[&a, &b]));
    let comes = |rule: &str| Change::SecurityRuleDestinations {
        rule: rule.to_owned(),
        come: vec!["20.0.0.2".to_owned()],
        gone: Vec::new(),
    };
    assert_eq!(planned.step.as_ref().unwrap().changes, [comes(TCP_443_80), comes(UDP_53)]);
    assert_eq!(planned.step.as_ref().unwrap().on_behalf_of, [b.0.key()]);
    assert_eq!(
        summary(&after(&first, &planned)),
        [
            format!("500 {TCP_443_80} Allow Tcp Internet -> 20.0.0.1,20.0.0.2 443,80"),
            format!("501 {UDP_53} Allow Udp Internet -> 20.0.0.1,20.0.0.2 53"),
        ]
    );
}

/// LB-273, LB-274, LB-289.
#[test]
fn lb_273_lb_274_lb_289_internal_services_need_rules_only_for_ranges() {
    assert_eq!(rules_of(&svc("test1").tcp(80).internal()), Vec::<String>::new());
    let open = rules_of(&svc("test1").tcp(80).internal().ranges(&["0.0.0.0/0"]));
    assert_eq!(open.len(), 1);
    assert!(open[0].ends_with("Allow Tcp 0.0.0.0/0 -> 20.0.0.1 80"), "{open:?}");
    let sctp = svc("test1")
        .port("SCTP", 9000)
        .annotate("azure-load-balancer-enable-high-availability-ports", "true");
    let sctp = rules_of(&sctp.internal().ranges(&["0.0.0.0/0"]));
    assert_eq!(sctp.len(), 1, "{sctp:?}");
    assert!(sctp[0].ends_with("Allow * 0.0.0.0/0 -> 20.0.0.1 9000"), "{sctp:?}");
}

/// LB-275, LB-276.
#[test]
fn lb_275_lb_276_ranges_replace_the_internet_and_are_merged() {
    let one = rules_of(&svc("test1").tcp(80).ranges(&["10.0.0.0/24"]));
    let expected =
        "500 k8s-azure-lb_allow_IPv4_d3b5b7092474fb3980f2bcc5ff048720 Allow Tcp 10.0.0.0/24 -> 20.0.0.1 80";
    assert_eq!(one, [expected]);
    let merged = rules_of(&svc("test1").tcp(80).ranges(&["10.0.0.0/25", "10.0.0.128/25", "10.0.0.5/32"]));
    assert_eq!(merged, [expected]);
}

/// LB-277, LB-278.
#[test]
fn lb_277_lb_278_service_tags_come_before_ranges() {
    let tags = svc("test1").tcp(443).annotate("azure-allowed-service-tags", "foo, bar");
    let rules = rules_of(&tags);
    assert!(rules[0].starts_with("500") && rules[0].ends_with("Tcp foo -> 20.0.0.1 443"), "{rules:?}");
    assert!(rules[1].starts_with("501") && rules[1].ends_with("Tcp bar -> 20.0.0.1 443"), "{rules:?}");
    let both = rules_of(&tags.annotate("azure-allowed-ip-ranges", "10.0.0.0/24"));
    assert_eq!(both.len(), 3);
    assert!(both[2].starts_with("502") && both[2].contains("10.0.0.0/24"), "{both:?}");
}

/// Hashes in the rule names of existing clusters.
#[test]
fn names_carry_the_hash_of_protocol_sources_and_ports() {
    for (protocol, sources, ports, hash) in [
        ("Tcp", &["Internet"][..], &[80][..], "d39272f7f57ed937951650d93992ad77"),
        ("Tcp", &["Internet"], &[443, 80], "556f7044ec033071ec0dfcf7cd85bc93"),
        ("Udp", &["Internet"], &[53], "eacf5e21d4ad7b5345009ad51af9d388"),
        ("*", &["Internet"], &[9000], "9c8fbe438b46861e6bed7d43ba33e067"),
        ("Tcp", &["10.0.0.0/24"], &[80], "d3b5b7092474fb3980f2bcc5ff048720"),
        ("Tcp", &["10.0.0.0/16", "192.168.0.0/24"], &[443, 80], "f81a0a0594652065a6422d6ea61617cd"),
        ("Tcp", &["2001:db8::/32"], &[443], "c56f1b267e1371d3b38c25b4fcc5feef"),
        ("Tcp", &["foo", "bar"], &[443], "b5ae07e8a4177ea2d37162cdf2badf8b"),
    ] {
        let sources = sources.iter().map(|source| (*source).to_owned());
        let ports = ports.iter().copied().collect();
        let traffic = Traffic::new(protocol, crate::model::Family::V6, sources, &ports);
        assert_eq!(WantedRule::allow(traffic).name, format!("k8s-azure-lb_allow_IPv6_{hash}"));
    }
}

/// LB-279, LB-280.
#[test]
fn lb_279_lb_280_deny_all_needs_a_range() {
    let deny = svc("test1").tcp(80).annotate("azure-deny-all-except-load-balancer-source-ranges", "TRUE");
    let rules = rules_of(&deny.clone().ranges(&["10.0.0.0/24"]));
    assert_eq!(rules.len(), 2);
    assert_eq!(rules[1], "4095 k8s-azure-lb_deny-all_IPv4 Deny * * -> 20.0.0.1 *");
    assert_eq!(rules_of(&deny).len(), 1);
}

/// LB-281, LB-296.
#[test]
fn lb_281_lb_296_an_invalid_range_denies_all_and_is_told() {
    let group = security_group(json!([]));
    for service in [
        svc("test1").tcp(80).ranges(&["10.0.0.1/24"]),
        svc("test1").tcp(80).annotate("azure-allowed-ip-ranges", "10.0.0.1"),
    ] {
        let planned = run(&group, &[present(&service, &["20.0.0.1"])], &world(&[&service]));
        assert_eq!(
            summary(&after(&group, &planned)),
            ["4095 k8s-azure-lb_deny-all_IPv4 Deny * * -> 20.0.0.1 *"]
        );
        assert_eq!(planned.notices.len(), 1);
        assert!(planned.notices[0].warning && planned.notices[0].message.contains("10.0.0.1"));
    }
    let both = svc("test1").tcp(80).ranges(&["10.0.0.0/24"]).annotate("azure-allowed-service-tags", "foo");
    let planned = run(&group, &[present(&both, &["20.0.0.1"])], &world(&[&both]));
    assert_eq!(planned.notices[0].reason, "ConflictConfiguration");
}

/// LB-282, LB-283, LB-284.
#[test]
fn lb_282_lb_283_lb_284_contradictions_are_refused_and_never_block_deletion() {
    let both = svc("test1")
        .tcp(80)
        .published(&["20.0.0.1"])
        .ranges(&["10.0.0.0/24"])
        .annotate("azure-allowed-ip-ranges", "10.1.0.0/24")
        .annotate("azure-load-balancer-tcp-idle-timeout", "garbage")
        .annotate("azure-additional-public-ips", "garbage");
    let Refusal::Several(mistakes) = both.refusal() else { panic!("{}", both.refusal()) };
    assert_eq!(mistakes.len(), 3);
    assert!(matches!(mistakes[0], Refusal::TwoKindsOfRanges { .. }));
    let group = security_group(json!([allow(
        500,
        "k8s-azure-lb_allow_IPv4_x",
        "Tcp",
        "Internet",
        &["20.0.0.1"],
        &["80"]
    )]));
    let planned = run(&group, &[absent(&both, &[])], &world(&[&both]));
    assert_eq!(summary(&after(&group, &planned)), Vec::<String>::new());
}

/// LB-285, LB-286.
#[test]
fn lb_285_lb_286_without_floating_ip_nodes_are_the_destinations() {
    let service = svc("test1").tcp(80).annotate("azure-disable-load-balancer-floating-ip", "true");
    let rules = rules_of(&service);
    assert_eq!(rules.len(), 1);
    assert!(rules[0].ends_with("Tcp Internet -> 10.0.1.10,10.0.1.11 10080"), "{rules:?}");
    let more = svc("test1").tcp(80).annotate("azure-additional-public-ips", " 20.0.0.9 ,");
    assert!(rules_of(&more)[0].ends_with("Tcp Internet -> 20.0.0.1,20.0.0.9 80"));
}

/// Both kinds of destinations are removed, whichever is in use now.
#[test]
fn floating_ip_turned_on_or_off_leaves_nothing_of_the_other_kind() {
    let on = svc("test1").tcp(80).published(&["20.0.0.1"]);
    let off = on.clone().annotate("azure-disable-load-balancer-floating-ip", "true");
    let mut group = security_group(json!([]));
    for (service, end) in
        [(&on, "-> 20.0.0.1 80"), (&off, "-> 10.0.1.10,10.0.1.11 10080"), (&on, "-> 20.0.0.1 80")]
    {
        let planned = run(&group, &[present(service, &["20.0.0.1"])], &world(&[service]));
        group = after(&group, &planned);
        assert_eq!(summary(&group).len(), 1, "{:?}", summary(&group));
        assert!(summary(&group)[0].ends_with(end), "{:?}", summary(&group));
    }
}

/// Two Services whose traffic arrives at the nodes: removing one keeps the other's ports.
#[test]
fn node_destinations_of_others_are_kept() {
    let off =
        |name: &str, port| svc(name).tcp(port).annotate("azure-disable-load-balancer-floating-ip", "true");
    let (a, b, c) = (off("a1", 80), off("b1", 81), svc("c1").tcp(82).published(&["20.0.0.3"]));
    let usage = world(&[&a, &b, &c]);
    let group = security_group(json!([]));
    let batch = [present(&a, &["20.0.0.1"]), present(&b, &["20.0.0.2"]), present(&c, &["20.0.0.3"])];
    let group = after(&group, &run(&group, &batch, &usage));
    assert_eq!(summary(&group).len(), 3);
    for one in &batch {
        assert_eq!(run(&group, std::slice::from_ref(one), &usage).step, None);
    }
    let without_a = after(&group, &run(&group, &[absent(&a.deleting(), &["20.0.0.1"])], &world(&[&b, &c])));
    assert_eq!(summary(&without_a), summary(&group)[1..]);
}

/// LB-287.
#[test]
fn lb_287_the_break_glass_annotation_removes_rules_and_adds_none() {
    let service = web().annotate("azure-disable-load-balancer-nsg-rule", "true");
    let group = security_group(json!([allow(
        500,
        TCP_443_80,
        "Tcp",
        "Internet",
        &["20.0.0.1", "20.0.0.2"],
        &["443", "80"]
    )]));
    let other = svc("test2").tcp(80).tcp(443).published(&["20.0.0.2"]);
    let planned = run(&group, &[present(&service, &["20.0.0.1"])], &world(&[&service, &other]));
    assert_eq!(
        summary(&after(&group, &planned)),
        [format!("500 {TCP_443_80} Allow Tcp Internet -> 20.0.0.2 443,80")]
    );
}

/// LB-288.
#[test]
fn lb_288_ports_of_those_who_share_the_address_are_kept() {
    let a = svc("a1").tcp(80).tcp(443).published(&["20.0.0.1"]);
    let b = svc("b1").tcp(443).published(&["20.0.0.1"]);
    let group = security_group(json!([
        allow(500, TCP_443_80, "Tcp", "Internet", &["20.0.0.1"], &["443", "80"]),
        allow(501, UDP_53, "Udp", "Internet", &["20.0.0.7"], &["53"]),
    ]));
    let other = svc("other").udp(53).published(&["20.0.0.7"]);
    // The split-off rule is for the address that the rule had, not for all that the Service leaves.
    let leaves = absent(&a.deleting(), &["20.0.0.1", "20.0.0.5"]);
    let planned = run(&group, &[leaves], &world(&[&b, &other]));
    let rules = summary(&after(&group, &planned));
    assert_eq!(rules.len(), 2);
    assert_eq!(rules[0], format!("501 {UDP_53} Allow Udp Internet -> 20.0.0.7 53"));
    assert!(
        rules[1].starts_with("502 ") && rules[1].ends_with("Allow Tcp Internet -> 20.0.0.1 443"),
        "{rules:?}"
    );
}

/// LB-290.
#[test]
fn lb_290_dual_stack_has_rules_for_each_family() {
    let service = svc("test1").tcp(80).dual();
    let group = security_group(json!([]));
    let planned = run(&group, &[present(&service, &["20.0.0.1", "2001:db8::1"])], &world(&[&service]));
    let hash = "d39272f7f57ed937951650d93992ad77";
    assert_eq!(
        summary(&after(&group, &planned)),
        [
            format!("500 k8s-azure-lb_allow_IPv4_{hash} Allow Tcp Internet -> 20.0.0.1 80"),
            format!("501 k8s-azure-lb_allow_IPv6_{hash} Allow Tcp Internet -> 2001:db8::1 80"),
        ]
    );
    // The whole address range of one family means all clients, however it is written.
    let halves = service.clone().ranges(&["0.0.0.0/1", "128.0.0.0/1"]);
    let planned = run(&group, &[present(&halves, &["20.0.0.1", "2001:db8::1"])], &world(&[&halves]));
    let rules = summary(&after(&group, &planned));
    assert!(rules[0].contains("0.0.0.0/0 ->") && rules[1].contains("Internet -> 2001:db8::1"), "{rules:?}");
    // A range of one family opens nothing in the other.
    let narrow = service.ranges(&["10.0.0.0/8"]);
    let planned = run(&group, &[present(&narrow, &["20.0.0.1", "2001:db8::1"])], &world(&[&narrow]));
    assert_eq!(summary(&after(&group, &planned)).len(), 1);
}

/// LB-291, LB-292, LB-293.
#[test]
fn lb_291_lb_292_lb_293_foreign_rules_stay_and_leftovers_go() {
    let mut foreign = allow(500, "other", "Tcp", "10.0.0.0/8", &["20.9.9.9"], &["80"]);
    foreign["properties"]["unknown"] = json!({"kept": true});
    let named_like_ours = allow(400, "k8s-azure-lb_allow_IPv4_mine", "Tcp", "*", &["20.9.9.9"], &["80"]);
    let group = security_group(json!([
        foreign,
        named_like_ours,
        allow(600, "other2", "Tcp", "*", &["20.9.9.9"], &["80"]),
        allow(700, "k8s-azure-lb_allow_IPv4_stale", "Tcp", "Internet", &["20.9.9.9"], &["80"]),
    ]));
    let service = svc("test1").tcp(80);
    let usage = world(&[&service]).with_proofs([(ip("20.9.9.9"), recorded(&cluster()))]);
    let planned = run(&group, &[present(&service, &["20.0.0.1"])], &usage);
    let written = after(&group, &planned);
    let rules = summary(&written);
    assert_eq!(rules.len(), 4, "{rules:?}");
    assert!(
        rules[2].starts_with("501 k8s-azure-lb_allow_IPv4_d39272f7f57ed937951650d93992ad77"),
        "{rules:?}"
    );
    let before = group.properties.as_ref().unwrap().security_rules.as_ref().unwrap();
    let now = written.properties.as_ref().unwrap().security_rules.as_ref().unwrap();
    assert_eq!(now[..3], before[..3], "not a member of them changed");
}

/// LB-293: two clusters share one security group, and one rule if they ask for the same traffic. Addresses that were
/// never this cluster's stay when its Services come and go.
#[test]
fn lb_293_addresses_of_another_cluster_stay() {
    let theirs = ["198.18.0.9", "10.2.0.4", "2001:db8:2::9"];
    let group = security_group(json!([
        allow(500, TCP_443_80, "Tcp", "Internet", &["198.18.0.9"], &["443", "80"]),
        allow(501, "k8s-azure-lb_allow_IPv4_theirs", "Tcp", "Internet", &["10.2.0.4"], &["30080"]),
        allow(502, "k8s-azure-lb_allow_IPv6_theirs", "Tcp", "Internet", &["2001:db8:2::9"], &["80"]),
    ]));
    let ours = web();
    let open = |group: &SecurityGroup| {
        let open: Vec<String> = crate::resources::security_group::addresses::open_addresses(group)
            .iter()
            .map(ToString::to_string)
            .collect();
        theirs.iter().all(|address| open.iter().any(|one| one == address))
    };
    let proven = |usage: ClusterUsage| usage.with_proofs([(ip("20.0.0.1"), recorded(&cluster()))]);
    assert_eq!(run(&group, &[], &world(&[])).step, None, "nothing is ours");
    let served = after(&group, &run(&group, &[present(&ours, &["20.0.0.1"])], &proven(world(&[&ours]))));
    assert!(open(&served), "{:?}", summary(&served));
    assert!(
        summary(&served)[0].ends_with("Internet -> 198.18.0.9,20.0.0.1 443,80"),
        "{:?}",
        summary(&served)
    );
    let gone = run(&served, &[absent(&ours.deleting(), &["20.0.0.1"])], &proven(world(&[])));
    assert_eq!(summary(&after(&served, &gone)), summary(&group));
}

#[test]
fn nothing_is_taken_while_not_everybody_is_known() {
    let group = security_group(json!([allow(
        500,
        "k8s-azure-lb_allow_IPv4_x",
        "Tcp",
        "Internet",
        &["20.9.9.9", "20.0.0.1"],
        &["80"]
    )]));
    let mut usage = world(&[]);
    usage.is_complete = false;
    let gone = svc("gone").tcp(80).published(&["20.0.0.1"]).deleting();
    assert_eq!(run(&group, &[absent(&gone, &["20.0.0.1"])], &usage).step, None);
    let planned = run(&group, &[present(&svc("test1").tcp(81), &["20.0.0.2"])], &usage);
    assert_eq!(summary(&after(&group, &planned)).len(), 2);
}

/// An address that no status contains yet is not removed by the next Service's plan.
#[test]
fn recently_programmed_addresses_survive_the_next_plan() {
    let (a, b) = (svc("a1").tcp(80), svc("b1").tcp(81));
    let services = [a.arc(), b.arc()];
    let group = security_group(json!([]));
    let group = after(&group, &run(&group, &[present(&a, &["20.0.0.1"])], &world(&[&a, &b])));
    let recent = [(a.0.key(), ip("20.0.0.1"))];
    let usage = ClusterUsage::of_known(
        &cluster(),
        &mut ParsedServices::default(),
        &services,
        Arc::default(),
        &recent,
        &[],
        true,
    );
    let planned = run(&group, &[present(&b, &["20.0.0.2"])], &usage);
    assert_eq!(summary(&after(&group, &planned)).len(), 2);
    let forgotten = ClusterUsage::of_known(
        &cluster(),
        &mut ParsedServices::default(),
        &services,
        Arc::default(),
        &[],
        &[],
        true,
    )
    .with_proofs([(ip("20.0.0.1"), recorded(&cluster()))]);
    let planned = run(&group, &[present(&b, &["20.0.0.2"])], &forgotten);
    assert_eq!(summary(&after(&group, &planned)).len(), 1, "this is what would happen without");
}

/// LB-294.
#[test]
fn lb_294_limits_refuse_the_service_that_would_pass_them() {
    let foreign: Vec<Value> = (0..999)
        .map(|n| allow(1000 + n, &format!("theirs-{n}"), "Tcp", "*", &["20.9.9.9"], &["80"]))
        .collect();
    let group = security_group(json!(foreign));
    let (a, b) = (svc("a1").tcp(80), svc("b1").tcp(81));
    let batch = [present(&b, &["20.0.0.2"]), present(&a, &["20.0.0.1"])];
    let planned = run(&group, &batch, &world(&[&a, &b]));
    assert_eq!(planned.refused.len(), 1);
    assert_eq!(planned.refused[0].0, b.0.key(), "the first by name is served");
    assert!(matches!(planned.refused[0].1, Refusal::SecurityGroupFull { what: "rules", count: 1001, .. }));
    assert_eq!(planned.step.unwrap().on_behalf_of, [a.0.key()]);

    let many: Vec<String> = (0..4000).map(|n| format!("10.{}.{}.1", n / 250, n % 250)).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let group = security_group(json!([allow(1000, "theirs", "Tcp", "*", &many, &["80"])]));
    let planned = run(&group, &[present(&a, &["20.0.0.1"])], &world(&[&a]));
    let full = matches!(&planned.refused[0].1, Refusal::SecurityGroupFull { what, count: 4001, .. } if what.contains("destination"));
    assert!(full);
    assert_eq!(planned.step, None);
}

/// LB-297.
#[test]
fn lb_297_deny_all_stays_for_those_who_share_the_address() {
    let a = svc("a1")
        .tcp(80)
        .published(&["20.0.0.1"])
        .ranges(&["10.0.0.0/24"])
        .annotate("azure-deny-all-except-load-balancer-source-ranges", "true");
    let b = svc("b1").tcp(443).published(&["20.0.0.1"]);
    let usage = world(&[&a, &b]);
    let group = security_group(json!([]));
    let group = after(&group, &run(&group, &[present(&a, &["20.0.0.1"])], &usage));
    let both = after(&group, &run(&group, &[present(&b, &["20.0.0.1"])], &usage));
    assert_eq!(summary(&both).last().unwrap(), "4095 k8s-azure-lb_deny-all_IPv4 Deny * * -> 20.0.0.1 *");
    let gone = after(&both, &run(&both, &[absent(&a.deleting(), &["20.0.0.1"])], &world(&[&b])));
    assert_eq!(summary(&gone).len(), 1, "{:?}", summary(&gone));
}

/// LB-298.
#[test]
fn lb_298_an_empty_list_of_service_tags_is_none() {
    let tagged = |value: &str| rules_of(&svc("test1").tcp(80).annotate("azure-allowed-service-tags", value));
    let rules = tagged(" ");
    assert!(rules[0].contains("Internet"), "{rules:?}");
    let rules = tagged(",AzureCloud,, ");
    assert!(rules.len() == 1 && rules[0].contains("AzureCloud"), "{rules:?}");
}

/// LB-299.
#[test]
fn lb_299_configured_tags_are_written() {
    let cluster = cluster_with(json!({"tags": "team=net"}));
    let service = web();
    let group = security_group(json!([]));
    let intent = [present(&service, &["20.0.0.1"])];
    let group = after(&group, &run(&group, &intent, &world(&[&service])));
    let planned = run_on(&cluster, &group, &intent, &world(&[&service]));
    let added = Change::TagAdded { name: "team".to_owned(), value: "net".to_owned() };
    assert_eq!(planned.step.as_ref().unwrap().changes, [added]);
    assert_eq!(run_on(&cluster, &after(&group, &planned), &intent, &world(&[&service])).step, None);
}

#[test]
fn other_spellings_of_the_same_rule_are_no_difference() {
    let service = svc("test1").tcp(80).dual();
    let intent = [present(&service, &["20.0.0.1", "2001:db8::1"])];
    let group = security_group(json!([]));
    let written = after(&group, &run(&group, &intent, &world(&[&service])));
    let mut echoed = serde_json::to_value(&written).unwrap();
    for rule in echoed["properties"]["securityRules"].as_array_mut().unwrap() {
        let p = &mut rule["properties"];
        p["protocol"] = json!("TCP");
        p["sourceAddressPrefixes"] = json!([]);
        p["destinationAddressPrefixes"] = json!([]);
        if p["destinationAddressPrefix"] == "2001:db8::1" {
            p["destinationAddressPrefix"] = json!("2001:DB8:0:0::1");
        }
    }
    let echoed: SecurityGroup = serde_json::from_value(echoed).unwrap();
    assert_eq!(run(&echoed, &intent, &world(&[&service])).step, None);
}

#[test]
fn a_rule_that_somebody_bent_is_set_right() {
    let service = svc("test1").tcp(80);
    let intent = [present(&service, &["20.0.0.1"])];
    let group = security_group(json!([]));
    let mut bent = after(&group, &run(&group, &intent, &world(&[&service])));
    bent.properties.as_mut().unwrap().security_rules.as_mut().unwrap()[0]
        .properties
        .as_mut()
        .unwrap()
        .access = Some("Deny".into());
    let planned = run(&bent, &intent, &world(&[&service]));
    assert!(summary(&after(&bent, &planned))[0].contains("Allow"), "{:?}", planned.step);
}

#[test]
fn a_service_without_an_address_has_to_wait() {
    let planned = run(&security_group(json!([])), &[present(&web(), &[])], &world(&[]));
    assert_eq!(planned.refused[0].1, Refusal::NoAddressYet { service: web().0.key() });
    assert_eq!(planned.step, None);
}

#[test]
fn blame_finds_the_services_that_an_error_names() {
    let (a, b) = (svc("a1").tcp(80), svc("b1").tcp(443));
    let batch = [present(&a, &["20.0.0.1"]), present(&b, &["20.0.0.11"])];
    assert_eq!(services_named_in("address prefix 20.0.0.1 is invalid.", &batch), [a.0.key()]);
    assert_eq!(services_named_in("20.0.0.11", &batch), [b.0.key()]);
    let rule = "rule K8S-azure-lb_allow_IPv4_d39272f7f57ed937951650d93992ad77 conflicts";
    assert_eq!(services_named_in(rule, &batch), [a.0.key()]);
    assert!(services_named_in("another operation is in progress", &batch).is_empty());
}

/// A user's public IP moves to another cluster behind the same security group: what is open there is up to that
/// cluster.
#[test]
fn nothing_is_taken_at_an_address_that_others_have() {
    let group = security_group(json!([allow(
        500,
        "k8s-azure-lb_allow_IPv4_x",
        "Tcp",
        "Internet",
        &["20.0.0.1", "20.0.0.2"],
        &["80"]
    ),]));
    let gone = svc("gone").tcp(80).published(&["20.0.0.1"]).deleting();
    let proven =
        || world(&[]).with_proofs(["20.0.0.1", "20.0.0.2"].map(|one| (ip(one), recorded(&cluster()))));
    let all = run(&group, &[absent(&gone, &["20.0.0.1"])], &proven());
    assert!(summary(&after(&group, &all)).is_empty());
    let beside = proven().with_others([ip("20.0.0.1")]);
    let planned = run(&group, &[absent(&gone, &["20.0.0.1"])], &beside);
    assert_eq!(summary(&after(&group, &planned)).len(), 1);
    let closed =
        crate::resources::security_group::addresses::closed_addresses(planned.step.as_ref().unwrap());
    assert_eq!(closed, [ip("20.0.0.2")].into());
}

/// A former address of a Service is closed once. What is open there later was opened by others.
#[test]
fn an_address_that_a_service_had_before_is_closed_once() {
    let group = security_group(json!([allow(
        500,
        "k8s-azure-lb_allow_IPv4_x",
        "Tcp",
        "Internet",
        &["20.0.0.1"],
        &["80"]
    ),]));
    let intent = present(&svc("a1").tcp(80).published(&["20.0.0.1"]), &["20.0.0.2"]);
    let closed = |intent: AccessIntent| {
        crate::resources::security_group::addresses::closed_addresses(
            run(&group, &[intent], &world(&[])).step.as_ref().unwrap(),
        )
    };
    assert_eq!(closed(intent.clone()), [ip("20.0.0.1")].into());
    assert_eq!(closed(intent.carried_out()), [].into());
}
