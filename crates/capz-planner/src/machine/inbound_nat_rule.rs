//! The inbound NAT rule of a control plane machine: SSH through the API server's load balancer.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use capz_api::network::LoadBalancer;
use serde_json::{Value, json};

use super::{GoalError, MachineScope};
use crate::goal::{Goal, OwnershipRule};
use crate::observed::{Observed, Seen};
use crate::scope::reference;
use crate::service;

pub(super) const OWNERSHIP: OwnershipRule = OwnershipRule::ByName("the name of the virtual machine");
const SSH: i64 = 22;
/// Ports at the load balancer for further machines.
const FURTHER: std::ops::RangeInclusive<i64> = 2201..=2219;

/// The load balancer that the rule is on.
fn balancer<'a>(scope: &MachineScope<'a>) -> Option<(&'a LoadBalancer, ResourceId)> {
    let balancer = scope.cluster.api_server_balancer().filter(|_| scope.is_control_plane())?;
    let name = balancer.name.as_deref().filter(|name| !name.is_empty())?;
    Some((balancer, scope.cluster.balancer(name)))
}

/// The rule, if the machine has one.
pub(super) fn id(scope: &MachineScope<'_>) -> Option<ResourceId> {
    balancer(scope).map(|(_, id)| id.child("inboundNatRules", &scope.vm_name()))
}

pub(super) fn goal(scope: &MachineScope<'_>, observed: &Observed) -> Result<Option<Goal>, GoalError> {
    let (Some((declared, balancer)), Some(id)) = (balancer(scope), id(scope)) else { return Ok(None) };
    let frontends = || declared.frontend_ips.iter().flatten();
    // A private address of a public balancer is its twin's.
    let frontend = frontends()
        .find(|frontend| declared.is_internal() || frontend.public_ip.is_some())
        .or_else(|| frontends().next())
        .and_then(|frontend| frontend.name.as_deref())
        .ok_or_else(|| GoalError::NotNow("the API server's load balancer has no frontend".to_owned()))?;
    let port = port(&balancer, &id, scope.earlier, observed).ok_or_else(|| {
        GoalError::NotNow(format!(
            "No available SSH Frontend ports for the inbound NAT rule {} on the load balancer {}: 22 and {} to {} are taken",
            id.name(),
            balancer.name(),
            FURTHER.start(),
            FURTHER.end()
        ))
    })?;
    let document = json!({
        "properties": {
            "protocol": "Tcp",
            "frontendPort": port,
            "backendPort": SSH,
            "idleTimeoutInMinutes": 4,
            "enableFloatingIP": false,
            "frontendIPConfiguration": reference(&balancer.child("frontendIPConfigurations", frontend)),
        },
    });
    Ok(Some(Goal::new(id, &service::INBOUND_NAT_RULES, document).owned(OWNERSHIP).once()))
}

/// The port at the load balancer: the one that the rule has, else one that no other rule has. Machines that come at the same
/// time see the same free ports: each leaves as many of them as there are machines before it that have no rule yet.
fn port(balancer: &ResourceId, rule: &ResourceId, earlier: &[String], observed: &Observed) -> Option<i64> {
    let port_of = |document: &Value| document["properties"]["frontendPort"].as_i64();
    if let Seen::Present(held) = observed.see(rule) {
        return Some(port_of(held).unwrap_or(SSH));
    }
    let rules: &[Value] = match observed.see(balancer) {
        Seen::Present(held) => held["properties"]["inboundNatRules"].as_array().map_or(&[], Vec::as_slice),
        Seen::Absent | Seen::Unknown => &[],
    };
    let taken: BTreeSet<i64> = rules.iter().filter_map(port_of).collect();
    let has_rule = |name: &String| {
        rules.iter().any(|rule| rule["name"].as_str().is_some_and(|it| it.eq_ignore_ascii_case(name)))
    };
    let left = earlier.iter().filter(|name| !has_rule(name)).count();
    let mut free = std::iter::once(SSH).chain(FURTHER).filter(|port| !taken.contains(port));
    let first = free.clone().next();
    free.nth(left).or(first)
}
