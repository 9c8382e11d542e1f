//! Load-balancing rules.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::balancer::Balancer;
use azure_engine::document::{Object, at};
use azure_engine::refusal::{Code, Result};
use azure_engine::types::member_table::Holds::{Derived, Flag, Number, Uses, UsesAll, Word};
use azure_engine::types::member_table::Member;

pub(super) const FRONTENDS: &str = "loadBalancers/frontendIPConfigurations";
pub(super) const POOLS: &str = "loadBalancers/backendAddressPools";

/// A member of rules of all kinds; the longest timeout is as Azure documents for load balancers.
pub(super) const IDLE_TIMEOUT: Member = Member::new("idleTimeoutInMinutes", Number(4, 100)).or(4);
pub(super) const TCP_RESET: Member = Member::new("enableTcpReset", Flag).or_flag(false);
pub(super) const FLOATING_IP: Member = Member::new("enableFloatingIP", Flag).or_flag(false);
pub(super) const FRONTEND: Member = Member::new("frontendIPConfiguration", Uses(FRONTENDS));
pub(super) const POOL: Member = Member::new("backendAddressPool", Uses(POOLS));
pub(super) const STATE: Member = Member::new("provisioningState", Derived);

pub(super) static MEMBERS: [Member; 15] = [
    POOL,
    Member::new("backendAddressPools", UsesAll(POOLS)),
    Member::new("backendPort", Number(0, 65_535)).or(0),
    Member::new("disableOutboundSnat", Flag).or_flag(false),
    Member::new("enableConnectionTracking", Flag),
    FLOATING_IP,
    TCP_RESET,
    FRONTEND,
    Member::new("frontendPort", Number(0, 65_535)).or(0),
    IDLE_TIMEOUT,
    Member::new("loadDistribution", Word(&["Default", "SourceIP", "SourceIPProtocol"], true)),
    Member::new("probe", Uses("loadBalancers/probes")),
    Member::new("protocol", Word(&["Tcp", "Udp", "All"], false)).required(),
    STATE,
    Member::new("zones", Derived),
];

/// Checks a load-balancing rule by itself.
pub(super) fn check(balancer: &Balancer<'_>, id: &ResourceId, properties: &mut Object) -> Result<()> {
    let all = properties.get("protocol").is_some_and(|protocol| protocol == "All");
    for (member, most) in [("frontendPort", 65_534), ("backendPort", 65_535)] {
        check_port(properties, member, if all { (0, 0) } else { (1, most) }, id)?;
    }
    for member in ["enableTcpReset", "disableOutboundSnat"] {
        Code::ours(400, "LoadBalancingRulePropertyNotSupportedForBasicSku").details_when(
            balancer.sku == "Basic" && properties.get(member) == Some(&json!(true)),
            format_args!("{id} cannot set '{member}', which a load balancer with sku Basic does not have."),
        )?;
    }
    require_frontend(properties, id)?;
    // A rule has one pool. Clients write the single reference; the list mirrors it.
    let many = properties.remove("backendAddressPools").unwrap_or_default();
    let many = many.as_array().map_or(&[][..], Vec::as_slice);
    let count = many.len();
    Code::ours(400, "LoadBalancingRuleHasTooManyBackendAddressPools").details_when(
        count > 1,
        format_args!("{id} references {count} backend address pools; at most 1 is allowed."),
    )?;
    if let Some(pool) = properties.get("backendAddressPool").or(many.first()).cloned() {
        properties.insert("backendAddressPools".into(), json!([pool]));
        properties.insert("backendAddressPool".into(), pool);
    }
    Ok(())
}

/// Checks a port in a range that depends on other members.
pub(super) fn check_port(
    properties: &Object,
    member: &str,
    (least, most): (i64, i64),
    id: &ResourceId,
) -> Result<()> {
    let port = properties.get(member).and_then(Value::as_i64).unwrap_or_default();
    Code::ours(400, "InvalidPropertyValue").details_when(
        !(least..=most).contains(&port),
        format_args!("Value {port} of '{member}' of {id} is outside the range {least} to {most}."),
    )
}

pub(super) fn require_frontend(properties: &Object, id: &ResourceId) -> Result<()> {
    Code::ours(400, "FrontendIPConfigurationRequired").details_when(
        !properties.contains_key("frontendIPConfiguration"),
        format_args!("{id} must reference a frontendIPConfiguration."),
    )
}

/// A whole number in a stored rule's properties.
pub(super) fn number(rule: &Value, member: &str) -> i64 {
    at(rule, &format!("properties/{member}")).and_then(Value::as_i64).unwrap_or_default()
}
