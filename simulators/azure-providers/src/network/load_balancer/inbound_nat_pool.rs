//! Inbound NAT pools: ranges of frontend ports for the instances of scale sets. The service makes an
//! inbound NAT rule for each instance.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::{
    balancer::Balancer,
    rule::{FLOATING_IP, FRONTEND, IDLE_TIMEOUT, STATE, TCP_RESET, number, require_frontend},
};
use azure_engine::document::{Object, at, items, name, strip};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Result};
use azure_engine::store::reference::{Role, is_of};
use azure_engine::types::member_table::Holds::{Number, Word};
use azure_engine::types::member_table::Member;

pub(super) static MEMBERS: [Member; 9] = [
    Member::new("backendPort", Number(1, 65_535)).or(0),
    FLOATING_IP,
    TCP_RESET,
    FRONTEND,
    Member::new("frontendPortRangeEnd", Number(1, 65_535)).or(0),
    Member::new("frontendPortRangeStart", Number(1, 65_534)).or(0),
    IDLE_TIMEOUT,
    Member::new("protocol", Word(&["Tcp", "Udp", "All"], true)),
    STATE,
];

/// Checks an inbound NAT pool.
pub(super) fn check(balancer: &Balancer<'_>, id: &ResourceId, properties: &mut Object) -> Result<()> {
    require_frontend(properties, id)?;
    let port = |member: &str| properties.get(member).and_then(Value::as_i64).unwrap_or_default();
    let size = port("frontendPortRangeEnd") - port("frontendPortRangeStart") + 1;
    let instances = instances(balancer.azure, id).len();
    Code::ours(400, "InboundNatPoolFrontendPortRangeTooSmall").details_when(
        size < 1 || i64::try_from(instances).is_ok_and(|instances| instances > size),
        format_args!(
            "The frontend port range of inbound NAT pool {id} has {} ports, but {instances} instances use it.",
            size.max(0)
        ),
    )
}

/// The IP configurations of instances that use a NAT pool, and their instance numbers.
fn instances(azure: &AzureState, pool: &ResourceId) -> Vec<(ResourceId, String)> {
    azure
        .store
        .referrers(pool)
        .filter(|referrer| referrer.role == Role::Uses && is_of(&referrer.from, "/ipconfigurations/"))
        .filter_map(|referrer| {
            let instance = referrer.from.parent()?.parent()?;
            Some((referrer.from.clone(), instance.name().to_owned()))
        })
        .collect()
}

/// Whether a stored rule was made for an instance: clients cannot write its backend.
pub(crate) fn is_generated(rule: &Value) -> bool {
    at(rule, "properties/backendIPConfiguration").is_some()
}

/// Whether a rule that a client sent is one that the service generated for a pool of the same document.
fn names_generated(rule: &str, pools: &[String]) -> bool {
    rule.rsplit_once('.').is_some_and(|(pool, instance)| {
        pools.iter().any(|known| known.eq_ignore_ascii_case(pool))
            && !instance.is_empty()
            && instance.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Generates the rules of all instances, and drops those of deleted instances. A rule that stays keeps its port.
pub(crate) fn generate_rules(azure: &mut AzureState, balancer: &ResourceId) {
    let Some(record) = azure.store.get(balancer) else { return };
    let rules = items(&record.body, "properties/inboundNatRules");
    let pools = items(&record.body, "properties/inboundNatPools");
    if pools.is_empty() && !rules.iter().any(is_generated) {
        return;
    }
    let mut wanted: Vec<Value> = rules.iter().filter(|rule| !is_generated(rule)).cloned().collect();
    for pool in pools {
        let id = record.id.child("inboundNatPools", name(pool));
        let range = number(pool, "frontendPortRangeStart")..=number(pool, "frontendPortRangeEnd");
        let instances: Vec<(ResourceId, String)> = instances(azure, &id)
            .into_iter()
            .map(|(configuration, instance)| (configuration, format!("{}.{instance}", name(pool))))
            .collect();
        let port_of = |rule: &str| {
            rules
                .iter()
                .filter(|old| is_generated(old))
                .find(|old| name(old).eq_ignore_ascii_case(rule))
                .map(|old| number(old, "frontendPort"))
                .filter(|port| range.contains(port))
        };
        let taken: BTreeSet<i64> = instances.iter().filter_map(|(_, rule)| port_of(rule)).collect();
        let mut free = range.clone().filter(|port| !taken.contains(port));
        for (configuration, rule) in instances {
            let Some(port) = port_of(&rule).or_else(|| free.next()) else { continue };
            let mut properties =
                at(pool, "properties").and_then(Value::as_object).cloned().unwrap_or_default();
            strip(&mut properties, &["frontendPortRangeStart", "frontendPortRangeEnd"]);
            properties.insert("frontendPort".into(), port.into());
            properties.insert("backendIPConfiguration".into(), json!({ "id": configuration }));
            wanted.push(json!({ "name": rule, "properties": properties }));
        }
    }
    if wanted.as_slice() == rules {
        return;
    }
    if let Some(properties) =
        azure.store.get_mut(balancer).and_then(|record| record.body.get_mut("properties")?.as_object_mut())
    {
        properties.insert("inboundNatRules".into(), wanted.into());
    }
    azure.changed(balancer);
}

/// Restores the stored rules of instances in a client's document: the service owns them, and they stay as long as their
/// pool does.
pub(super) fn keep_generated(old: Option<&Record>, properties: &mut Object) {
    let pools = properties.get("inboundNatPools").and_then(Value::as_array).into_iter().flatten();
    let pools: Vec<String> = pools.map(|pool| name(pool).to_owned()).collect();
    let Some(rules) = properties.get_mut("inboundNatRules").and_then(Value::as_array_mut) else { return };
    rules.retain(|rule| !names_generated(name(rule), &pools));
    let old = old.map_or(&[][..], |old| items(&old.body, "properties/inboundNatRules")).iter();
    rules.extend(old.filter(|rule| is_generated(rule) && names_generated(name(rule), &pools)).cloned());
}
