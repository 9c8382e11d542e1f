//! Cases of `docs/rules/rules-and-probes.md`.

use serde_json::json;

use super::*;
use crate::model::Family;
use crate::outcome::PortHolder;
use crate::resources::load_balancer::rule::Desired;
use crate::resources::load_balancer::rule::desired;
use crate::service::ProbeSpec;

fn want(service: &Svc) -> Desired {
    want_of(&cluster(), service, Family::V4)
}

fn want_of(cluster: &Cluster, service: &Svc, family: Family) -> Desired {
    desired(cluster, &service.intent(cluster), family)
}

fn tcp(port: i32) -> ProbeSpec {
    ProbeSpec { protocol: "Tcp", port, path: None, interval: 5, threshold: 2 }
}

/// LB-130.
#[test]
fn lb_130_a_tcp_port() {
    let got = want(&svc("test1").tcp(80));
    insta::assert_debug_snapshot!(got, @r#"
    Desired {
        rules: [
            RuleSpec {
                name: "atest1-TCP-80",
                protocol: "Tcp",
                frontend_port: 80,
                backend_port: 80,
                floating_ip: true,
                tcp_reset: Some(
                    true,
                ),
                idle_timeout: 4,
                distribution: "Default",
                disable_outbound_snat: false,
                probe: Some(
                    "atest1-TCP-80",
                ),
            },
        ],
        probes: [
            (
                "atest1-TCP-80",
                ProbeSpec {
                    protocol: "Tcp",
                    port: 10080,
                    path: None,
                    interval: 5,
                    threshold: 2,
                },
            ),
        ],
    }
    "#);
}

/// LB-131, LB-133.
#[test]
fn lb_131_lb_133_udp_has_no_reset_and_no_probe_and_affinity_is_by_source() {
    let got = want(&svc("test1").udp(53).change(|s| s.spec.session_affinity = "ClientIP".into()));
    let rule = &got.rules[0];
    assert_eq!((rule.protocol, rule.tcp_reset, &rule.probe), ("Udp", None, &None));
    assert_eq!(rule.distribution, "SourceIP");
    assert!(got.probes.is_empty());
}

/// LB-132, LB-139.
#[test]
fn lb_132_lb_139_sctp_needs_an_internal_load_balancer_with_ha_ports() {
    let refused = Refusal::SctpNeedsHaPorts { port: 9000 };
    assert_eq!(svc("test1").port("SCTP", 9000).refusal(), refused);
    let skipped = svc("test1").port("SCTP", 9000).tcp(80).annotate("port_9000_no_lb_rule", "true");
    assert_eq!(want(&skipped).rules.len(), 1);
    let internal = svc("test1").port("SCTP", 9000).internal();
    assert_eq!(internal.refusal(), refused, "Azure takes protocol All for all ports only");
    let ha = internal.annotate("azure-load-balancer-enable-high-availability-ports", "true");
    let got = want(&ha);
    assert_eq!((got.rules.len(), got.rules[0].protocol, got.rules[0].frontend_port), (1, "All", 0));
}

/// LB-134.
#[test]
fn lb_134_the_idle_timeout_is_4_to_100() {
    let key = "azure-load-balancer-tcp-idle-timeout";
    let timeout = |value: &str| svc("test1").tcp(80).annotate(key, value);
    assert_eq!(want(&timeout("10")).rules[0].idle_timeout, 10);
    assert_eq!(want(&timeout(" 100 ")).rules[0].idle_timeout, 100);
    for minutes in [3, 101] {
        let refusal = timeout(&minutes.to_string()).refusal();
        assert_eq!(refusal, Refusal::IdleTimeoutOutOfRange { minutes });
    }
    assert!(matches!(timeout("x").refusal(), Refusal::NotAWholeNumber { value, .. } if value == "x"));
}

/// LB-135.
#[test]
fn lb_135_resets_can_be_turned_off() {
    let service = svc("test1").tcp(80);
    let mut azure = Azure::new();
    azure.converge(&[service.arc()], &[]);
    let off = service.annotate("azure-load-balancer-disable-tcp-reset", "TRUE");
    let planned = azure.plan(&[off.arc()], &[]);
    assert_eq!(planned.plan.steps.len(), 1, "{}", planned.plan);
    let difference = difference("TCP reset", "on", "off");
    let changed = Change::RuleChanged { rule: "atest1-TCP-80".to_owned(), difference };
    assert_eq!(planned.plan.steps[0].changes, [changed]);
}

/// LB-136, LB-137, LB-138.
#[test]
fn lb_136_lb_137_lb_138_ha_ports_are_one_rule_of_internal_services() {
    let service =
        svc("test1").tcp(80).tcp(443).annotate("azure-load-balancer-enable-high-availability-ports", "true");
    assert_eq!(want(&service).rules.len(), 2, "external: ignored");
    let internal = service.internal();
    let got = want(&internal);
    let rule = &got.rules[0];
    assert_eq!(got.rules.len(), 1);
    assert_eq!((rule.name.as_str(), rule.protocol), ("atest1-TCP-80", "All"));
    assert_eq!((rule.frontend_port, rule.backend_port, rule.tcp_reset), (0, 0, Some(true)));
    assert!(rule.floating_ip);
    assert_eq!(got.probes, [("atest1-TCP-80".to_owned(), tcp(10080))]);
    let basic = want_of(&cluster_with(json!({"loadBalancerSku": "basic"})), &internal, Family::V4);
    let protocols: Vec<_> = basic.rules.iter().map(|rule| (rule.protocol, rule.frontend_port)).collect();
    assert_eq!(protocols, [("Tcp", 80), ("Tcp", 443)], "SKU Basic has no rule for all ports");
    let v6 = internal.families(&["IPv6"]);
    assert!(!want_of(&cluster(), &v6, Family::V6).rules[0].floating_ip);
}

/// LB-413: without node ports there is no other target for packets to all ports; the owner is informed.
#[test]
fn lb_413_all_ports_float_although_floating_ip_is_off() {
    let off = svc("test1").tcp(80).internal().annotate("azure-disable-load-balancer-floating-ip", "true");
    let all = off.clone().annotate("azure-load-balancer-enable-high-availability-ports", "true");
    let rule = want(&all).rules.remove(0);
    assert!(rule.floating_ip && rule.backend_port == 0);
    let notices = |service: &Svc| service.intent(&cluster()).notices.clone();
    let [notice] = &notices(&all)[..] else { panic!("{:?}", notices(&all)) };
    assert!(notice.warning && notice.reason == "AnnotationIgnored");
    assert!(
        notice.message.contains("azure-disable-load-balancer-floating-ip is ignored"),
        "{}",
        notice.message
    );
    assert_eq!(notices(&all.families(&["IPv6"])), [], "those of IPv6 do not float anyway");
    assert_eq!(notices(&off), []);
}

/// LB-140.
#[test]
fn lb_140_without_floating_ip_traffic_goes_to_node_ports() {
    let service = svc("test1").tcp(80).annotate("azure-disable-load-balancer-floating-ip", "true");
    let rule = want(&service).rules.remove(0);
    assert_eq!((rule.backend_port, rule.floating_ip), (10080, false));
    let none = service.change(|s| s.spec.ports[0].node_port = 0).refusal();
    assert!(matches!(none, Refusal::NoNodePort { port: 80, .. }), "{none}");
}

/// LB-141.
#[test]
fn lb_141_azure_cannot_float_internal_ipv6() {
    let service = svc("test1").tcp(80).internal().dual();
    let v4 = want_of(&cluster(), &service, Family::V4).rules.remove(0);
    let v6 = want_of(&cluster(), &service, Family::V6).rules.remove(0);
    assert_eq!((v4.backend_port, v4.floating_ip), (80, true));
    assert_eq!((v6.backend_port, v6.floating_ip), (10080, false));
    assert_eq!(v6.name, "atest1-TCP-80-IPv6");
}

/// LB-142, LB-143.
#[test]
fn lb_142_lb_143_ports_can_go_without_rule_or_probe() {
    let service = svc("test1").tcp(80).tcp(443);
    let got = want(&service.clone().annotate("port_80_no_lb_rule", "true"));
    assert_eq!(got.rules.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["atest1-TCP-443"]);
    assert_eq!(got.probes, [("atest1-TCP-443".to_owned(), tcp(10443))]);
    let got = want(&service.annotate("port_80_no_probe_rule", "True"));
    assert_eq!((got.rules.len(), got.rules[0].probe.as_ref()), (2, None));
    assert_eq!(got.probes, [("atest1-TCP-443".to_owned(), tcp(10443))]);
}

/// LB-144, LB-145, LB-146.
#[test]
fn lb_145_lb_146_the_probe_protocol_is_the_ports_own_then_the_application_then_the_services() {
    let app = |protocol: &str| {
        svc("test1").tcp(80).change(|s| s.spec.ports[0].app_protocol = Some(protocol.to_owned()))
    };
    let probe = |service: &Svc| {
        let spec = want(service).probes.remove(0).1;
        (spec.protocol, spec.port, spec.path)
    };
    let path = "azure-load-balancer-health-probe-request-path";
    let global = "azure-load-balancer-health-probe-protocol";
    assert_eq!(probe(&app(" HTTPS ").annotate(path, "/a")), ("Https", 10080, Some("/a".into())));
    let basic = cluster_with(json!({"loadBalancerSku": "basic"}));
    let spec = want_of(&basic, &app("https").annotate(path, "/a"), Family::V4).probes.remove(0).1;
    assert_eq!((spec.protocol, spec.port, spec.path), ("Tcp", 10080, None), "SKU Basic cannot probe HTTPS");
    assert_eq!(probe(&app("foo").annotate(global, "http")), ("Tcp", 10080, None));
    assert_eq!(probe(&svc("test1").tcp(80).annotate(global, " Http ")), ("Http", 10080, Some("/".into())));
    let own = app("tcp").annotate("port_80_health-probe_protocol", "http");
    assert_eq!(probe(&own), ("Http", 10080, Some("/".into())));
    let own_path = own.annotate(path, "/a").annotate("port_80_health-probe_request-path", "/own");
    assert_eq!(probe(&own_path), ("Http", 10080, Some("/own".into())));
}

/// LB-147, LB-148, LB-149.
#[test]
fn lb_147_lb_148_lb_149_interval_and_threshold_are_bounded() {
    let timing = |interval: &str, count: &str| {
        svc("test1")
            .tcp(80)
            .annotate("azure-load-balancer-health-probe-interval", interval)
            .annotate("azure-load-balancer-health-probe-num-of-probe", count)
    };
    let got = want(&timing("20", "5")).probes.remove(0).1;
    assert_eq!((got.interval, got.threshold), (20, 5));
    for (interval, count) in [("10", "20"), ("60", "2"), ("2000000000", "2000000000")] {
        let refusal = timing(interval, count).refusal();
        assert!(matches!(refusal, Refusal::ProbeTooSlow { port: 80, .. }), "{refusal}");
    }
    for (interval, count, named) in [("4", "2", "interval"), ("5", "1", "num-of-probe")] {
        let refusal = timing(interval, count).refusal();
        assert!(matches!(refusal, Refusal::BelowMinimum { what, .. } if what == named));
    }
    assert!(matches!(timing("5a", "2").refusal(), Refusal::NotAWholeNumber { value, .. } if value == "5a"));
    let own = timing("20", "5").annotate("port_80_health-probe_interval", "6");
    assert_eq!(want(&own).probes[0].1.interval, 6);
}

/// LB-150, LB-151, LB-152.
#[test]
fn lb_150_lb_151_lb_152_the_probe_port_is_a_name_a_service_port_or_a_number() {
    let asked = |value: &str| {
        svc("test1")
            .tcp(80)
            .change(|s| s.spec.ports[0].name = "web".into())
            .annotate("port_80_health-probe_port", value)
    };
    for (value, port) in [("WEB", 10080), ("80", 10080), ("5080", 5080)] {
        assert_eq!(want(&asked(value)).probes[0].1.port, port, "{value}");
    }
    for bad in [65536, 0, -1] {
        let refusal = asked(&bad.to_string()).refusal();
        assert!(matches!(refusal, Refusal::ProbePortOutOfRange { value, .. } if value == bad));
    }
    assert!(matches!(asked("nosuch").refusal(), Refusal::ProbePortNotFound { .. }));
}

fn healthz() -> ProbeSpec {
    ProbeSpec { protocol: "Http", port: 34567, path: Some("/healthz".into()), interval: 5, threshold: 2 }
}

/// LB-153, LB-154, LB-157.
#[test]
fn lb_153_lb_154_lb_157_local_services_ask_kube_proxy() {
    let service = svc("test1").tcp(80).tcp(443).udp(53).local(34567);
    for service in [service.clone(), service.annotate("port_80_health-probe_protocol", "https")] {
        let got = want(&service);
        assert_eq!(got.probes, [("atest1-TCP-34567".to_owned(), healthz())]);
        assert!(got.rules.iter().all(|rule| rule.probe.as_deref() == Some("atest1-TCP-34567")));
    }
}

/// LB-155.
#[test]
fn lb_155_a_local_port_may_choose_its_own_probe() {
    let service = svc("test1").tcp(80).tcp(443).local(34567).annotate("port_80_health-probe_port", "5080");
    let got = want(&service);
    let by_rule: Vec<_> = got.rules.iter().map(|rule| rule.probe.as_deref().unwrap()).collect();
    assert_eq!(by_rule, ["atest1-TCP-80", "atest1-TCP-34567"]);
    assert!(got.probes.contains(&("atest1-TCP-80".to_owned(), tcp(5080))));
    assert!(got.probes.contains(&("atest1-TCP-34567".to_owned(), healthz())));
}

fn shared() -> Cluster {
    cluster_with(json!({"clusterServiceLoadBalancerHealthProbeMode": "shared"}))
}

const SHARED: &str = "cluster-service-shared-health-probe";

/// LB-158, LB-159.
#[test]
fn lb_158_lb_159_one_probe_serves_all_services_while_one_uses_it() {
    let (a, b) = (svc("a1").tcp(80).udp(53), svc("b1").tcp(443));
    let mut azure = Azure::of(shared());
    azure.converge(&[a.arc(), b.arc()], &[]);
    let lb = azure.load_balancer(crate::model::Flavor::External).unwrap();
    assert_eq!(probe_names(lb), [SHARED]);
    let probe = probes(lb)[0].properties.as_ref().unwrap();
    assert_eq!((probe.port, probe.request_path.as_deref()), (Some(10256), Some("/healthz")));
    assert!(rules(lb).iter().all(|rule| rule.properties.as_ref().unwrap().probe.is_some()), "UDP as well");

    // Only the first Service is reconciled after the mode is turned off.
    let mut off = Azure::of(cluster());
    off.observed = azure.observed.clone();
    off.converge(&[a.arc()], &[]);
    let lb = off.load_balancer(crate::model::Flavor::External).unwrap();
    assert_eq!(probe_names(lb), [SHARED, "aa1-TCP-80"]);

    azure.converge(&[a.deleting().arc(), b.arc()], &[]);
    assert_eq!(probe_names(azure.load_balancer(crate::model::Flavor::External).unwrap()), [SHARED]);
    azure.converge(&[b.deleting().arc()], &[]);
    assert_eq!(azure.load_balancer(crate::model::Flavor::External), None);
}

/// The target of the shared probe is configured: a component in front of kube-proxy may answer.
#[test]
fn the_shared_probe_asks_where_it_is_told_to() {
    let config = json!({
        "clusterServiceLoadBalancerHealthProbeMode": "shared",
        "clusterServiceSharedLoadBalancerHealthProbePort": 10356,
        "clusterServiceSharedLoadBalancerHealthProbePath": "/ready",
    });
    let mut azure = Azure::of(cluster_with(config));
    azure.converge(&[svc("a1").tcp(80).arc()], &[]);
    let probe =
        probes(azure.load_balancer(crate::model::Flavor::External).unwrap())[0].properties.clone().unwrap();
    assert_eq!((probe.port, probe.request_path.as_deref()), (Some(10356), Some("/ready")));
}

/// LB-160, LB-161.
#[test]
fn lb_160_lb_161_a_service_that_turns_local_leaves_no_shared_probe() {
    for service in [svc("test1").tcp(80), svc("test1").tcp(80).tcp(443)] {
        let mut azure = Azure::of(shared());
        azure.converge(&[service.arc()], &[]);
        azure.converge(&[service.local(34567).arc()], &[]);
        assert_eq!(
            probe_names(azure.load_balancer(crate::model::Flavor::External).unwrap()),
            ["atest1-TCP-34567"]
        );
    }
}

/// Whatever a Service asked for before, its probes are those that a new Service would get.
#[test]
fn a_change_of_probes_leaves_none_of_the_old_ones() {
    let service = svc("test1").tcp(80).tcp(443).udp(53);
    let forms = [
        service.clone(),
        service.clone().local(34567),
        service.clone().local(34568).annotate("port_80_health-probe_port", "5080"),
        service.clone().annotate("port_80_no_probe_rule", "true"),
        service.clone().annotate("port_80_no_lb_rule", "true"),
        service.clone().dual(),
        service.dual().local(34567),
    ];
    let sorted = |azure: &Azure| {
        let mut names: Vec<String> =
            azure.observed.load_balancers.iter().flat_map(|lb| probe_names(lb)).map(str::to_owned).collect();
        names.sort();
        names
    };
    for before in &forms {
        for now in &forms {
            let (mut changed, mut new) = (Azure::new(), Azure::new());
            changed.converge(&[before.arc()], &[]);
            changed.converge(&[now.arc()], &[]);
            new.converge(&[now.arc()], &[]);
            assert_eq!(sorted(&changed), sorted(&new), "{before:?}\n{now:?}");
        }
    }
}

/// Adds foreign members to a load balancer.
fn with_foreign(azure: &mut Azure, kind: &str, member: Value) {
    let lb = Arc::make_mut(&mut azure.observed.load_balancers[0]);
    let mut document = serde_json::to_value(&*lb).unwrap();
    let list = document["properties"][kind].as_array_mut();
    match list {
        Some(list) => list.push(member),
        None => document["properties"][kind] = json!([member]),
    }
    *lb = serde_json::from_value(document).unwrap();
}

/// LB-162, LB-163, LB-164.
#[test]
fn lb_162_lb_163_lb_164_ports_that_others_took_on_the_frontend_are_refused() {
    let frontend =
        json!({"id": cluster().frontend_id(&cluster().placement(crate::model::Flavor::External), "atest1")});
    let other = json!({"id": cluster().frontend_id(&cluster().placement(crate::model::Flavor::External), "elsewhere")});
    let rule = |frontend: &Value, protocol: &str, port: i32| {
        json!({"name": "theirs", "properties": {
            "frontendIPConfiguration": frontend, "protocol": protocol, "frontendPort": port}})
    };
    let pool = json!({"name": "theirs", "properties": {"frontendIPConfiguration": frontend, "protocol": "tcp",
        "frontendPortRangeStart": 50, "frontendPortRangeEnd": 100}});
    for (kind, member, conflicts) in [
        ("loadBalancingRules", rule(&frontend, "Tcp", 80), true),
        ("inboundNatRules", rule(&frontend, "Tcp", 80), true),
        ("inboundNatRules", rule(&frontend, "All", 80), true),
        ("inboundNatRules", rule(&frontend, "Udp", 80), false),
        ("inboundNatPools", pool, true),
        ("loadBalancingRules", rule(&frontend, "Udp", 80), false),
        ("loadBalancingRules", rule(&frontend, "Tcp", 81), false),
        ("loadBalancingRules", rule(&other, "Tcp", 80), false),
        ("inboundNatRules", rule(&other, "Tcp", 80), false),
    ] {
        let mut azure = Azure::new();
        azure.converge(&[svc("test1").tcp(443).arc()], &[]);
        with_foreign(&mut azure, kind, member.clone());
        let planned = azure.plan(&[svc("test1").tcp(443).tcp(80).arc()], &[]);
        assert_eq!(planned.refused.len(), usize::from(conflicts), "{kind} {member}");
        if conflicts {
            let Refusal::PortTaken { port: 80, holder, .. } = &planned.refused[0].1 else {
                panic!("{}", planned.refused[0].1)
            };
            let (PortHolder::Rule(name)
            | PortHolder::InboundNatRule(name)
            | PortHolder::InboundNatPool(name, 50, 100)) = &**holder
            else {
                panic!("{holder:?}")
            };
            assert_eq!(name, "theirs");
            assert!(planned.plan.is_empty(), "left as it is: {}", planned.plan);
        } else {
            assert!(planned.plan.to_string().contains("rule atest1-TCP-80 added"), "{}", planned.plan);
        }
    }
}

/// LB-162: a rule for all ports conflicts with every other of its frontend, whatever its protocol and whichever was
/// first.
#[test]
fn lb_162_all_ports_of_a_frontend_are_one_services() {
    let at = |service: Svc| service.internal().annotate("azure-load-balancer-ipv4", "10.0.0.100");
    let all =
        |service: Svc| at(service).annotate("azure-load-balancer-enable-high-availability-ports", "true");
    for (first, second) in [
        (at(svc("a1").tcp(80)), all(svc("b1").tcp(443))),
        (all(svc("a1").tcp(443)), at(svc("b1").udp(53))),
        (all(svc("a1").port("SCTP", 9000)), at(svc("b1").tcp(80))),
        (all(svc("a1").tcp(80)), all(svc("b1").port("SCTP", 9000))),
    ] {
        let mut azure = Azure::new();
        azure.converge(&[first.arc()], &[]);
        let planned = azure.plan(&[first.arc(), second.arc()], &[]);
        let [(key, Refusal::PortTaken { holder, .. })] = &planned.refused[..] else {
            panic!("{first:?}\n{second:?}\n{:?}", planned.refused)
        };
        assert_eq!(*key, second.0.key());
        assert!(matches!(&**holder, PortHolder::Rule(name) if name.starts_with("aa1-")), "{holder:?}");
    }
}

/// LB-163: all ports are a conflict with any inbound NAT rule or pool of the frontend.
#[test]
fn lb_163_inbound_nat_leaves_no_frontend_for_all_ports() {
    let service = svc("test1").tcp(80).internal();
    let balancer = cluster().placement(crate::model::Flavor::Internal);
    let frontend = json!({"id": cluster().frontend_id(&balancer, "atest1")});
    for (kind, ports) in [
        ("inboundNatRules", json!({"frontendPort": 50_000})),
        ("inboundNatPools", json!({"frontendPortRangeStart": 50, "frontendPortRangeEnd": 100})),
    ] {
        let mut azure = Azure::new();
        azure.converge(&[service.arc()], &[]);
        let mut member = json!({"name": "theirs", "properties": ports});
        member["properties"]["protocol"] = json!("Udp");
        member["properties"]["frontendIPConfiguration"] = frontend.clone();
        with_foreign(&mut azure, kind, member);
        assert!(azure.plan(&[service.arc()], &[]).refused.is_empty());
        let all = service.clone().annotate("azure-load-balancer-enable-high-availability-ports", "true");
        let planned = azure.plan(&[all.arc()], &[]);
        assert!(matches!(planned.refused[..], [(_, Refusal::PortTaken { port: 0, .. })]), "{kind}");
        assert!(planned.plan.is_empty(), "{}", planned.plan);
    }
}

/// A rule that differs is changed in place, and the order of the others stays.
#[test]
fn a_rule_changes_in_place() {
    let service = svc("test1").tcp(80).tcp(443).udp(53);
    let mut azure = Azure::new();
    azure.converge(&[service.arc()], &[]);
    let names = |azure: &Azure| -> Vec<String> {
        let lb = azure.load_balancer(crate::model::Flavor::External).unwrap();
        rule_names(lb).into_iter().map(str::to_owned).collect()
    };
    let before = names(&azure);
    azure.converge(&[service.annotate("azure-load-balancer-tcp-idle-timeout", "30").arc()], &[]);
    assert_eq!(names(&azure), before);
}

/// LB-165.
#[test]
fn lb_165_what_azure_adds_is_no_difference() {
    let mut azure = Azure::new();
    let services = [svc("test1").tcp(80).udp(53).arc()];
    azure.converge(&services, &[]);
    let lb = Arc::make_mut(&mut azure.observed.load_balancers[0]);
    lb.etag = Some("other".into());
    for rule in lb.properties.as_mut().unwrap().load_balancing_rules.as_mut().unwrap() {
        rule.etag = Some("other".into());
        rule.properties.as_mut().unwrap().provisioning_state = Some("Succeeded".into());
        rule.properties.as_mut().unwrap().rest.insert("new", json!({"member": 1}));
    }
    assert!(azure.plan(&services, &[]).plan.is_empty());
}

/// LB-166.
#[test]
fn lb_166_a_probe_changes_in_place() {
    let mut azure = Azure::new();
    azure.converge(&[svc("test1").tcp(80).tcp(443).arc()], &[]);
    let slower = svc("test1").tcp(80).tcp(443).annotate("port_80_health-probe_interval", "10");
    let planned = azure.plan(&[slower.arc()], &[]);
    assert_eq!(planned.plan.steps.len(), 1);
    let difference = difference("interval", "5", "10");
    let changed = Change::ProbeChanged { probe: "atest1-TCP-80".to_owned(), difference };
    assert_eq!(planned.plan.steps[0].changes, [changed]);
    let lb = load_balancer_of(&planned.plan.steps[0]);
    assert_eq!(probe_names(lb), ["atest1-TCP-80", "atest1-TCP-443"], "order kept");
    assert_eq!(probes(lb)[0].properties.as_ref().unwrap().number_of_probes, Some(1), "kept as it came");
}

/// LB-167.
#[test]
fn lb_167_outbound_snat_follows_the_configuration() {
    let cluster = cluster_with(json!({"disableOutboundSNAT": true}));
    assert!(want_of(&cluster, &svc("test1").tcp(80), Family::V4).rules[0].disable_outbound_snat);
}
