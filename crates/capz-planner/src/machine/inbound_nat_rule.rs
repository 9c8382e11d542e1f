//! The inbound NAT rule of a control plane machine: SSH through the API server's load balancer.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use capz_api::network::LoadBalancer;
use serde_json::{Value, json};

use super::scope::MachineScope;
use crate::document::text;
use crate::goal::{Goal, GoalError, OwnershipRule};
use crate::observed::{Observation, ObservedResources};
use crate::scope::reference;
use crate::service;

/// The annotation of AzureMachines with the port of the rule at the load balancer: `"<port>"`.
pub(super) const SSH_PORT: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-ssh-port";
pub(super) const OWNERSHIP: OwnershipRule = OwnershipRule::ByName("the name of the virtual machine");
const SSH: i64 = 22;
/// Ports at the load balancer for further machines.
const FURTHER: std::ops::RangeInclusive<i64> = 2201..=2219;

/// The load balancer that the rule is on.
fn balancer<'a>(scope: &MachineScope<'a>) -> Option<(&'a LoadBalancer, ResourceId)> {
    let balancer = scope.cluster.api_server_balancer().filter(|_| scope.is_control_plane())?;
    let name = text(&balancer.name)?;
    Some((balancer, scope.cluster.balancer(name)))
}

/// The rule, if the machine has one.
pub(super) fn id(scope: &MachineScope<'_>) -> Option<ResourceId> {
    balancer(scope).map(|(_, id)| id.child("inboundNatRules", &scope.vm_name()))
}

pub(super) fn goal(
    scope: &MachineScope<'_>,
    observed: &ObservedResources,
) -> Result<Option<Goal>, GoalError> {
    let (Some((declared, balancer)), Some(id)) = (balancer(scope), id(scope)) else { return Ok(None) };
    let frontends = || declared.frontend_ips.iter().flatten();
    // A private address of a public load balancer belongs to the internal one beside it.
    let frontend = frontends()
        .find(|frontend| declared.is_internal() || frontend.public_ip.is_some())
        .or_else(|| frontends().next())
        .and_then(|frontend| frontend.name.as_deref())
        .ok_or_else(|| GoalError::NotNow("the API server's load balancer has no frontend".to_owned()))?;
    let port = port(scope, &balancer, &id, observed).ok_or_else(|| {
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
    Ok(Some(Goal::new(id, &service::INBOUND_NAT_RULES, document).owned(OWNERSHIP)))
}

/// The port of the existing rule at the load balancer.
pub(super) fn known_port(scope: &MachineScope<'_>, observed: &ObservedResources) -> Option<i64> {
    let Observation::Present(held) = observed.get(&id(scope)?) else { return None };
    port_of(held)
}

fn port_of(rule: &Value) -> Option<i64> {
    rule["properties"]["frontendPort"].as_i64()
}

/// The port at the load balancer: the recorded one, otherwise that of the existing rule, otherwise one that no other
/// rule has. Machines that are created at the same time see the same free ports: each skips as many of them as there
/// are earlier machines without a rule.
fn port(
    scope: &MachineScope<'_>,
    balancer: &ResourceId,
    rule: &ResourceId,
    observed: &ObservedResources,
) -> Option<i64> {
    let rules: &[Value] = match observed.get(balancer) {
        Observation::Present(held) => {
            held["properties"]["inboundNatRules"].as_array().map_or(&[], Vec::as_slice)
        }
        Observation::Absent | Observation::Unknown => &[],
    };
    let is_named =
        |rule: &Value, name: &str| rule["name"].as_str().is_some_and(|it| it.eq_ignore_ascii_case(name));
    let taken: BTreeSet<i64> =
        rules.iter().filter(|other| !is_named(other, rule.name())).filter_map(port_of).collect();
    let recorded = scope.annotations.get(SSH_PORT).and_then(|port| port.parse().ok());
    let recorded = recorded.filter(|port| !taken.contains(port));
    if let Some(port) = recorded.or_else(|| known_port(scope, observed)) {
        return Some(port);
    }
    let has_rule = |name: &String| rules.iter().any(|rule| is_named(rule, name));
    let left = scope.earlier.iter().filter(|name| !has_rule(name)).count();
    let mut free = std::iter::once(SSH).chain(FURTHER).filter(|port| !taken.contains(port));
    let first = free.clone().next();
    free.nth(left).or(first)
}
