//! Azure's limits for one standard load balancer. They are checked before the write, because a refused write costs a
//! minute and does not say which Services fit.

use super::edit::Draft;
use crate::outcome::Refusal;

/// Frontends of a standard load balancer (Azure's published limits, "Load balancer limits").
pub(super) const MAX_FRONTENDS: usize = 600;

/// Load-balancing rules and inbound NAT rules of a standard load balancer together (the same page).
pub(super) const MAX_RULES: usize = 1500;

/// The refusal of a Service for which there is no place left.
pub(super) fn full(load_balancer: &str, what: &'static str, limit: usize) -> Refusal {
    Refusal::LoadBalancerFull { load_balancer: load_balancer.to_owned(), what, limit }
}

/// Checks the number of frontends against Azure's limit after a Service was placed; `before` is the number before that.
pub(super) fn check_frontends(draft: &mut Draft<'_>, before: usize) -> Result<(), Refusal> {
    let count = draft.frontends().len();
    if count > before && count > MAX_FRONTENDS {
        return Err(full(&draft.balancer.name, "frontends", MAX_FRONTENDS));
    }
    Ok(())
}

/// Checks the number of rules against Azure's limit after those of a Service were written; `before` is the number
/// before that.
pub(super) fn check_rules(draft: &mut Draft<'_>, before: usize) -> Result<(), Refusal> {
    let rules = draft.rules().len();
    let nat_rules = draft.properties().inbound_nat_rules.as_ref().map_or(0, Vec::len);
    if rules > before && rules + nat_rules > MAX_RULES {
        return Err(full(&draft.balancer.name, "rules", MAX_RULES));
    }
    Ok(())
}
