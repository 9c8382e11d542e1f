//! The cluster addresses and node ports of a Service.

use super::shape::{
    has_health_check, has_node_ports, is_headless, is_headless_without_selector, port_number, service_type,
    spec,
};
use crate::kinds::prelude::*;
use crate::kinds::shared::allocators::{Allocations, Allocators, NODE_PORTS, in_range, range_text};

/// The addresses and ports that a Service holds.
pub(super) fn allocations_of(object: &Value) -> Allocations {
    let mut held = Allocations::default();
    if has_node_ports(object) {
        held.ports =
            list_at(object, "/spec/ports").iter().map(|port| port_number(port, "/nodePort")).collect();
        held.ports.insert(port_number(object, "/spec/healthCheckNodePort"));
        held.ports.remove(&0);
    }
    if service_type(object) != "ExternalName" {
        held.addresses = list_at(object, "/spec/clusterIPs")
            .iter()
            .filter_map(|address| address.as_str()?.parse().ok())
            .collect();
    }
    held
}

/// The number of families that a request names; others are derived.
pub(super) fn named_families(object: &Value) -> usize {
    list_at(object, "/spec/ipFamilies").len()
}

/// Allocates addresses and ports for a valid Service.
pub(super) fn complete(
    old: Option<&Value>,
    object: &mut Value,
    named: usize,
    allocators: &mut Allocators,
    causes: &mut Causes,
) {
    if causes.are_none() {
        causes.note(check_families(object, named, allocators.is_dual_stack()));
    }
    if causes.are_none() {
        causes.note(allocate(old, object, allocators));
    }
}

/// A cluster with one family refuses Services that ask for the other one, with kube-apiserver's message.
fn check_families(object: &Value, named: usize, dual_stack: bool) -> Result<(), Invalid> {
    if dual_stack || service_type(object) == "ExternalName" || is_headless_without_selector(object) {
        return Ok(());
    }
    let policy = text_at(object, "/spec/ipFamilyPolicy");
    if policy == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        return Err(Invalid::text("spec.ipFamilyPolicy", policy, why));
    }
    let other = list_at(object, "/spec/ipFamilies").iter().position(|family| family == "IPv6");
    let Some(index) = other else { return Ok(()) };
    if index < named {
        let why = "not configured on this cluster";
        return Err(Invalid::text(format!("spec.ipFamilies[{index}]"), "IPv6", why));
    }
    let address = list_at(object, "/spec/clusterIPs").get(index).and_then(Value::as_str).unwrap_or_default();
    let list = format!("[{address:?}]");
    Err(Invalid::value(format!("spec.clusterIPs[{index}]"), &list, "IPv6 is not configured on this cluster"))
}

/// Allocates the requested addresses and ports, all of them or none.
fn allocate(old: Option<&Value>, object: &mut Value, allocators: &mut Allocators) -> Result<(), Invalid> {
    let before = old.map(allocations_of).unwrap_or_default();
    let requested = allocations_of(object);

    for address in requested.addresses.difference(&before.addresses) {
        let list = format!("[{:?}]", address.to_string());
        let why = if !in_range(*address) {
            let range = range_text(address.is_ipv6());
            format!("provided IP is not in the valid range. The range of valid IPs is {range}")
        } else if allocators.holds_address(*address) {
            "provided IP is already allocated".to_owned()
        } else {
            continue;
        };
        return Err(Invalid::value(
            "spec.clusterIPs",
            &list,
            &format!("failed to allocate IP {address}: {why}"),
        ));
    }
    let health_check = port_number(object, "/spec/healthCheckNodePort");
    let ports = list_at(object, "/spec/ports")
        .iter()
        .enumerate()
        .map(|(index, port)| (format!("spec.ports[{index}].nodePort"), port_number(port, "/nodePort")));
    for (field, port) in ports.chain([("spec.healthCheckNodePort".to_owned(), health_check)]) {
        if port == 0 || !has_node_ports(object) {
            continue;
        }
        if !NODE_PORTS.contains(&port) {
            let (first, last) = (NODE_PORTS.start(), NODE_PORTS.end());
            let why = format!(
                "provided port is not in the valid range. The range of valid ports is {first}-{last}"
            );
            return Err(Invalid::value(field, port, &why));
        }
        if allocators.holds_node_port(port) && !before.ports.contains(&port) {
            return Err(Invalid::value(field, port, "provided port is already allocated"));
        }
    }

    let mut taken = requested.ports.clone();
    let wants_ports = has_node_ports(object)
        && (service_type(object) == "NodePort"
            || object.pointer("/spec/allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)));
    let wants_health_check = has_health_check(object) && health_check == 0;
    let wants_addresses = service_type(object) != "ExternalName" && !is_headless(object);
    let Some(spec) = spec(object) else { return Ok(()) };
    let exhausted = || Invalid::new("spec.ports", "failed to allocate a nodePort: range is full");
    if wants_ports && let Some(Value::Array(ports)) = spec.get_mut("ports") {
        // One node port serves TCP and UDP of the same port.
        let mut by_port: Vec<(u16, String, u16)> = vec![];
        for port in ports.iter_mut() {
            let (service_port, protocol) =
                (port_number(port, "/port"), text_at(port, "/protocol").to_owned());
            let mut node_port = port_number(port, "/nodePort");
            if node_port == 0 {
                let shared = by_port.iter().find(|(other, theirs, _)| {
                    *other == service_port
                        && *theirs != protocol
                        && !by_port.iter().any(|(same, ours, _)| same == other && *ours == protocol)
                });
                node_port = match shared {
                    Some((_, _, shared)) => *shared,
                    None => allocators.free_node_port(&taken).ok_or_else(exhausted)?,
                };
                taken.insert(node_port);
                if let Value::Object(port) = port {
                    port.insert("nodePort".into(), json!(node_port));
                }
            }
            by_port.push((service_port, protocol, node_port));
        }
    }
    if wants_health_check {
        let port = allocators.free_node_port(&taken).ok_or_else(exhausted)?;
        spec.insert("healthCheckNodePort".into(), json!(port));
    }
    if wants_addresses {
        let mut addresses: Vec<Value> =
            spec.get("clusterIPs").and_then(Value::as_array).cloned().unwrap_or_default();
        let families: Vec<Value> =
            spec.get("ipFamilies").and_then(Value::as_array).cloned().unwrap_or_default();
        for family in families.iter().skip(addresses.len()) {
            let free = allocators.free_address(family == "IPv6").ok_or_else(|| {
                Invalid::new("spec.clusterIPs", "failed to allocate a clusterIP: range is full")
            })?;
            addresses.push(json!(free));
        }
        if let Some(first) = addresses.first() {
            spec.insert("clusterIP".into(), first.clone());
        }
        spec.insert("clusterIPs".into(), Value::Array(addresses));
    }
    Ok(())
}
