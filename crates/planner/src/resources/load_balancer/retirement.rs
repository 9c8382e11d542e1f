//! Load balancers of SKU Basic, which Azure has retired: each is deleted and replaced by one of SKU Standard.
//!
//! Azure cannot change the SKU of a load balancer, and allows a machine or an address to be of only one SKU at a time.

use std::fmt;

use azure_types::{LoadBalancer, ResourceId};
use k8s::ObjectKey;

use super::edit::LoadBalancerPlan;
use super::intent::{Known, LoadBalancerIntent};
use super::parts::text;
use super::{frontend, members};
use crate::machines::backend_pool;
use crate::model::{Balancer, Cluster};
use crate::outcome::{Action, Change, Purpose, Step, proof};

/// Whether a load balancer has to be deleted before Services can be placed on one of the configured SKU.
pub fn is_due(cluster: &Cluster, observed: &LoadBalancer) -> bool {
    let sku = observed.sku.as_ref().and_then(|sku| sku.name.as_deref());
    cluster.config.uses_standard_load_balancer() && sku.is_some_and(|sku| sku.eq_ignore_ascii_case("Basic"))
}

/// Whether an intent requires the load balancer of SKU Basic to be deleted first.
pub(super) fn is_asked_for(intent: &LoadBalancerIntent) -> bool {
    !matches!(intent, LoadBalancerIntent::Absent { .. })
}

/// Describes a part of the load balancer that belongs to others and would be deleted with it. `None` if all parts are
/// the cluster's, which the names of its Services prove. A name of the same form is no proof: another cluster of the
/// same name may be in the group.
pub(super) fn foreign_part(cluster: &Cluster, observed: &LoadBalancer, known: Known<'_>) -> Option<String> {
    let is_own = |name: &str| {
        let base = name.split('-').next().unwrap_or_default();
        let is_known = |services: &crate::resources::load_balancer::intent::KnownServices| {
            services.keys().any(|service| service.eq_ignore_ascii_case(base))
        };
        known.services.is_some_and(is_known)
    };
    let is_foreign = |part: &Part| match part.kind {
        FRONTEND | RULE => !is_own(&part.name),
        POOL => !cluster.is_pool_of_nodes(&part.name),
        // A probe that no rule uses has no effect.
        PROBE => false,
        _ => true,
    };
    parts(observed).into_iter().find(is_foreign).map(|part| part.to_string())
}

/// Describes what a deletion would also delete: a part that did not exist when it was planned, or that belongs to
/// others by now. Emptying pools takes time, and Azure does not check a version when it deletes.
pub fn deletion_obstacle(
    cluster: &Cluster,
    planned: &LoadBalancer,
    now: &LoadBalancer,
    known: Known<'_>,
) -> Option<String> {
    let retires = is_due(cluster, planned);
    if retires != is_due(cluster, now) {
        return Some("another SKU".to_owned());
    }
    let foreign = if retires { foreign_part(cluster, now, known) } else { None };
    foreign.or_else(|| {
        let planned = parts(planned);
        parts(now).into_iter().find(|part| !planned.contains(part)).map(|part| part.to_string())
    })
}

const FRONTEND: &str = "frontend";
const RULE: &str = "rule";
const PROBE: &str = "health probe";
const POOL: &str = "backend pool";

/// A named part of a load balancer.
#[derive(Debug, PartialEq)]
struct Part {
    kind: &'static str,
    name: String,
    public_ip: Option<ResourceId>,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

fn parts(load_balancer: &LoadBalancer) -> Vec<Part> {
    let Some(properties) = &load_balancer.properties else { return Vec::new() };
    let part = |kind: &'static str, name: &Option<String>| Part {
        kind,
        name: text(name).to_owned(),
        public_ip: None,
    };
    let frontends = properties.frontend_ip_configurations.iter().flatten();
    let frontends = frontends
        .map(|one| Part { public_ip: frontend::public_ip_of(one).cloned(), ..part(FRONTEND, &one.name) });
    let rules = properties.load_balancing_rules.iter().flatten().map(|one| part(RULE, &one.name));
    let probes = properties.probes.iter().flatten().map(|one| part(PROBE, &one.name));
    let pools = properties.backend_address_pools.iter().flatten().map(|one| part(POOL, &one.name));
    let nat_rules = properties.inbound_nat_rules.iter().flatten();
    let nat_rules = nat_rules.map(|one| part("inbound NAT rule", &one.name));
    let nat_pools = properties.inbound_nat_pools.iter().flatten();
    let nat_pools = nat_pools.map(|one| part("inbound NAT pool", &one.name));
    let outbound = properties.outbound_rules.iter().flatten().map(|one| part("outbound rule", &one.name));
    frontends
        .chain(rules)
        .chain(probes)
        .chain(pools)
        .chain(nat_rules)
        .chain(nat_pools)
        .chain(outbound)
        .collect()
}

/// The deletion: machines leave before, and the public IPs get static addresses.
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
        ownership: vec![proof::load_balancer(cluster, balancer)],
    };
    LoadBalancerPlan { step: Some(step), empty_first, addresses_to_keep, ..LoadBalancerPlan::default() }
}
