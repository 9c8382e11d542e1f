//! Outbound rules: the public addresses for outbound traffic of a pool's members, and the number of ports for each
//! member (Azure Load Balancer, "Outbound rules").

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::{
    balancer::Balancer,
    pool_members::members,
    rule::{FRONTENDS, IDLE_TIMEOUT, POOL, STATE, TCP_RESET, number},
};
use crate::network::public_ip::prefix;
use azure_engine::document::{Object, at, items, name, stored_reference, text};
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Result};
use azure_engine::types::member_table::Holds::{Number, UsesAll, Word};
use azure_engine::types::member_table::Member;

const NOT_EIGHTS: Code =
    Code::ours(400, "SpecifiedAllocatedOutboundPortsForOutboundRuleIsNotAMultipleOfEight");
const TOO_MANY_PORTS: Code =
    Code::ours(400, "SpecifiedAllocatedOutboundPortsForOutboundRuleExceedsTotalNumberOfAllowedPortsPerRule");
const TOO_MANY_PORTS_EACH: Code =
    Code::azures(400, "SpecifiedAllocatedOutboundPortsForOutboundRuleExceedsTotalNumberOfAvailablePorts");

pub(super) static MEMBERS: [Member; 7] = [
    Member::new("allocatedOutboundPorts", Number(0, i64::MAX)).or(1_024),
    POOL,
    TCP_RESET,
    Member::new("frontendIPConfigurations", UsesAll(FRONTENDS)),
    IDLE_TIMEOUT,
    Member::new("protocol", Word(&["All", "Tcp", "Udp"], true)),
    STATE,
];

/// Ports of one public address that can be allocated to members.
const PORTS_PER_ADDRESS: i64 = 64_000;

/// Checks an outbound rule by itself.
pub(super) fn check_alone(balancer: &Balancer<'_>, id: &ResourceId, properties: &mut Object) -> Result<()> {
    Code::ours(400, "OutboundRulesNotSupportedForSku").details_when(
        balancer.sku != "Standard",
        format_args!("{id} needs a load balancer with sku Standard, not {}.", balancer.sku),
    )?;
    let frontends = properties.get("frontendIPConfigurations").and_then(Value::as_array);
    Code::ours(400, "OutboundRuleIncomplete").details_when(
        frontends.is_none_or(Vec::is_empty) || !properties.contains_key("backendAddressPool"),
        format_args!("{id} must reference frontendIPConfigurations and a backendAddressPool."),
    )
}

/// Checks the outbound rules of a balancer against its frontends, pools and rules.
pub(crate) fn check(balancer: &Balancer<'_>, properties: &Value) -> Result<()> {
    for rule in items(properties, "outboundRules") {
        let id = balancer.id.child("outboundRules", name(rule));
        let mut addresses = 0;
        for reference in items(rule, "properties/frontendIPConfigurations") {
            let Some(reference) = stored_reference(reference, "id") else { continue };
            let found = items(properties, "frontendIPConfigurations")
                .iter()
                .find(|frontend| balancer.id.child("frontendIPConfigurations", name(frontend)) == reference);
            // The reference check reports an absent one.
            let Some(frontend) = found else { continue };
            Code::ours(400, "OutboundRuleCannotReferenceInternalFrontendIPConfiguration").details_when(
                at(frontend, "properties/subnet").is_some(),
                format_args!(
                    "Outbound rule {id} references frontend {reference}, which has no public IP address."
                ),
            )?;
            addresses += public_addresses(balancer.azure, frontend);
            check_rules_on(balancer, properties, rule, &reference)?;
        }
        check_ports(balancer, &id, rule, addresses)?;
    }
    Ok(())
}

/// How many public addresses a frontend has: more than one where it has a prefix.
fn public_addresses(azure: &AzureState, frontend: &Value) -> i64 {
    match stored_reference(frontend, "properties/publicIPPrefix/id") {
        Some(prefix) => prefix::size(azure, &prefix),
        None => 1,
    }
}

/// A frontend with an outbound rule must have implicit outbound traffic disabled on its other rules.
fn check_rules_on(
    balancer: &Balancer<'_>,
    properties: &Value,
    outbound: &Value,
    frontend: &ResourceId,
) -> Result<()> {
    let protocol = text(outbound, "properties/protocol").unwrap_or_default();
    let clash = items(properties, "loadBalancingRules").iter().find(|rule| {
        let theirs = text(rule, "properties/protocol").unwrap_or_default();
        stored_reference(rule, "properties/frontendIPConfiguration/id").as_ref() == Some(frontend)
            && at(rule, "properties/disableOutboundSnat") != Some(&json!(true))
            && (protocol == "All" || theirs == "All" || theirs == protocol)
    });
    match clash {
        None => Ok(()),
        Some(rule) => Err(Code::azures(
            400,
            "LoadBalancingRuleMustDisableSNATSinceSameFrontendIPConfigurationIsReferencedByOutboundRule",
        )
        .details(format_args!(
            "Load balancing rule {} must disable SNAT since frontend IP configuration {frontend} \
             is also referenced by outbound rule {}.",
            balancer.id.child("loadBalancingRules", name(rule)),
            balancer.id.child("outboundRules", name(outbound))
        ))),
    }
}

/// The requested ports must exist: multiples of eight, within the addresses, for all members.
fn check_ports(balancer: &Balancer<'_>, id: &ResourceId, rule: &Value, addresses: i64) -> Result<()> {
    let ports = number(rule, "allocatedOutboundPorts");
    if ports == 0 {
        return Ok(());
    }
    let refuse = |code: Code, why: String| {
        Err(code.details(format_args!(
            "Specified Allocated Outbound Ports {ports} for Outbound Rule {id} {why}."
        )))
    };
    if ports % 8 != 0 {
        return refuse(NOT_EIGHTS, "is not a multiple of 8".into());
    }
    let all = PORTS_PER_ADDRESS * addresses;
    if ports > all {
        return refuse(TOO_MANY_PORTS, format!("exceeds total number of allowed ports {all} per rule"));
    }
    let Some(pool) = stored_reference(rule, "properties/backendAddressPool/id") else { return Ok(()) };
    let members = members(balancer.azure, &pool).count();
    let members = i64::try_from(members).unwrap_or(i64::MAX);
    if ports.saturating_mul(members) > all {
        return refuse(
            TOO_MANY_PORTS_EACH,
            format!(
                "exceeds total number of available ports per backend instance of {} based upon desired pool size. Reduce \
                 allocated ports or increase number of IP addresses for outbound rule",
                all / members.max(1) / 8 * 8
            ),
        );
    }
    Ok(())
}
