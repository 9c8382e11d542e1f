//! Inbound NAT rules: ports of a frontend that lead to one network interface, or a range of ports that
//! leads to the members of a pool, one port each (Azure Load Balancer, "Inbound NAT rules").

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::{
    balancer::Balancer,
    pool_members::{member_keys, members},
    rule::{MAX_IDLE_MINUTES, number, require_frontend},
};
use crate::network::shared::checks::bounded;
use azure_engine::document::{
    Object, enumeration, fill, items, known_members, name, reference, stored_reference, strip,
    take_properties, text,
};
use azure_engine::error::{Code, Refusal};
use azure_engine::provider::{AzureState, Record};
use azure_engine::reference::is_of;

const TOO_FEW_PORTS: Code = Code::ours(400, "InboundNatRuleFrontendPortRangeTooSmall");
const WRONG_PORTS: Code = Code::ours(400, "InvalidInboundNatRule");

const MEMBERS: [&str; 12] = [
    "backendAddressPool",
    "backendIPConfiguration",
    "backendPort",
    "enableFloatingIP",
    "enableTcpReset",
    "frontendIPConfiguration",
    "frontendPort",
    "frontendPortRangeEnd",
    "frontendPortRangeStart",
    "idleTimeoutInMinutes",
    "protocol",
    "provisioningState",
];

/// Where a record remembers which member of a pool has which port.
const PORTS: &str = "inboundNatRulePorts";

/// Checks an inbound NAT rule.
pub(crate) fn normalise(balancer: &Balancer<'_>, mut child: Object) -> Result<Value, Refusal> {
    let mut properties = take_properties(&mut child);
    known_members(&mut properties, &MEMBERS, "InboundNatRule")?;
    strip(&mut properties, &["provisioningState", "backendIPConfiguration"]);
    let id = balancer.child("inboundNatRules", &child);
    enumeration(&mut properties, "protocol", &["Tcp", "Udp", "All"], true)?;
    bounded(&mut properties, "idleTimeoutInMinutes", 4..=MAX_IDLE_MINUTES, Some(4), &id)?;
    fill(&mut properties, "enableFloatingIP", false);
    fill(&mut properties, "enableTcpReset", false);
    require_frontend(&mut properties, &id)?;
    bounded(&mut properties, "backendPort", 1..=65_535, Some(0), &id)?;
    match reference(&mut properties, "backendAddressPool")? {
        None => {
            strip_zero(&mut properties, &["frontendPortRangeStart", "frontendPortRangeEnd"]);
            if properties.contains_key("frontendPortRangeStart")
                || properties.contains_key("frontendPortRangeEnd")
            {
                return Err(refused(&id, "has a range of frontend ports, which needs a backendAddressPool"));
            }
            bounded(&mut properties, "frontendPort", 1..=65_534, Some(0), &id)?;
        }
        Some(pool) => {
            strip_zero(&mut properties, &["frontendPort"]);
            if properties.contains_key("frontendPort") {
                return Err(refused(&id, "has a backendAddressPool, which needs a range of frontend ports"));
            }
            bounded(&mut properties, "frontendPortRangeStart", 1..=65_534, Some(0), &id)?;
            bounded(&mut properties, "frontendPortRangeEnd", 1..=65_534, Some(0), &id)?;
            let port = |member: &str| properties.get(member).and_then(Value::as_i64).unwrap_or_default();
            let size = port("frontendPortRangeEnd") - port("frontendPortRangeStart") + 1;
            if size < 1 {
                return Err(refused(&id, "has a range of frontend ports that ends before it starts"));
            }
            let members = members(balancer.azure, &pool).count();
            TOO_FEW_PORTS.details_when(i64::try_from(members).is_ok_and(|members| members > size), format_args!(
                        "The frontend port range of inbound NAT rule {id} has {size} ports, but backend address pool \
                         {pool} has {members} members."
                    ))?;
        }
    }
    child.insert("properties".into(), Value::Object(properties));
    Ok(Value::Object(child))
}

/// Drops members that say 0, which means that they are not meant.
fn strip_zero(properties: &mut Object, members: &[&str]) {
    for member in members {
        if properties.get(*member).is_some_and(|value| value == &json!(0)) {
            properties.remove(*member);
        }
    }
}

fn refused(id: &ResourceId, why: &str) -> Refusal {
    WRONG_PORTS.details(format_args!("Inbound NAT rule {id} {why}."))
}

/// Shows which network interface a rule leads to.
pub(crate) fn present(azure: &AzureState, id: &ResourceId, properties: &mut Object) {
    let user = azure.store.referrers(id).find(|referrer| is_of(&referrer.from, "/ipconfigurations/"));
    if let Some(user) = user {
        properties.insert("backendIPConfiguration".into(), json!({ "id": user.from }));
    }
}

/// The rules that lead to a pool.
fn of_pool<'a>(record: &'a Record, pool: &'a ResourceId) -> impl Iterator<Item = &'a Value> {
    items(&record.body, "properties/inboundNatRules")
        .iter()
        .filter(move |rule| stored_reference(rule, "properties/backendAddressPool/id").as_ref() == Some(pool))
}

/// Gives every member of a pool its port of every rule; who has one keeps it.
pub(crate) fn assign_ports(azure: &mut AzureState, balancer: &ResourceId) {
    let Some(record) = azure.store.get(balancer) else { return };
    let mut assigned = Object::new();
    for rule in items(&record.body, "properties/inboundNatRules") {
        let Some(pool) = stored_reference(rule, "properties/backendAddressPool/id") else { continue };
        let range = number(rule, "frontendPortRangeStart")..=number(rule, "frontendPortRangeEnd");
        let key = name(rule).to_ascii_lowercase();
        let members = member_keys(azure, record, &pool);
        let before = record.hidden.get(PORTS).and_then(|ports| ports.get(&key));
        let mut ports: BTreeMap<&String, i64> = members
            .iter()
            .filter_map(|member| Some((member, before?.get(member)?.as_i64()?)))
            .filter(|(_, port)| range.contains(port))
            .collect();
        let taken: BTreeSet<i64> = ports.values().copied().collect();
        let mut free = range.filter(|port| !taken.contains(port));
        for member in &members {
            if !ports.contains_key(member)
                && let Some(port) = free.next()
            {
                ports.insert(member, port);
            }
        }
        let ports: Object = ports.into_iter().map(|(member, port)| (member.clone(), port.into())).collect();
        assigned.insert(key, Value::Object(ports));
    }
    if let Some(record) = azure.store.get_mut(balancer) {
        if assigned.is_empty() {
            record.hidden.remove(PORTS);
        } else {
            record.hidden.insert(PORTS.into(), Value::Object(assigned));
        }
    }
}

/// The ports that lead to a member of a pool, as a port mapping query answers them.
pub(crate) fn mappings(record: &Record, pool: &ResourceId, member: &str) -> Vec<Value> {
    of_pool(record, pool)
        .filter_map(|rule| {
            let port = record.hidden.get(PORTS)?.get(name(rule).to_ascii_lowercase())?.get(member)?;
            Some(json!({
                "inboundNatRuleName": name(rule),
                "protocol": text(rule, "properties/protocol"),
                "frontendPort": port,
                "backendPort": number(rule, "backendPort"),
            }))
        })
        .collect()
}
