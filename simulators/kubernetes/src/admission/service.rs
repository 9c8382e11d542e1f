//! Services: defaults, changes of type, cluster addresses and node ports.

mod validation;

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Map, Value, json};

pub(super) use validation::port_name;

use super::allocators::{Allocators, NODE_PORTS, in_range, range_text};
use super::{Causes, Invalid, list_at, text_at};

pub(super) fn on_create(object: &mut Value, allocators: &mut Allocators, causes: &mut Causes) {
    let named = named_families(object);
    default(object, allocators.is_dual_stack());
    validation::validate(object, causes);
    complete(None, object, named, allocators, causes);
}

pub(super) fn on_update(old: &Value, object: &mut Value, allocators: &mut Allocators, causes: &mut Causes) {
    keep_allocated(old, object);
    drop_what_the_type_does_not_use(old, object);
    let named = named_families(object);
    default(object, allocators.is_dual_stack());
    validation::validate(object, causes);
    causes.note(validation::validate_update(old, object));
    complete(Some(old), object, named, allocators, causes);
}

/// Allocates addresses and ports for a valid Service.
fn complete(
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

pub(super) fn on_delete(object: &Value, allocators: &mut Allocators) {
    let held = Held::of(object);
    held.ports.into_iter().for_each(|port| allocators.release_node_port(port));
    held.addresses.into_iter().for_each(|address| allocators.release_address(address));
}

fn service_type(object: &Value) -> &str {
    match text_at(object, "/spec/type") {
        "" => "ClusterIP",
        other => other,
    }
}

fn has_node_ports(object: &Value) -> bool {
    matches!(service_type(object), "NodePort" | "LoadBalancer")
}

fn is_headless(object: &Value) -> bool {
    text_at(object, "/spec/clusterIP") == "None"
}

/// Only a load balancer that must find the nodes with local endpoints has a health check node port.
fn has_health_check(object: &Value) -> bool {
    service_type(object) == "LoadBalancer" && text_at(object, "/spec/externalTrafficPolicy") == "Local"
}

fn number(object: &Value, pointer: &str) -> u16 {
    object.pointer(pointer).and_then(Value::as_u64).and_then(|port| port.try_into().ok()).unwrap_or(0)
}

fn spec(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let Value::Object(object) = object else { return None };
    object.entry("spec").or_insert_with(|| json!({})).as_object_mut()
}

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

fn default(object: &mut Value, dual_stack: bool) {
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

fn is_headless_without_selector(object: &Value) -> bool {
    let selector = object.pointer("/spec/selector").and_then(Value::as_object);
    is_headless(object) && selector.is_none_or(Map::is_empty)
}

/// The number of families that a request names; others are derived.
fn named_families(object: &Value) -> usize {
    list_at(object, "/spec/ipFamilies").len()
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
fn keep_allocated(old: &Value, object: &mut Value) {
    let (before, after) = (service_type(old), service_type(object).to_owned());
    let keep_address = before != "ExternalName" && after != "ExternalName";
    let keep_ports = has_node_ports(old) && has_node_ports(object);
    let keep_health_check = has_health_check(old) && has_health_check(object);
    let mut taken: BTreeSet<u16> =
        list_at(object, "/spec/ports").iter().map(|port| number(port, "/nodePort")).collect();
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
            let node_port = same.map_or(0, |same| number(same, "/nodePort"));
            if node_port != 0 && taken.insert(node_port) {
                port.insert("nodePort".into(), json!(node_port));
            }
        }
    }
    if keep_health_check && unset(spec.get("healthCheckNodePort")) {
        let port = number(old, "/spec/healthCheckNodePort");
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
fn drop_what_the_type_does_not_use(old: &Value, object: &mut Value) {
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
                list_at(old, "/spec/ports").iter().map(|port| number(port, "/nodePort")).collect();
            for port in ports.iter_mut() {
                if known.contains(&number(port, "/nodePort"))
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

/// The addresses and ports of a Service.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Held {
    ports: BTreeSet<u16>,
    addresses: BTreeSet<IpAddr>,
}

impl Held {
    fn of(object: &Value) -> Held {
        let mut held = Held::default();
        if has_node_ports(object) {
            held.ports =
                list_at(object, "/spec/ports").iter().map(|port| number(port, "/nodePort")).collect();
            held.ports.insert(number(object, "/spec/healthCheckNodePort"));
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
}

/// Allocates the requested addresses and ports, all of them or none.
fn allocate(old: Option<&Value>, object: &mut Value, allocators: &mut Allocators) -> Result<(), Invalid> {
    let before = old.map(Held::of).unwrap_or_default();
    let requested = Held::of(object);

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
    let health_check = number(object, "/spec/healthCheckNodePort");
    let ports = list_at(object, "/spec/ports")
        .iter()
        .enumerate()
        .map(|(index, port)| (format!("spec.ports[{index}].nodePort"), number(port, "/nodePort")));
    for (field, port) in ports.chain([("spec.healthCheckNodePort".to_owned(), health_check)]) {
        if port == 0 || !has_node_ports(object) {
            continue;
        }
        if !NODE_PORTS.contains(&port) {
            let (first, last) = (NODE_PORTS.start(), NODE_PORTS.end());
            let why = format!(
                "provided port is not in the valid range. The range of valid ports is {first}-{last}"
            );
            return Err(Invalid::value(field, &port.to_string(), &why));
        }
        if allocators.holds_node_port(port) && !before.ports.contains(&port) {
            return Err(Invalid::value(field, &port.to_string(), "provided port is already allocated"));
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
            let (service_port, protocol) = (number(port, "/port"), text_at(port, "/protocol").to_owned());
            let mut node_port = number(port, "/nodePort");
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

    let after = Held::of(object);
    before.ports.difference(&after.ports).for_each(|port| allocators.release_node_port(*port));
    before.addresses.difference(&after.addresses).for_each(|address| allocators.release_address(*address));
    after.ports.iter().for_each(|port| allocators.take_node_port(*port));
    after.addresses.iter().for_each(|address| allocators.take_address(*address));
    Ok(())
}
