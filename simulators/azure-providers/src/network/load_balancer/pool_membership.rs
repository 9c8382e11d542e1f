//! Rules for the pools that a network interface may be in at once.

use azure_types::ResourceId;

use super::{
    backend_pool::{holds_address, rules_by_pool, scale_set_of},
    frontend::is_internal,
    pool_members::entries,
};
use crate::network::shared::codes::MIXED_MEMBERSHIP;
use azure_engine::document::{items, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::store::reference::is_of;

const TWO_OF_SCALE_SET: Code = Code::azures(400, "VMScaleSetCannotUseMultipleLoadBalancersOfSameType");
const TWO_INTERNAL: Code = Code::azures(400, "AnotherInternalLoadBalancerExists");
const TWO_PUBLIC: Code = Code::ours(400, "AnotherPublicLoadBalancerExists");

/// The refusal of an interface behind too many rules.
pub(crate) fn too_many_rules(member: &ResourceId, most: u64) -> Refusal {
    Code::azures(400, "LoadBalancerRuleCountLimitReachedForNic").details(format_args!(
        "{member} cannot be behind more than {most} load balancing and inbound NAT rules."
    ))
}

/// Refuses invalid memberships: in a pool that holds addresses itself, behind balancers of different skus, behind two
/// of one kind (public or internal), or behind too many rules. `pools` are all pools of one network interface, `member`
/// is its id or that of the scale set whose model it is in.
pub(crate) fn check(azure: &AzureState, member: &ResourceId, pools: &[ResourceId]) -> Result<()> {
    let mut behind: Vec<&Record> = Vec::new();
    let mut rules = 0;
    for pool in pools {
        // The reference check reports an absent balancer or pool.
        let Some(balancer) = azure.store.holder(pool).filter(|holder| holder.id != *pool) else { continue };
        // An interface that was in the pool when the pool changed to addresses may keep its reference.
        let is_in = azure.store.referrers(pool).any(|user| user.from.is_within(member));
        MIXED_MEMBERSHIP.details_when(
            !is_in && entries(balancer, pool).any(holds_address),
            format_args!("{member} cannot join backend address pool {pool}, which holds IP addresses."),
        )?;
        rules += balancer.body.get("properties").map_or(0, |properties| {
            rules_by_pool(properties).get(&pool.to_lower()).copied().unwrap_or_default()
        });
        let most = azure.limit("network.rulesPerInterface");
        if rules > most {
            return Err(too_many_rules(member, most));
        }
        for other in behind.iter().filter(|other| other.id != balancer.id) {
            check_pair(member, other, balancer)?;
        }
        behind.push(balancer);
    }
    Ok(())
}

/// Refuses inbound NAT rules that cannot lead to a network interface: those of another one, and those
/// that lead to a pool.
pub(crate) fn check_nat_rules(
    azure: &AzureState,
    interface: &ResourceId,
    rules: &[ResourceId],
) -> Result<()> {
    for rule in rules {
        let user = azure
            .store
            .referrers(rule)
            .find(|user| is_of(&user.from, "/ipconfigurations/") && !user.from.is_within(interface));
        if let Some(user) = user {
            return Err(Code::ours(400, "InboundNatRuleInUse").details(format_args!(
                "Inbound NAT rule {rule} referenced by {interface} already leads to {}.",
                user.from
            )));
        }
        // The reference check reports an absent rule.
        let holder = azure.store.holder(rule).filter(|holder| holder.id != *rule);
        let found = holder.and_then(|holder| azure.find_child(holder, rule));
        Code::ours(400, "InboundNatRuleLeadsToBackendAddressPool").details_when(
            found.is_some_and(|(_, rule)| text(rule, "properties/backendAddressPool/id").is_some()),
            format_args!(
                "Inbound NAT rule {rule} referenced by {interface} leads to a backend address pool."
            ),
        )?;
    }
    Ok(())
}

/// Whether a balancer is internal; one without frontends is neither internal nor public.
fn internal(balancer: &Record) -> Option<bool> {
    items(&balancer.body, "properties/frontendIPConfigurations").first().map(is_internal)
}

fn check_pair(member: &ResourceId, one: &Record, other: &Record) -> Result<()> {
    let sku = |record: &Record| text(&record.body, "sku/name").map(str::to_owned);
    Code::azures(400, "DifferentSkuLoadBalancersAndPublicIPAddressNotAllowed").details_when(
        sku(one) != sku(other),
        format_args!("{member} references load balancers of different skus: {} and {}.", one.id, other.id),
    )?;
    let Some(both_internal) = internal(one).filter(|kind| internal(other) == Some(*kind)) else {
        return Ok(());
    };
    let kind = if both_internal { "internal" } else { "public" };
    let (code, subject) = match (scale_set_of(member).as_ref() == Some(member), both_internal) {
        (true, _) => (TWO_OF_SCALE_SET, "Virtual machine scale set"),
        (false, true) => (TWO_INTERNAL, "Network interface"),
        (false, false) => (TWO_PUBLIC, "Network interface"),
    };
    Err(code.details(format_args!(
            "{subject} {member} references {kind} load balancers {} and {}: it can use at most one internal and one \
             public load balancer.",
            one.id, other.id
        )))
}
