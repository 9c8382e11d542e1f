//! Whether a load balancer holds parts of a Service.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use azure_types::{LoadBalancer, ResourceId};
use k8s::{ObjectKey, Service};

use super::frontend;
use super::intent::{Known, LoadBalancerIntent};
use super::listed::ListedLoadBalancer;
use super::local_pools;
use super::parts::{base_of, text};
use super::plan::plan;
use crate::model::{Balancer, Cluster, Family};
use crate::service::ServiceRemoval;

/// The Services among these that are on a load balancer: parts of it are named after them.
pub fn services_on(load_balancer: &LoadBalancer, services: &[Arc<Service>]) -> Vec<ObjectKey> {
    let Some(properties) = &load_balancer.properties else { return Vec::new() };
    let frontends = properties.frontend_ip_configurations.iter().flatten().map(|part| &part.name);
    let rules = properties.load_balancing_rules.iter().flatten().map(|part| &part.name);
    let bases: BTreeSet<String> = frontends.chain(rules).map(|name| base_of(text(name))).collect();
    let lives_here = |service: &&Arc<Service>| {
        let base = crate::model::names::base_name(service.uid());
        base.is_some_and(|base| bases.contains(&base.to_ascii_lowercase()))
    };
    services.iter().filter(lives_here).map(|service| service.key()).collect()
}

/// Whether a load balancer holds any part of a Service.
pub fn holds(
    cluster: &Cluster,
    balancer: &Balancer,
    observed: &ListedLoadBalancer,
    owner: &Arc<ServiceRemoval>,
    public_ips: &BTreeMap<Family, ResourceId>,
) -> bool {
    let is_worth_a_look =
        is_named_after(observed, owner) || owner.is_pinned() || local_pools::has_pool_of(observed, owner);
    if !is_worth_a_look {
        return false;
    }
    let absent = [LoadBalancerIntent::Absent { service: Arc::clone(owner), public_ips: public_ips.clone() }];
    let step = plan(cluster, balancer, Some(observed), &absent, Known::default()).step;
    step.is_some_and(|step| step.on_behalf_of.contains(&owner.key))
}

/// Whether any part of the load balancer is named after the Service: a quick test before planning.
pub(crate) fn is_named_after(load_balancer: &ListedLoadBalancer, owner: &ServiceRemoval) -> bool {
    if let Some(indexed) = load_balancer.may_name(owner) {
        return indexed;
    }
    let (Some(properties), Some(base)) = (&load_balancer.properties, owner.base_name.as_deref()) else {
        return false;
    };
    let frontends = properties.frontend_ip_configurations.iter().flatten().map(|part| &part.name);
    let rules = properties.load_balancing_rules.iter().flatten().map(|part| &part.name);
    let probes = properties.probes.iter().flatten().map(|part| &part.name);
    let mut names = frontends.chain(rules).chain(probes).flatten();
    names.any(|name| name.get(..base.len()).is_some_and(|start| start.eq_ignore_ascii_case(base)))
}

/// Whether a Service has a frontend of its own on the load balancer.
pub(crate) fn has_frontend_of(load_balancer: &ListedLoadBalancer, owner: &ServiceRemoval) -> bool {
    let Some(base) = owner.base_name.as_deref() else { return false };
    let mut frontends = load_balancer.frontends_for(owner);
    frontends.any(|frontend| crate::model::names::is_frontend_of(frontend::name_of(frontend), base))
}
