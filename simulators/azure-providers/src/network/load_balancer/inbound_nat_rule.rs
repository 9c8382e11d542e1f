//! Inbound NAT rules: ports of a frontend that lead to one network interface, or a range of ports that
//! leads to the members of a pool, one port each (Azure Load Balancer, "Inbound NAT rules").

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::{
    balancer::Balancer,
    pool_members::{member_keys, members},
    rule::{
        FLOATING_IP, FRONTEND, IDLE_TIMEOUT, POOL, STATE, TCP_RESET, check_port, number, require_frontend,
    },
};
use azure_engine::document::{Object, items, name, stored_reference, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Result};
use azure_engine::types::member_table::Holds::{Number, User, Word};
use azure_engine::types::member_table::Member;

pub(super) static MEMBERS: [Member; 12] = [
    POOL,
    Member::new("backendIPConfiguration", User("ipConfigurations")),
    Member::new("backendPort", Number(1, 65_535)).or(0),
    FLOATING_IP,
    TCP_RESET,
    FRONTEND,
    Member::new("frontendPort", Number(0, 65_534)),
    Member::new("frontendPortRangeEnd", Number(0, 65_534)),
    Member::new("frontendPortRangeStart", Number(0, 65_534)),
    IDLE_TIMEOUT,
    Member::new("protocol", Word(&["Tcp", "Udp", "All"], true)),
    STATE,
];

/// The hidden member with the port of each member of a pool.
const PORTS: &str = "inboundNatRulePorts";

/// Checks an inbound NAT rule.
pub(super) fn check(balancer: &Balancer<'_>, id: &ResourceId, properties: &mut Object) -> Result<()> {
    // A generated rule was checked with its pool.
    if properties.contains_key("backendIPConfiguration") {
        return Ok(());
    }
    require_frontend(properties, id)?;
    let refuse_when = |wrong: bool, why: &str| {
        Code::ours(400, "InvalidInboundNatRule")
            .details_when(wrong, format_args!("Inbound NAT rule {id} {why}."))
    };
    // Port 0 counts as absent.
    for member in ["frontendPort", "frontendPortRangeStart", "frontendPortRangeEnd"] {
        if properties.get(member) == Some(&json!(0)) {
            properties.remove(member);
        }
    }
    let has = |member: &str| properties.contains_key(member);
    let Some(pool) = properties.get("backendAddressPool").and_then(|pool| stored_reference(pool, "id"))
    else {
        let range = has("frontendPortRangeStart") || has("frontendPortRangeEnd");
        refuse_when(range, "has a range of frontend ports, which needs a backendAddressPool")?;
        return check_port(properties, "frontendPort", (1, 65_534), id);
    };
    refuse_when(has("frontendPort"), "has a backendAddressPool, which needs a range of frontend ports")?;
    for member in ["frontendPortRangeStart", "frontendPortRangeEnd"] {
        check_port(properties, member, (1, 65_534), id)?;
    }
    let port = |member: &str| properties.get(member).and_then(Value::as_i64).unwrap_or_default();
    let size = port("frontendPortRangeEnd") - port("frontendPortRangeStart") + 1;
    refuse_when(size < 1, "has a range of frontend ports that ends before it starts")?;
    let members = members(balancer.azure, &pool).count();
    Code::ours(400, "InboundNatRuleFrontendPortRangeTooSmall").details_when(
        i64::try_from(members).is_ok_and(|members| members > size),
        format_args!(
            "The frontend port range of inbound NAT rule {id} has {size} ports, but backend address pool {pool} has \
             {members} members."
        ),
    )
}

/// The rules that lead to a pool.
fn of_pool<'a>(record: &'a Record, pool: &'a ResourceId) -> impl Iterator<Item = &'a Value> {
    items(&record.body, "properties/inboundNatRules")
        .iter()
        .filter(move |rule| stored_reference(rule, "properties/backendAddressPool/id").as_ref() == Some(pool))
}

/// Gives every member of a pool its port of every rule; a member that has one keeps it.
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
