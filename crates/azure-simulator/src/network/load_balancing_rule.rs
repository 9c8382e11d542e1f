//! Load-balancing rules, inbound NAT rules and pools, outbound rules (`spec/arm-wire.md`, 9.1).

use std::collections::HashMap;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::bounded;
use crate::engine::document::{
    Object, at, enumeration, fill, items, known_members, name, reference, references, stored_reference,
    strip, take_properties, text,
};
use crate::engine::error::Refusal;
use crate::engine::kind::Reference;

/// Longest idle timeout in minutes.
const LONGEST_IDLE: i64 = 100;

const RULE_MEMBERS: [&str; 15] = [
    "backendAddressPool",
    "backendAddressPools",
    "backendPort",
    "disableOutboundSnat",
    "enableConnectionTracking",
    "enableFloatingIP",
    "enableTcpReset",
    "frontendIPConfiguration",
    "frontendPort",
    "idleTimeoutInMinutes",
    "loadDistribution",
    "probe",
    "protocol",
    "provisioningState",
    "zones",
];

/// Checks a load-balancing rule by itself and fills its defaults.
pub(super) fn normalise(balancer: &ResourceId, mut child: Object) -> Result<Value, Refusal> {
    let mut properties = take_properties(&mut child);
    known_members(&mut properties, &RULE_MEMBERS, "LoadBalancingRule")?;
    strip(&mut properties, &["provisioningState", "zones"]);
    let id =
        balancer.child("loadBalancingRules", child.get("name").and_then(Value::as_str).unwrap_or_default());
    enumeration(&mut properties, "protocol", &["Tcp", "Udp", "All"], false)?;
    let all = properties.get("protocol") == Some(&json!("All"));
    if properties.get("protocol").is_none() {
        return Err(Refusal::bad_format(format!("Required property 'protocol' not found in {id}.")));
    }
    let (lowest, highest) = if all { (0, 0) } else { (1, 65_534) };
    bounded(&mut properties, "frontendPort", lowest..=highest, Some(0), &id)?;
    bounded(&mut properties, "backendPort", lowest..=if all { 0 } else { 65_535 }, Some(0), &id)?;
    bounded(&mut properties, "idleTimeoutInMinutes", 4..=LONGEST_IDLE, Some(4), &id)?;
    enumeration(&mut properties, "loadDistribution", &["Default", "SourceIP", "SourceIPProtocol"], true)?;
    for member in ["enableFloatingIP", "enableTcpReset", "disableOutboundSnat"] {
        fill(&mut properties, member, false);
    }
    require_frontend(&mut properties, &id)?;
    reference(&mut properties, "probe")?;
    let many = references(&mut properties, "backendAddressPools")?;
    // The single reference is what clients write; the list mirrors it.
    match reference(&mut properties, "backendAddressPool")?.or_else(|| many.into_iter().next()) {
        Some(pool) => {
            properties.insert("backendAddressPool".into(), json!({ "id": pool }));
            properties.insert("backendAddressPools".into(), json!([{ "id": pool }]));
        }
        None => strip(&mut properties, &["backendAddressPool", "backendAddressPools"]),
    }
    child.insert("properties".into(), Value::Object(properties));
    Ok(Value::Object(child))
}

fn require_frontend(properties: &mut Object, id: &ResourceId) -> Result<(), Refusal> {
    match reference(properties, "frontendIPConfiguration")? {
        Some(_) => Ok(()),
        None => Err(Refusal::network(
            400,
            "FrontendIPConfigurationRequired",
            format!("{id} must reference a frontendIPConfiguration."),
        )),
    }
}

/// Checks an inbound NAT rule.
pub(super) fn normalise_nat_rule(balancer: &ResourceId, mut child: Object) -> Result<Value, Refusal> {
    let mut properties = take_properties(&mut child);
    strip(&mut properties, &["provisioningState", "backendIPConfiguration"]);
    let id = balancer.child("inboundNatRules", child.get("name").and_then(Value::as_str).unwrap_or_default());
    enumeration(&mut properties, "protocol", &["Tcp", "Udp", "All"], true)?;
    bounded(&mut properties, "frontendPort", 0..=65_534, None, &id)?;
    bounded(&mut properties, "frontendPortRangeStart", 0..=65_534, None, &id)?;
    bounded(&mut properties, "frontendPortRangeEnd", 0..=65_534, None, &id)?;
    bounded(&mut properties, "backendPort", 1..=65_535, None, &id)?;
    bounded(&mut properties, "idleTimeoutInMinutes", 4..=LONGEST_IDLE, Some(4), &id)?;
    fill(&mut properties, "enableFloatingIP", false);
    fill(&mut properties, "enableTcpReset", false);
    require_frontend(&mut properties, &id)?;
    reference(&mut properties, "backendAddressPool")?;
    child.insert("properties".into(), Value::Object(properties));
    Ok(Value::Object(child))
}

/// Checks an inbound NAT pool.
pub(super) fn normalise_nat_pool(balancer: &ResourceId, mut child: Object) -> Result<Value, Refusal> {
    let mut properties = take_properties(&mut child);
    strip(&mut properties, &["provisioningState"]);
    let id = balancer.child("inboundNatPools", child.get("name").and_then(Value::as_str).unwrap_or_default());
    enumeration(&mut properties, "protocol", &["Tcp", "Udp", "All"], true)?;
    bounded(&mut properties, "frontendPortRangeStart", 1..=65_534, Some(0), &id)?;
    bounded(&mut properties, "frontendPortRangeEnd", 1..=65_535, Some(0), &id)?;
    bounded(&mut properties, "backendPort", 1..=65_535, Some(0), &id)?;
    bounded(&mut properties, "idleTimeoutInMinutes", 4..=LONGEST_IDLE, Some(4), &id)?;
    fill(&mut properties, "enableFloatingIP", false);
    fill(&mut properties, "enableTcpReset", false);
    require_frontend(&mut properties, &id)?;
    child.insert("properties".into(), Value::Object(properties));
    Ok(Value::Object(child))
}

/// Checks an outbound rule.
pub(super) fn normalise_outbound(balancer: &ResourceId, mut child: Object) -> Result<Value, Refusal> {
    let mut properties = take_properties(&mut child);
    strip(&mut properties, &["provisioningState"]);
    let id = balancer.child("outboundRules", child.get("name").and_then(Value::as_str).unwrap_or_default());
    enumeration(&mut properties, "protocol", &["All", "Tcp", "Udp"], true)?;
    bounded(&mut properties, "allocatedOutboundPorts", 0..=64_000, Some(1_024), &id)?;
    bounded(&mut properties, "idleTimeoutInMinutes", 4..=LONGEST_IDLE, Some(4), &id)?;
    fill(&mut properties, "enableTcpReset", false);
    let frontends = references(&mut properties, "frontendIPConfigurations")?;
    let pool = reference(&mut properties, "backendAddressPool")?;
    if frontends.is_empty() || pool.is_none() {
        return Err(Refusal::network(
            400,
            "OutboundRuleIncomplete",
            format!("{id} must reference frontendIPConfigurations and a backendAddressPool."),
        ));
    }
    child.insert("properties".into(), Value::Object(properties));
    Ok(Value::Object(child))
}

/// What a stored rule of any kind points at.
pub(super) fn rule_references(id: &ResourceId, rule: &Value) -> Vec<Reference> {
    let single = ["frontendIPConfiguration", "backendAddressPool", "probe"]
        .iter()
        .filter_map(|member| stored_reference(rule, &format!("properties/{member}/id")));
    let many = items(rule, "properties/frontendIPConfigurations")
        .iter()
        .filter_map(|item| stored_reference(item, "id"));
    single.chain(many).map(|to| Reference::uses(id, to)).collect()
}

/// Checks the rules of one load balancer against each other.
pub(super) fn check_conflicts(balancer: &ResourceId, sku: &str, document: &Object) -> Result<(), Refusal> {
    let properties = Value::Object(document.clone());
    let rules = items(&properties, "loadBalancingRules");
    let id = |rule: &Value| balancer.child("loadBalancingRules", name(rule));
    let frontend = |rule: &Value| {
        text(rule, "properties/frontendIPConfiguration/id").unwrap_or_default().to_ascii_lowercase()
    };
    let number = |rule: &Value, member: &str| at(rule, member).and_then(Value::as_i64).unwrap_or_default();
    let protocol = |rule: &Value| text(rule, "properties/protocol").unwrap_or_default().to_owned();
    let same_frontend = |a: &ResourceId, b: &ResourceId| {
        Refusal::network(
            400,
            "RulesUseSameFrontendPortProtocolAndIPConfig",
            format!(
                "Load balancing rules {a} and {b} use the same frontend port, protocol and frontend IP configuration."
            ),
        )
    };

    let mut by_frontend: HashMap<(String, String, i64), ResourceId> = HashMap::new();
    let mut whole: HashMap<String, ResourceId> = HashMap::new();
    let mut any: HashMap<String, ResourceId> = HashMap::new();
    let mut by_backend: HashMap<(String, String, i64), ResourceId> = HashMap::new();
    for rule in rules {
        let (me, where_from, what) = (id(rule), frontend(rule), protocol(rule));
        if what == "All" {
            check_high_availability(
                balancer,
                sku,
                &me,
                &where_from,
                items(&properties, "frontendIPConfigurations"),
            )?;
            if let Some(other) = any.get(&where_from) {
                return Err(same_frontend(other, &me));
            }
            whole.insert(where_from.clone(), me.clone());
        } else if let Some(other) = whole.get(&where_from) {
            return Err(same_frontend(other, &me));
        }
        any.entry(where_from.clone()).or_insert_with(|| me.clone());
        let key = (where_from, what.clone(), number(rule, "properties/frontendPort"));
        if let Some(other) = by_frontend.insert(key, me.clone()) {
            return Err(same_frontend(&other, &me));
        }
        let floating = at(rule, "properties/enableFloatingIP").and_then(Value::as_bool).unwrap_or_default();
        let Some(pool) = text(rule, "properties/backendAddressPool/id").filter(|_| !floating) else {
            continue;
        };
        let port = number(rule, "properties/backendPort");
        if let Some(other) = by_backend.insert((pool.to_ascii_lowercase(), what.clone(), port), me.clone()) {
            return Err(Refusal::network(
                400,
                "RulesUseSameBackendPortProtocolAndPool",
                format!(
                    "Load balancing rules {other} and {me} with floating IP disabled use the same protocol {what} and \
                     backend port {port}, and must not be used with the same backend address pool {pool}."
                ),
            ));
        }
    }
    for rule in items(&properties, "inboundNatRules") {
        let port = number(rule, "properties/frontendPort");
        let me = balancer.child("inboundNatRules", name(rule));
        if port == 0 {
            continue;
        }
        if let Some(other) = by_frontend.insert((frontend(rule), protocol(rule), port), me.clone()) {
            return Err(same_frontend(&other, &me));
        }
    }
    Ok(())
}

/// A rule for all ports and protocols needs an internal frontend of a standard balancer.
fn check_high_availability(
    balancer: &ResourceId,
    sku: &str,
    rule: &ResourceId,
    frontend: &str,
    frontends: &[Value],
) -> Result<(), Refusal> {
    let internal = frontends.iter().any(|candidate| {
        balancer.child("frontendIPConfigurations", name(candidate)).to_lower() == frontend
            && at(candidate, "properties/subnet").is_some()
    });
    if sku != "Basic" && (internal || sku == "Gateway") {
        return Ok(());
    }
    Err(Refusal::network(
        400,
        "LoadBalancingRuleWithAllProtocolNotSupported",
        format!(
            "Rule {rule} with protocol All needs an internal frontend of a load balancer with sku Standard."
        ),
    ))
}
