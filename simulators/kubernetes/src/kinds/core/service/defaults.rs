//! Defaults of a Service, what an update keeps, and what a change of type drops.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::shape::{
    has_health_check, has_node_ports, is_headless, is_headless_without_selector, port_number, service_type,
    spec,
};
use crate::kinds::prelude::*;

/// The defaults of a Service that is decoded. The other members are set on create and update.
pub(super) fn default_as_read(object: &mut Value) {
    default_specification(object);
    let kind = service_type(object).to_owned();
    let ingress = object.pointer_mut("/status/loadBalancer/ingress").and_then(Value::as_array_mut);
    for entry in ingress.into_iter().flatten().filter_map(Value::as_object_mut) {
        if kind == "LoadBalancer" && entry.get("ip").is_some_and(|ip| ip != "") {
            entry.entry("ipMode").or_insert_with(|| json!("VIP"));
        }
    }
}

fn default_specification(object: &mut Value) {
    let (kind, external) = (service_type(object).to_owned(), has_node_ports(object));
    let exposed = external || !list_at(object, "/spec/externalIPs").is_empty();
    let Some(spec) = spec(object) else { return };
    // An empty text is how Go clients write "not set".
    for member in [
        "type",
        "sessionAffinity",
        "externalTrafficPolicy",
        "internalTrafficPolicy",
        "clusterIP",
        "ipFamilyPolicy",
        "loadBalancerIP",
    ] {
        if spec.get(member).is_some_and(|value| value.is_null() || value == "") {
            spec.remove(member);
        }
    }
    for member in ["healthCheckNodePort"] {
        if spec.get(member).is_some_and(|value| value == 0) {
            spec.remove(member);
        }
    }
    let mut set = |member: &str, value: Value| {
        spec.entry(member).or_insert(value);
    };
    set("type", json!(kind));
    set("sessionAffinity", json!("None"));
    if kind != "ExternalName" {
        set("internalTrafficPolicy", json!("Cluster"));
    }
    if exposed {
        set("externalTrafficPolicy", json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        set("allocateLoadBalancerNodePorts", json!(true));
    }
    if spec.get("sessionAffinity").is_some_and(|affinity| affinity == "ClientIP") {
        let config = spec.entry("sessionAffinityConfig").or_insert_with(|| json!({}));
        if config.pointer("/clientIP/timeoutSeconds").is_none() {
            // Three hours.
            *config = json!({"clientIP": {"timeoutSeconds": 10800}});
        }
    }
    if spec.get("sessionAffinity").is_some_and(|affinity| affinity == "None") {
        spec.remove("sessionAffinityConfig");
    }
    if let Some(Value::Array(ports)) = spec.get_mut("ports") {
        for port in ports.iter_mut().filter_map(Value::as_object_mut) {
            port.entry("protocol").or_insert_with(|| json!("TCP"));
            let target = port.get("targetPort");
            if target.is_none_or(|target| target.is_null() || *target == 0 || target == "")
                && let Some(same) = port.get("port").cloned()
            {
                port.insert("targetPort".into(), same);
            }
            if port.get("nodePort").is_some_and(|port| port.is_null() || *port == 0) {
                port.remove("nodePort");
            }
        }
    }
}

pub(super) fn default(object: &mut Value, dual_stack: bool) {
    default_specification(object);
    let (kind, headless) = (service_type(object).to_owned(), is_headless(object));
    // Its endpoints are written by others, and may have addresses of families that the cluster's own Services do not
    // have.
    let free = dual_stack || is_headless_without_selector(object);
    let Some(spec) = spec(object) else { return };
    if kind != "ExternalName" {
        spec.entry("ipFamilyPolicy").or_insert_with(|| json!("SingleStack"));
    }
    if headless {
        spec.insert("clusterIPs".into(), json!(["None"]));
    } else if let Some(address) = spec.get("clusterIP").cloned() {
        spec.entry("clusterIPs").or_insert_with(|| json!([address]));
    } else if let Some(first) = spec.get("clusterIPs").and_then(|list| list.get(0)).cloned() {
        spec.insert("clusterIP".into(), first);
    }
    if kind != "ExternalName" {
        default_families(spec, free);
    }
    if let Value::Object(members) = object
        && let Value::Object(status) = members.entry("status").or_insert_with(|| json!({}))
    {
        status.entry("loadBalancer").or_insert_with(|| json!({}));
    }
}

/// Derives families from the requested addresses, then from the policy; IPv4 comes first. If only one family is
/// available, `PreferDualStack` gets one.
fn default_families(spec: &mut Map<String, Value>, dual_stack: bool) {
    let mut families: Vec<String> = spec
        .get("ipFamilies")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|family| family.as_str().map(str::to_owned))
        .collect();
    let addresses = spec.get("clusterIPs").and_then(Value::as_array).cloned().unwrap_or_default();
    for address in addresses.iter().filter_map(|address| address.as_str()?.parse::<IpAddr>().ok()) {
        let family = family_of(address).to_owned();
        if !families.contains(&family) {
            families.push(family);
        }
    }
    if families.is_empty() {
        families.push("IPv4".into());
    }
    let policy = spec.get("ipFamilyPolicy").and_then(Value::as_str).unwrap_or_default();
    if dual_stack && policy != "SingleStack" && families.len() == 1 {
        let other = if families.iter().any(|family| family == "IPv4") { "IPv6" } else { "IPv4" };
        families.push(other.into());
    }
    spec.insert("ipFamilies".into(), json!(families));
}

fn family_of(address: IpAddr) -> &'static str {
    if address.is_ipv6() { "IPv6" } else { "IPv4" }
}

/// Keeps the allocations that an update omits: clients that write the object as they once declared it must not lose
/// addresses and ports.
pub(super) fn keep_allocated(old: &Value, object: &mut Value) {
    let (before, after) = (service_type(old), service_type(object).to_owned());
    let keep_address = before != "ExternalName" && after != "ExternalName";
    let keep_ports = has_node_ports(old) && has_node_ports(object);
    let keep_health_check = has_health_check(old) && has_health_check(object);
    let mut taken: BTreeSet<u16> =
        list_at(object, "/spec/ports").iter().map(|port| port_number(port, "/nodePort")).collect();
    let Some(spec) = spec(object) else { return };
    let unset = |value: Option<&Value>| {
        value.is_none_or(|value| {
            value.is_null() || value == "" || *value == 0 || value.as_array().is_some_and(Vec::is_empty)
        })
    };
    if keep_address {
        // A change of `clusterIP` alone changes the list, too.
        let address = spec.get("clusterIP").cloned().unwrap_or(Value::Null);
        let carried =
            spec.get("clusterIPs").is_some_and(|list| Some(list) == old.pointer("/spec/clusterIPs"));
        if !unset(Some(&address)) && carried && Some(&address) != old.pointer("/spec/clusterIP") {
            spec.insert("clusterIPs".into(), json!([address]));
        }
        for member in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if unset(spec.get(member))
                && let Some(value) = old.pointer(&format!("/spec/{member}"))
            {
                // A change of the number of families changes the list of addresses.
                spec.insert(member.into(), value.clone());
            }
        }
        resize_families(spec);
    }
    if keep_ports && let Some(Value::Array(ports)) = spec.get_mut("ports") {
        for port in ports.iter_mut().filter_map(Value::as_object_mut) {
            if !unset(port.get("nodePort")) {
                continue;
            }
            let protocol = port.get("protocol").and_then(Value::as_str).unwrap_or("TCP").to_owned();
            let same = list_at(old, "/spec/ports").iter().find(|candidate| {
                candidate.get("port") == port.get("port") && text_at(candidate, "/protocol") == protocol
            });
            let node_port = same.map_or(0, |same| port_number(same, "/nodePort"));
            if node_port != 0 && taken.insert(node_port) {
                port.insert("nodePort".into(), json!(node_port));
            }
        }
    }
    if keep_health_check && unset(spec.get("healthCheckNodePort")) {
        let port = port_number(old, "/spec/healthCheckNodePort");
        if port != 0 {
            spec.insert("healthCheckNodePort".into(), json!(port));
        }
    }
}

/// Removes the second family and address when dual-stack is turned off; defaults handle turning it on.
fn resize_families(spec: &mut Map<String, Value>) {
    if spec.get("ipFamilyPolicy").is_some_and(|policy| policy == "SingleStack") {
        for member in ["clusterIPs", "ipFamilies"] {
            if let Some(Value::Array(list)) = spec.get_mut(member) {
                list.truncate(1);
            }
        }
    }
}

/// Removes the fields of the old type after a change of type, if the request merely repeats them.
pub(super) fn drop_unused(old: &Value, object: &mut Value) {
    let (kind, external) = (service_type(object).to_owned(), has_node_ports(object));
    let health_check = has_health_check(object);
    let changed = service_type(old) != kind;
    let balancer = "/status/loadBalancer";
    if kind != "LoadBalancer"
        && object.pointer(balancer) == old.pointer(balancer)
        && let Some(status) = object.pointer_mut(balancer)
    {
        // The Service has no load balancer any more.
        *status = json!({});
    }
    let Some(spec) = spec(object) else { return };
    let same = |member: &str, value: Option<&Value>| value == old.pointer(&format!("/spec/{member}"));
    if changed && kind == "ExternalName" {
        for member in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            if same(member, spec.get(member)) {
                spec.remove(member);
            }
        }
    }
    if changed && !external {
        if let Some(Value::Array(ports)) = spec.get_mut("ports") {
            let known: BTreeSet<u16> =
                list_at(old, "/spec/ports").iter().map(|port| port_number(port, "/nodePort")).collect();
            for port in ports.iter_mut() {
                if known.contains(&port_number(port, "/nodePort"))
                    && let Value::Object(port) = port
                {
                    port.remove("nodePort");
                }
            }
        }
        if same("externalTrafficPolicy", spec.get("externalTrafficPolicy")) {
            spec.remove("externalTrafficPolicy");
        }
    }
    if changed && kind != "LoadBalancer" {
        for member in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if same(member, spec.get(member)) {
                spec.remove(member);
            }
        }
    }
    if !health_check && same("healthCheckNodePort", spec.get("healthCheckNodePort")) {
        spec.remove("healthCheckNodePort");
    }
}
