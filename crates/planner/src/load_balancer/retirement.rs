//! Load balancers of SKU Basic, which Azure has retired: each is deleted, and one of SKU Standard takes its place.
//!
//! Azure changes the SKU of no load balancer, and lets no machine and no address be of two SKUs at a time.

use azure_types::{LoadBalancer, ResourceId};
use k8s::ObjectKey;

use super::{Known, LoadBalancerIntent, LoadBalancerPlan, members, text};
use crate::backend_pool;
use crate::change::Change;
use crate::cluster::{Balancer, Cluster};
use crate::frontend;
use crate::plan::{Action, Purpose, Step};

/// Whether a load balancer has to be deleted before Services can have a place of the configured SKU.
pub fn is_due(cluster: &Cluster, observed: &LoadBalancer) -> bool {
    let sku = observed.sku.as_ref().and_then(|sku| sku.name.as_deref());
    cluster.config.uses_standard_load_balancer() && sku.is_some_and(|sku| sku.eq_ignore_ascii_case("Basic"))
}

/// Whether an intent can only be fulfilled without the load balancer of SKU Basic.
pub(super) fn is_asked_for(intent: &LoadBalancerIntent) -> bool {
    !matches!(intent, LoadBalancerIntent::Absent { .. })
}

/// What somebody else has on the load balancer, in words: it would go along. `None` where all is the cluster's, which
/// the names of its Services prove. A name of the same form is no proof: another cluster of this name may be in the
/// group.
pub(super) fn foreign_part(cluster: &Cluster, observed: &LoadBalancer, known: Known<'_>) -> Option<String> {
    let properties = observed.properties.as_ref()?;
    let is_own = |name: &str| {
        let base = name.split('-').next().unwrap_or_default();
        let is_known = |services: &super::KnownServices| {
            services.iter().any(|service| service.eq_ignore_ascii_case(base))
        };
        known.services.is_some_and(is_known)
    };
    let frontends = properties.frontend_ip_configurations.iter().flatten();
    let frontends =
        frontends.filter(|one| !is_own(frontend::name_of(one))).map(|one| ("frontend", &one.name));
    let rules = properties.load_balancing_rules.iter().flatten();
    let rules = rules.filter(|one| !is_own(text(&one.name))).map(|one| ("rule", &one.name));
    let pools = properties.backend_address_pools.iter().flatten();
    let pools = pools.filter(|one| !cluster.is_pool_of_nodes(text(&one.name)));
    let pools = pools.map(|one| ("backend pool", &one.name));
    let nat_rules = properties.inbound_nat_rules.iter().flatten().map(|one| ("inbound NAT rule", &one.name));
    let nat_pools = properties.inbound_nat_pools.iter().flatten().map(|one| ("inbound NAT pool", &one.name));
    let mut all = frontends.chain(rules).chain(pools).chain(nat_rules).chain(nat_pools);
    all.next().map(|(kind, name)| format!("{kind} {}", text(name)))
}

/// The deletion: machines leave before, and the public IPs get addresses that stay.
pub(super) fn plan(
    cluster: &Cluster,
    balancer: &Balancer,
    observed: &LoadBalancer,
    on_behalf_of: Vec<ObjectKey>,
) -> LoadBalancerPlan {
    let mut empty_first = backend_pool::pools_to_empty(cluster, balancer, observed);
    if cluster.has_pools_of_addresses() {
        empty_first.retain(|membership| members::has_interfaces_in(observed, &membership.pool));
    }
    let frontends = observed.properties.iter().flat_map(|p| p.frontend_ip_configurations.iter().flatten());
    let addresses_to_keep: Vec<ResourceId> =
        frontends.filter_map(|frontend| frontend::public_ip_of(frontend).cloned()).collect();
    let step = Step {
        action: Action::Delete,
        target: observed.id.clone().unwrap_or_else(|| cluster.load_balancer_id(balancer)),
        if_match: None,
        document: None,
        changes: vec![Change::BasicLoadBalancerRetired],
        purpose: Purpose::Change,
        on_behalf_of,
    };
    LoadBalancerPlan { step: Some(step), empty_first, addresses_to_keep, ..LoadBalancerPlan::default() }
}
