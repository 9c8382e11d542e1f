//! Load-balancing rules.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::balancer::Balancer;
use crate::network::shared::checks::bounded;
use azure_engine::document::{
    Object, at, enumeration, fill, items, known_members, reference, references, stored_reference, strip,
    take_properties,
};
use azure_engine::error::{Code, Refusal};
use azure_engine::reference::Reference;

const NOT_OF_BASIC: Code = Code::ours(400, "LoadBalancingRulePropertyNotSupportedForBasicSku");
const NO_FRONTEND: Code = Code::ours(400, "FrontendIPConfigurationRequired");
const TOO_MANY_POOLS: Code = Code::ours(400, "LoadBalancingRuleHasTooManyBackendAddressPools");

/// Longest idle timeout in minutes, as Azure documents for load balancers.
pub(crate) const MAX_IDLE_MINUTES: i64 = 100;

const MEMBERS: [&str; 15] = [
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
pub(crate) fn normalise(balancer: &Balancer<'_>, mut child: Object) -> Result<Value, Refusal> {
    let mut properties = take_properties(&mut child);
    known_members(&mut properties, &MEMBERS, "LoadBalancingRule")?;
    strip(&mut properties, &["provisioningState", "zones"]);
    let id = balancer.child("loadBalancingRules", &child);
    enumeration(&mut properties, "protocol", &["Tcp", "Udp", "All"], false)?;
    let all = properties.get("protocol") == Some(&json!("All"));
    if properties.get("protocol").is_none() {
        return Err(Refusal::bad_format(format!("Required property 'protocol' not found in {id}.")));
    }
    let (lowest, highest) = if all { (0, 0) } else { (1, 65_534) };
    bounded(&mut properties, "frontendPort", lowest..=highest, Some(0), &id)?;
    bounded(&mut properties, "backendPort", lowest..=if all { 0 } else { 65_535 }, Some(0), &id)?;
    bounded(&mut properties, "idleTimeoutInMinutes", 4..=MAX_IDLE_MINUTES, Some(4), &id)?;
    enumeration(&mut properties, "loadDistribution", &["Default", "SourceIP", "SourceIPProtocol"], true)?;
    for member in ["enableFloatingIP", "enableTcpReset", "disableOutboundSnat"] {
        fill(&mut properties, member, false);
    }
    if balancer.sku == "Basic" {
        let set = ["enableTcpReset", "disableOutboundSnat"].into_iter();
        if let Some(member) = set.into_iter().find(|member| properties.get(*member) == Some(&json!(true))) {
            return Err(NOT_OF_BASIC.details(format_args!(
                "{id} cannot set '{member}', which a load balancer with sku Basic does not have."
            )));
        }
    }
    require_frontend(&mut properties, &id)?;
    reference(&mut properties, "probe")?;
    pools(&id, &mut properties)?;
    child.insert("properties".into(), Value::Object(properties));
    Ok(Value::Object(child))
}

/// A rule spreads over one pool. The single reference is what clients write; the list mirrors it.
fn pools(id: &ResourceId, properties: &mut Object) -> Result<(), Refusal> {
    let many = references(properties, "backendAddressPools")?;
    TOO_MANY_POOLS.details_when(
        many.len() > 1,
        format_args!("{id} references {} backend address pools; at most 1 is allowed.", many.len()),
    )?;
    let pool = reference(properties, "backendAddressPool")?.or_else(|| many.into_iter().next());
    strip(properties, &["backendAddressPool", "backendAddressPools"]);
    if let Some(pool) = pool {
        properties.insert("backendAddressPool".into(), json!({ "id": pool }));
        properties.insert("backendAddressPools".into(), json!([{ "id": pool }]));
    }
    Ok(())
}

pub(crate) fn require_frontend(properties: &mut Object, id: &ResourceId) -> Result<(), Refusal> {
    match reference(properties, "frontendIPConfiguration")? {
        Some(_) => Ok(()),
        None => Err(NO_FRONTEND.details(format_args!("{id} must reference a frontendIPConfiguration."))),
    }
}

/// What a stored rule of any kind points at.
pub(crate) fn rule_references(id: &ResourceId, rule: &Value) -> Vec<Reference> {
    let single = ["frontendIPConfiguration", "backendAddressPool", "probe"]
        .iter()
        .filter_map(|member| stored_reference(rule, &format!("properties/{member}/id")));
    let many = ["frontendIPConfigurations", "backendAddressPools"]
        .iter()
        .flat_map(|member| items(rule, &format!("properties/{member}")))
        .filter_map(|item| stored_reference(item, "id"));
    let mut all: Vec<ResourceId> = single.chain(many).collect();
    all.sort();
    all.dedup();
    all.into_iter().map(|to| Reference::uses(id, to)).collect()
}

/// A whole number in a stored rule's properties.
pub(crate) fn number(rule: &Value, member: &str) -> i64 {
    at(rule, &format!("properties/{member}")).and_then(Value::as_i64).unwrap_or_default()
}
