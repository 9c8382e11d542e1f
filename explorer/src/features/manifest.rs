//! A manifest with the features of a row.

use serde_json::{Map, Value, json};

use super::factors::{is_internal, value};
use crate::stage::{InitialResource, OTHER_GROUP};

/// Networks of the test values.
pub(super) const NETWORK: &str = "203.0.113.0/24";
pub(super) const SINGLE: &str = "203.0.113.7/32";
pub(super) const NETWORK_V6: &str = "2001:db8:5::/48";
pub(super) const ALLOWED: [&str; 2] = ["198.51.100.0/25", "2001:db8:6::/64"];
pub(super) const ADDITIONAL: &str = "203.0.113.200";
/// The path of HTTP probes.
pub(super) const PATH: &str = "/healthz";

/// The ports of a row: name, protocol, number.
pub(super) fn ports(row: &[usize]) -> Vec<(&'static str, &'static str, u64)> {
    match value(row, "ports") {
        "udp" => vec![("dns", "UDP", 53)],
        "tcp-and-udp" => vec![("dns-tcp", "TCP", 53), ("dns", "UDP", 53)],
        "two-tcp" => vec![("http", "TCP", 80), ("https", "TCP", 443)],
        "tcp-then-other-udp" => vec![("http", "TCP", 80), ("game", "UDP", 7777)],
        _ => vec![("http", "TCP", 80)],
    }
}

/// The private address that Service `number` asks for.
pub(super) fn private_address(row: &[usize], number: usize, v6: bool) -> String {
    let subnet = usize::from(value(row, "subnet") == "second");
    if v6 {
        return format!("fd00:10:240:{subnet}::{:x}", 0x1000 + number);
    }
    format!("10.{}.{}.{}", 240 + subnet, 100 + number / 200, 10 + number % 200)
}

/// The node port that Service `number` chooses for its port at a position; those for health checks follow.
fn chosen_port(number: usize, place: usize) -> usize {
    30_000 + 4 * number + place
}

/// The position of the health check port among the chosen ones.
const HEALTH_CHECK: usize = 3;

/// Whether a Service names all of its node ports (0), some of them (1) or none (2). Services that name them are created
/// first, before Kubernetes allocates the same ports to others.
pub fn leaves_to_kubernetes(row: &[usize]) -> usize {
    let names_ports = value(row, "node-ports") == "chosen";
    let names_health_check = value(row, "health-check-port") != "none";
    let all = value(row, "policy") == "Cluster" || names_health_check;
    match (names_ports, names_health_check) {
        (true, _) if all => 0,
        (false, false) => 2,
        _ => 1,
    }
}

/// The initial resources in Azure for Service `number`.
pub fn initial_resources(row: &[usize], number: usize) -> Vec<InitialResource> {
    let mut resources = Vec::new();
    let kept = !["own", "!missing"].contains(&value(row, "public-ip"));
    if kept && !is_internal(row) {
        for (name, version) in [("own", "IPv4"), ("own-six", "IPv6")] {
            let ip = InitialResource::public_ip(&format!("{name}-{number}-kept"), version);
            let other = value(row, "resource-group") == "other";
            resources.push(if other { ip.in_group(OTHER_GROUP) } else { ip });
        }
    }
    if value(row, "prefix") != "no" {
        resources.push(InitialResource::prefix(&format!("prefix-{number}-four"), "IPv4", 31));
        resources.push(InitialResource::prefix(&format!("prefix-{number}-six"), "IPv6", 127));
    }
    resources
}

/// The manifest of Service `number`, named `namespace/name`.
pub fn manifest(row: &[usize], number: usize, namespace: &str, name: &str) -> Value {
    let is = |factor: &str, wanted: &str| value(row, factor) == wanted;
    let mut annotations = Map::new();
    let mut annotate = |key: &str, value: &str| {
        annotations.insert(format!("service.beta.kubernetes.io/{key}"), value.into());
    };
    let mut spec = json!({"type": "LoadBalancer", "selector": {"app": name}});
    match value(row, "placement") {
        "internal" => annotate("azure-load-balancer-internal", "true"),
        "internal-in-capitals" => annotate("azure-load-balancer-internal", "TRUE"),
        _ => {}
    }
    let (policy, families) = match value(row, "families") {
        "IPv6" => ("SingleStack", json!(["IPv6"])),
        "dual" => ("RequireDualStack", json!(["IPv4", "IPv6"])),
        "prefer-dual" => ("PreferDualStack", json!(["IPv4", "IPv6"])),
        "dual-IPv6-first" => ("RequireDualStack", json!(["IPv6", "IPv4"])),
        _ => ("SingleStack", json!(["IPv4"])),
    };
    (spec["ipFamilyPolicy"], spec["ipFamilies"]) = (policy.into(), families);
    let listed: Vec<Value> = ports(row)
        .into_iter()
        .enumerate()
        .map(|(place, (name, protocol, port))| {
            let mut entry = json!({"name": name, "protocol": protocol, "port": port});
            match value(row, "target-port") {
                "name" => entry["targetPort"] = name.into(),
                "number" => entry["targetPort"] = (8080 + place).into(),
                _ => {}
            }
            if is("node-ports", "chosen") {
                entry["nodePort"] = chosen_port(number, place).into();
            }
            if is("app-protocol", "http") && protocol == "TCP" {
                entry["appProtocol"] = "http".into();
            }
            entry
        })
        .collect();
    spec["ports"] = listed.into();
    let first = ports(row)[0].2;
    if is("policy", "Local") {
        spec["externalTrafficPolicy"] = "Local".into();
    }
    if is("affinity", "ClientIP") {
        spec["sessionAffinity"] = "ClientIP".into();
    }
    let ranges: &[&str] = match value(row, "source-ranges") {
        "network" => &[NETWORK],
        "single-address" => &[SINGLE],
        "everybody" => &["0.0.0.0/0"],
        "both-families" => &[NETWORK, NETWORK_V6],
        "overlapping" => &["203.0.113.0/25", "203.0.113.128/25", SINGLE, SINGLE],
        _ => &[],
    };
    if !ranges.is_empty() {
        spec["loadBalancerSourceRanges"] = json!(ranges);
    }
    match value(row, "allowed-ranges") {
        "networks" => annotate("azure-allowed-ip-ranges", &ALLOWED.join(", ")),
        "core-annotation" => annotate("load-balancer-source-ranges", ALLOWED[0]),
        "invalid" => annotate("azure-allowed-ip-ranges", "everybody"),
        _ => {}
    }
    match value(row, "service-tags") {
        "one" => annotate("azure-allowed-service-tags", "AzureFrontDoor.Backend"),
        "two-in-other-case" => {
            annotate("azure-allowed-service-tags", "azurefrontdoor.backend, AzureKeyVault.westeurope");
        }
        _ => {}
    }
    if is("deny-all", "yes") {
        annotate("azure-deny-all-except-load-balancer-source-ranges", "true");
    }
    if is("security-rules", "no") {
        annotate("azure-disable-load-balancer-nsg-rule", "true");
    }
    if !is("idle-timeout", "none") {
        annotate("azure-load-balancer-tcp-idle-timeout", value(row, "idle-timeout").trim_start_matches('!'));
    }
    if is("tcp-reset", "off") {
        annotate("azure-load-balancer-disable-tcp-reset", "true");
    }
    if is("high-availability-ports", "yes") {
        annotate("azure-load-balancer-enable-high-availability-ports", "true");
    }
    if is("floating-ip", "off") {
        annotate("azure-disable-load-balancer-floating-ip", "true");
    }
    if !is("probe-protocol", "none") {
        annotate("azure-load-balancer-health-probe-protocol", value(row, "probe-protocol"));
    }
    match value(row, "probe-timing") {
        "10s-x3" => {
            annotate("azure-load-balancer-health-probe-interval", "10");
            annotate(&format!("port_{first}_health-probe_num-of-probe"), "3");
        }
        "x4-of-all" => annotate("azure-load-balancer-health-probe-num-of-probe", "4"),
        _ => {}
    }
    if is("probe-path", PATH) {
        annotate("azure-load-balancer-health-probe-request-path", PATH);
    }
    for (factor, suffix) in [
        ("first-probe-protocol", "protocol"),
        ("first-probe-interval", "interval"),
        ("first-probe-path", "request-path"),
    ] {
        if !is(factor, "none") {
            annotate(&format!("port_{first}_health-probe_{suffix}"), value(row, factor));
        }
    }
    let health_check = chosen_port(number, HEALTH_CHECK);
    if !is("health-check-port", "none") {
        spec["healthCheckNodePort"] = health_check.into();
    }
    if is("health-check-port", "chosen-and-timed") {
        annotate(&format!("port_{health_check}_health-probe_interval"), "9");
        annotate(&format!("port_{health_check}_health-probe_num-of-probe"), "5");
    }
    match value(row, "probe-port") {
        "own" => annotate(&format!("port_{first}_health-probe_port"), &first.to_string()),
        "none" => {}
        number => annotate(&format!("port_{first}_health-probe_port"), number),
    }
    match value(row, "first-port") {
        "no-rule" => annotate(&format!("port_{first}_no_lb_rule"), "true"),
        "no-probe" => annotate(&format!("port_{first}_no_probe_rule"), "true"),
        _ => {}
    }
    let (v4, v6) = if is_internal(row) {
        (private_address(row, number, false), private_address(row, number, true))
    } else {
        (format!("<address of own-{number}-kept>"), format!("<address of own-six-{number}-kept>"))
    };
    match value(row, "public-ip") {
        "named" => {
            annotate("azure-pip-name", &format!("own-{number}-kept"));
            annotate("azure-pip-name-ipv6", &format!("own-six-{number}-kept"));
        }
        // It names the one family if there is only one.
        "named-by-plain-key" => {
            let of_the_family = if is("families", "IPv6") { "own-six" } else { "own" };
            annotate("azure-pip-name", &format!("{of_the_family}-{number}-kept"));
        }
        "named-by-IPv6-key" => annotate("azure-pip-name-ipv6", &format!("own-six-{number}-kept")),
        "address" => {
            annotate("azure-load-balancer-ipv4", &v4);
            annotate("azure-load-balancer-ipv6", &v6);
        }
        "address-in-field" => spec["loadBalancerIP"] = if is("families", "IPv6") { v6 } else { v4 }.into(),
        "!missing" => annotate("azure-pip-name", "nowhere"),
        _ => {}
    }
    match value(row, "prefix") {
        "yes" => {
            annotate("azure-pip-prefix-id", &format!("<id of prefix-{number}-four>"));
            annotate("azure-pip-prefix-id-ipv6", &format!("<id of prefix-{number}-six>"));
        }
        "by-plain-key" => {
            let of_the_family = if is("families", "IPv6") { "six" } else { "four" };
            annotate("azure-pip-prefix-id", &format!("<id of prefix-{number}-{of_the_family}>"));
        }
        "by-IPv6-key" => annotate("azure-pip-prefix-id-ipv6", &format!("<id of prefix-{number}-six>")),
        _ => {}
    }
    if is("pip-tags", "some") {
        annotate("azure-pip-tags", "team=web,unit=7");
    }
    if is("ip-tags", "some") {
        annotate("azure-pip-ip-tags", "FirstPartyUsage=/Sql");
    }
    if is("dns-label", "some") {
        annotate("azure-dns-label-name", &format!("contoso-{number}"));
    }
    if is("resource-group", "other") {
        annotate("azure-load-balancer-resource-group", OTHER_GROUP);
    }
    match value(row, "additional-addresses") {
        "one" => annotate("azure-additional-public-ips", ADDITIONAL),
        "!garbage" => annotate("azure-additional-public-ips", "nowhere"),
        _ => {}
    }
    match value(row, "subnet") {
        "second" => annotate("azure-load-balancer-internal-subnet", "second"),
        "!missing" => annotate("azure-load-balancer-internal-subnet", "nowhere"),
        _ => {}
    }
    if is("node-ports", "no") {
        spec["allocateLoadBalancerNodePorts"] = false.into();
    }
    match value(row, "mode") {
        "auto" => annotate("azure-load-balancer-mode", "__auto__"),
        "scale-set" => annotate("azure-load-balancer-mode", "some-scale-set"),
        _ => {}
    }
    if is("balancer-names", "two") {
        annotate("azure-load-balancer-configurations", "lb1,lb2");
    }
    if is("shared-security-rule", "yes") {
        annotate("azure-shared-securityrule", "true");
    }
    if !is("private-link-service", "no") {
        annotate("azure-pls-create", "true");
    }
    if is("private-link-service", "second-subnet") {
        annotate("azure-pls-ip-configuration-subnet", "second");
    }
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": namespace, "name": name, "annotations": annotations},
        "spec": spec,
    })
}
