//! Ports of a frontend, or of a pool's members, that are already taken by others.

use azure_types::{LoadBalancerProperties, ResourceId, SubResource, Word};

use super::index::RuleIndex;
use super::parts::text;
use super::rule::{Desired, RuleSpec};
use crate::outcome::{PortHolder, Refusal};
use crate::service::ServiceIntent;

/// Whether two protocols conflict on one port; Azure's `All` conflicts with every protocol.
fn meets(wanted: &RuleSpec, other: Option<&Word>) -> bool {
    wanted.protocol == "All" || other.is_some_and(|other| other.is("All") || other.is(wanted.protocol))
}

/// Refuses rules whose port is taken by another rule of the same frontend, or whose port on the nodes is taken by
/// another rule of the same pool. Port 0 stands for all ports.
pub(super) fn check(
    service: &ServiceIntent,
    desired: &Desired,
    frontend: &ResourceId,
    pool: &ResourceId,
    properties: &LoadBalancerProperties,
    index: &RuleIndex,
) -> Result<(), Refusal> {
    let here = |reference: &Option<SubResource>| {
        reference.as_ref().and_then(|reference| reference.id.as_ref()) == Some(frontend)
    };
    for wanted in &desired.rules {
        let port = wanted.frontend_port;
        let refuse = |holder: PortHolder, protocol: Option<&Word>| {
            Err(Refusal::PortTaken {
                rule: wanted.name.clone(),
                port,
                protocol: protocol.map(Word::as_str).unwrap_or_default().to_owned(),
                frontend: frontend.to_string(),
                holder: Box::new(holder),
            })
        };
        let rules = properties.load_balancing_rules.as_deref().unwrap_or_default();
        for rule in index.meeting(frontend, wanted.backend_port).into_iter().filter_map(|at| rules.get(at)) {
            let Some(p) = &rule.properties else { continue };
            let own = || service.removal().owns_rule(text(&rule.name));
            let at_nodes = !wanted.floating_ip && p.enable_floating_ip != Some(true);
            if at_nodes
                && p.backend_port == Some(wanted.backend_port)
                && p.protocol.as_ref().is_some_and(|protocol| protocol.is(wanted.protocol))
                && p.backend_address_pool.as_ref().and_then(|reference| reference.id.as_ref()) == Some(pool)
                && !own()
            {
                return Err(Refusal::BackendPortTaken {
                    rule: wanted.name.clone(),
                    port: wanted.backend_port,
                    holder: text(&rule.name).to_owned(),
                });
            }
            let taken = p.frontend_port.unwrap_or_default();
            let overlaps = (taken == port || taken == 0 || port == 0) && meets(wanted, p.protocol.as_ref());
            if overlaps && !own() && here(&p.frontend_ip_configuration) {
                return refuse(PortHolder::Rule(text(&rule.name).to_owned()), p.protocol.as_ref());
            }
        }
        for rule in properties.inbound_nat_rules.iter().flatten() {
            let Some(p) = &rule.properties else { continue };
            let overlaps = (p.frontend_port == Some(port) || port == 0) && meets(wanted, p.protocol.as_ref());
            if overlaps && here(&p.frontend_ip_configuration) {
                return refuse(PortHolder::InboundNatRule(text(&rule.name).to_owned()), p.protocol.as_ref());
            }
        }
        for pool in properties.inbound_nat_pools.iter().flatten() {
            let Some(p) = &pool.properties else { continue };
            let first = p.frontend_port_range_start.unwrap_or_default();
            let last = p.frontend_port_range_end.unwrap_or_default();
            let overlaps =
                ((first..=last).contains(&port) || port == 0) && meets(wanted, p.protocol.as_ref());
            if overlaps && here(&p.frontend_ip_configuration) {
                let name = text(&pool.name).to_owned();
                return refuse(PortHolder::InboundNatPool(name, first, last), p.protocol.as_ref());
            }
        }
    }
    Ok(())
}
