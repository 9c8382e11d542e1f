//! Inbound NAT rules, out of the documents of load balancers.

use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::Value;

use crate::balancer::{Member, Pool};
use crate::inbound_nat::NatRule;
use crate::json::{address_at, id_at, id_of, items, port_at, text_at};
use crate::network::Network;

/// Everything that leads to one machine, from the document of a load balancer.
pub(super) fn read(document: &Value, pools: &[Pool], network: &Network) -> Vec<NatRule> {
    let mut rules = Vec::new();
    for rule in items(document, "/properties/inboundNatRules") {
        let Some(id) = id_of(rule) else { continue };
        let pool = id_at(rule, "/properties/backendAddressPool/id");
        match pool.and_then(|id| pools.iter().find(|pool| pool.id == id)) {
            Some(pool) => rules.extend(of_pool(document, rule, &id, pool, network)),
            None => {
                let by_rule = id_at(rule, "/properties/backendIPConfiguration/id")
                    .and_then(|target| network.interface_of(&target));
                let target = by_rule.or_else(|| {
                    network.interfaces.iter().position(|interface| interface.nat_rules.contains(&id))
                });
                let port = port_at(rule, "/properties/frontendPort");
                rules.extend(port.and_then(|port| NatRule::new(rule, port, target)));
            }
        }
    }
    rules
}

/// A rule for a pool gives each member a port of its range: the one that the pool's entries show, or
/// the next in order.
fn of_pool(document: &Value, rule: &Value, id: &ResourceId, pool: &Pool, network: &Network) -> Vec<NatRule> {
    let Some(first) = port_at(rule, "/properties/frontendPortRangeStart") else { return Vec::new() };
    let last = port_at(rule, "/properties/frontendPortRangeEnd").unwrap_or(first);
    let entries = items(document, "/properties/backendAddressPools")
        .filter(|shown| id_of(shown).as_ref() == Some(&pool.id))
        .flat_map(|shown| items(shown, "/properties/loadBalancerBackendAddresses"));
    let shown: Vec<(Option<usize>, Option<IpAddr>, u16)> = entries
        .filter_map(|entry| {
            let mapping = items(entry, "/properties/inboundNatRulesPortMapping").find(|mapping| {
                text_at(mapping, "/inboundNatRuleName")
                    .is_some_and(|name| name.eq_ignore_ascii_case(id.name()))
            })?;
            // Members that joined by their interface show that in place of an address.
            let interface = id_at(entry, "/properties/networkInterfaceIPConfiguration/id")
                .and_then(|configuration| network.interface_of(&configuration));
            Some((interface, address_at(entry, "/properties/ipAddress"), port_at(mapping, "/frontendPort")?))
        })
        .collect();
    let shows = |member: &Member| {
        let found = shown.iter().find(|(interface, address, _)| {
            interface.is_some() && *interface == member.interface
                || address.is_some() && *address == member.address
        });
        found.map(|(_, _, port)| *port)
    };
    pool.members
        .iter()
        .zip(first..=last)
        .filter_map(|(member, next)| {
            let port = if shown.is_empty() { Some(next) } else { shows(member) };
            NatRule::new(rule, port?, member.interface)
        })
        .collect()
}
