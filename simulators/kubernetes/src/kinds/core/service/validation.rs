//! Validates Services. Fields are in the order in which kube-apiserver reports them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::shape::{has_health_check, has_node_ports, is_headless, port_number, service_type};
use crate::kinds::prelude::*;
use crate::kinds::shared::metadata::labels;

const IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

const PORT: &str = "must be between 1 and 65535, inclusive";

/// The longest session affinity in seconds: a day.
const MAX_AFFINITY_SECONDS: i64 = 86400;

pub(super) fn validate(object: &Value, causes: &mut Causes) {
    let kind = service_type(object);
    causes.check_one_of("spec.type", kind, &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    let ports = list_at(object, "/spec/ports");
    if ports.is_empty() && !is_headless(object) && kind != "ExternalName" {
        causes.push(Invalid::required("spec.ports", ""));
    }
    if kind == "ExternalName" {
        causes.note(validate_external_name(text_at(object, "/spec/externalName").trim_end_matches('.')));
    }
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        causes.note(validate_port(index, port, ports.len() > 1, has_node_ports(object), kind, &mut names));
    }
    causes.note(validate_uniqueness(ports));
    labels(object, "/spec/selector", "spec.selector", causes);
    causes.note(validate_affinity(object));
    causes.note(validate_addresses(object, kind));
    causes.note(validate_load_balancer(object, kind));
    causes.note(validate_policies(object, kind));
    causes.note(validate_status(object, kind));
}

fn validate_external_name(name: &str) -> Result<(), Invalid> {
    if name.is_empty() {
        return Err(Invalid::required("spec.externalName", ""));
    }
    Invalid::check("spec.externalName", name, dns_subdomain)
}

fn validate_port(
    index: usize,
    port: &Value,
    needs_name: bool,
    may_have_node_port: bool,
    kind: &str,
    names: &mut BTreeSet<String>,
) -> Result<(), Invalid> {
    let field = |member: &str| format!("spec.ports[{index}].{member}");
    let name = text_at(port, "/name");
    if name.is_empty() {
        if needs_name {
            return Err(Invalid::required(field("name"), ""));
        }
    } else {
        Invalid::check(field("name"), name, dns_label)?;
        if !names.insert(name.to_owned()) {
            return Err(Invalid::duplicate(field("name"), format!("{name:?}")));
        }
    }
    let service_port = port.get("port").and_then(Value::as_i64).unwrap_or(0);
    if !(1..=65535).contains(&service_port) {
        return Err(Invalid::value(field("port"), service_port, PORT));
    }
    let protocol = text_at(port, "/protocol");
    Invalid::check_one_of(field("protocol"), protocol, &["SCTP", "TCP", "UDP"])?;
    match port.get("targetPort") {
        Some(Value::String(name)) => {
            port_name(name).map_err(|why| Invalid::text(field("targetPort"), name, why))?;
        }
        Some(target) => {
            let target = target.as_i64().unwrap_or(0);
            if !(1..=65535).contains(&target) {
                return Err(Invalid::value(field("targetPort"), target, PORT));
            }
        }
        None => {}
    }
    let node_port = port.get("nodePort").and_then(Value::as_i64).unwrap_or(0);
    if node_port != 0 && !may_have_node_port {
        let why = format!("may not be used when `type` is '{kind}'");
        return Err(Invalid::forbidden(field("nodePort"), &why));
    }
    if !(0..=65535).contains(&node_port) {
        let why = "provided port is not in the valid range. The range of valid ports is 30000-32767";
        return Err(Invalid::value(field("nodePort"), node_port, why));
    }
    Ok(())
}

fn validate_uniqueness(ports: &[Value]) -> Result<(), Invalid> {
    let mut node_ports = BTreeSet::new();
    let mut service_ports = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let (protocol, node_port) = (text_at(port, "/protocol"), port_number(port, "/nodePort"));
        if node_port != 0 && !node_ports.insert((protocol, node_port)) {
            return Err(Invalid::duplicate(format!("spec.ports[{index}].nodePort"), node_port));
        }
        let service_port = port_number(port, "/port");
        if !service_ports.insert((protocol, service_port)) {
            let value = format!(
                "{{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\"Port\":{service_port},\
                 \"TargetPort\":0,\"NodePort\":0}}"
            );
            return Err(Invalid::duplicate(format!("spec.ports[{index}]"), &value));
        }
    }
    Ok(())
}

fn validate_affinity(object: &Value) -> Result<(), Invalid> {
    let affinity = text_at(object, "/spec/sessionAffinity");
    Invalid::check_one_of("spec.sessionAffinity", affinity, &["ClientIP", "None"])?;
    if affinity == "ClientIP" {
        let pointer = "/spec/sessionAffinityConfig/clientIP/timeoutSeconds";
        let seconds = object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
        if seconds <= 0 || seconds > MAX_AFFINITY_SECONDS {
            let why = format!("must be greater than 0 and less than {MAX_AFFINITY_SECONDS}");
            let field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
            return Err(Invalid::value(field, seconds, &why));
        }
    }
    Ok(())
}

fn validate_addresses(object: &Value, kind: &str) -> Result<(), Invalid> {
    let addresses = list_at(object, "/spec/clusterIPs");
    if kind == "ExternalName" {
        if !addresses.is_empty() || !text_at(object, "/spec/clusterIP").is_empty() {
            let why = "may not be set for ExternalName services";
            return Err(Invalid::forbidden("spec.clusterIPs", why));
        }
        return Ok(());
    }
    let first = addresses.first().and_then(Value::as_str).unwrap_or_default();
    if first != text_at(object, "/spec/clusterIP") {
        let why = "first value must match `clusterIP`";
        return Err(Invalid::text("spec.clusterIPs[0]", first, why));
    }
    for (index, address) in addresses.iter().enumerate() {
        let address = address.as_str().unwrap_or_default();
        let field = format!("spec.clusterIPs[{index}]");
        if address == "None" {
            if matches!(kind, "NodePort" | "LoadBalancer") {
                let why = format!("may not be set to 'None' for {kind} services");
                return Err(Invalid::text(field, address, &why));
            }
        } else if address.parse::<IpAddr>().is_err() {
            return Err(Invalid::text(field, address, IP));
        }
    }
    for (index, family) in list_at(object, "/spec/ipFamilies").iter().enumerate() {
        let family = family.as_str().unwrap_or_default();
        Invalid::check_one_of(format!("spec.ipFamilies[{index}]"), family, &["IPv4", "IPv6"])?;
        let address = addresses.get(index).and_then(|address| address.as_str()?.parse::<IpAddr>().ok());
        if let Some(address) = address
            && address.is_ipv6() != (family == "IPv6")
        {
            let why = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            return Err(Invalid::text(format!("spec.clusterIPs[{index}]"), &address.to_string(), &why));
        }
    }
    let policy = text_at(object, "/spec/ipFamilyPolicy");
    let policies = ["SingleStack", "PreferDualStack", "RequireDualStack"];
    Invalid::check_one_of("spec.ipFamilyPolicy", policy, &policies)?;
    if policy == "SingleStack" && list_at(object, "/spec/ipFamilies").len() > 1 {
        let why = "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified";
        return Err(Invalid::text("spec.ipFamilyPolicy", policy, why));
    }
    for (index, address) in list_at(object, "/spec/externalIPs").iter().enumerate() {
        let address = address.as_str().unwrap_or_default();
        let field = format!("spec.externalIPs[{index}]");
        let parsed: IpAddr = address.parse().map_err(|_| Invalid::text(field.as_str(), address, IP))?;
        if parsed.is_loopback() {
            let range = if parsed.is_ipv6() { "::1/128" } else { "127.0.0.0/8" };
            return Err(Invalid::text(
                field,
                address,
                &format!("may not be in the loopback range ({range})"),
            ));
        }
        if parsed.is_unspecified() {
            return Err(Invalid::text(field, address, &format!("may not be unspecified ({parsed})")));
        }
    }
    Ok(())
}

fn validate_load_balancer(object: &Value, kind: &str) -> Result<(), Invalid> {
    let ranges = list_at(object, "/spec/loadBalancerSourceRanges");
    if !ranges.is_empty() {
        if kind != "LoadBalancer" {
            let why = "may only be used when `type` is 'LoadBalancer'";
            return Err(Invalid::forbidden("spec.LoadBalancerSourceRanges", why));
        }
        if !ranges.iter().all(|range| range.as_str().is_some_and(|range| is_cidr(range.trim()))) {
            let texts: Vec<&str> = ranges.iter().filter_map(Value::as_str).collect();
            let why = "must be a list of IP ranges. For example, 10.240.0.0/24,10.250.0.0/24 ";
            return Err(Invalid::text(
                "spec.LoadBalancerSourceRanges",
                &format!("[{}]", texts.join(" ")),
                why,
            ));
        }
    }
    for member in ["loadBalancerClass", "allocateLoadBalancerNodePorts"] {
        if kind != "LoadBalancer" && object.pointer(&format!("/spec/{member}")).is_some_and(|v| !v.is_null())
        {
            let why = "may only be used when `type` is 'LoadBalancer'";
            return Err(Invalid::forbidden(format!("spec.{member}"), why));
        }
    }
    let class = text_at(object, "/spec/loadBalancerClass");
    if !class.is_empty() {
        Invalid::check("spec.loadBalancerClass", class, qualified_name)?;
    }
    Ok(())
}

fn validate_policies(object: &Value, kind: &str) -> Result<(), Invalid> {
    let policy = text_at(object, "/spec/externalTrafficPolicy");
    if !policy.is_empty() {
        Invalid::check_one_of("spec.externalTrafficPolicy", policy, &["Cluster", "Local"])?;
    }
    let with_addresses = kind == "ClusterIP" && !list_at(object, "/spec/externalIPs").is_empty();
    if !policy.is_empty() && !has_node_ports(object) && !with_addresses {
        let why = "may only be set for externally-accessible services";
        return Err(Invalid::text("spec.externalTrafficPolicy", policy, why));
    }
    let internal = text_at(object, "/spec/internalTrafficPolicy");
    if !internal.is_empty() {
        Invalid::check_one_of("spec.internalTrafficPolicy", internal, &["Cluster", "Local"])?;
    }
    let port = object.pointer("/spec/healthCheckNodePort").and_then(Value::as_i64).unwrap_or(0);
    if port != 0 && !has_health_check(object) {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        return Err(Invalid::value("spec.healthCheckNodePort", port, why));
    }
    if !(0..=65535).contains(&port) {
        return Err(Invalid::value("spec.healthCheckNodePort", port, PORT));
    }
    Ok(())
}

fn validate_status(object: &Value, kind: &str) -> Result<(), Invalid> {
    if kind != "LoadBalancer" && !list_at(object, "/status/loadBalancer/ingress").is_empty() {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        return Err(Invalid::forbidden("status.loadBalancer.ingress", why));
    }
    for (index, entry) in list_at(object, "/status/loadBalancer/ingress").iter().enumerate() {
        let field = |member: &str| format!("status.loadBalancer.ingress[{index}].{member}");
        let (ip, host) = (text_at(entry, "/ip"), text_at(entry, "/hostname"));
        if !ip.is_empty() && ip.parse::<IpAddr>().is_err() {
            return Err(Invalid::text(field("ip"), ip, "must be a valid IP address"));
        }
        match (text_at(entry, "/ipMode"), ip.is_empty()) {
            ("", true) => {}
            ("", false) => {
                return Err(Invalid::required(field("ipMode"), "must be specified when `ip` is set"));
            }
            (_, true) => {
                return Err(Invalid::forbidden(field("ipMode"), "may not be specified when `ip` is not set"));
            }
            (mode, false) => Invalid::check_one_of(field("ipMode"), mode, &["Proxy", "VIP"])?,
        }
        if !host.is_empty() {
            Invalid::check(field("hostname"), host, dns_subdomain)?;
            if host.parse::<IpAddr>().is_ok() {
                return Err(Invalid::text(field("hostname"), host, "must be a DNS name, not an IP address"));
            }
        }
    }
    Ok(())
}

pub(super) fn validate_update(old: &Value, object: &Value) -> Result<(), Invalid> {
    if service_type(old) != "ExternalName" && service_type(object) != "ExternalName" {
        let before = list_at(old, "/spec/clusterIPs");
        for (index, address) in list_at(object, "/spec/clusterIPs").iter().enumerate() {
            if before.get(index).is_some_and(|before| before != address) {
                let list = format!("[{address}]");
                let field = format!("spec.clusterIPs[{index}]");
                return Err(Invalid::value(field, &list, "may not change once set"));
            }
        }
        let (before, after) = (list_at(old, "/spec/ipFamilies"), list_at(object, "/spec/ipFamilies"));
        if let (Some(before), Some(after)) = (before.first(), after.first())
            && before != after
        {
            let list = format!("[{after}]");
            return Err(Invalid::value("spec.ipFamilies[0]", &list, "may not change once set"));
        }
    }
    if service_type(old) == "LoadBalancer" && service_type(object) == "LoadBalancer" {
        let class = |object| text_at(object, "/spec/loadBalancerClass").to_owned();
        if class(old) != class(object) {
            return Err(Invalid::text("spec.loadBalancerClass", &class(object), "may not change once set"));
        }
    }
    if has_health_check(old) && has_health_check(object) {
        let port = port_number(object, "/spec/healthCheckNodePort");
        if port != port_number(old, "/spec/healthCheckNodePort") {
            return Err(Invalid::value("spec.healthCheckNodePort", port, "field is immutable"));
        }
    }
    Ok(())
}
