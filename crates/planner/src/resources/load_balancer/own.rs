//! The cluster's own load balancers: those on which its Services may be placed, and those on which they were placed before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use azure_types::{LoadBalancer, ResourceId};
use k8s::Service;

use super::listed::ListedLoadBalancer;
use super::parts::pool_in;
use crate::model::balancer::without_suffix;
use crate::model::{Balancer, Cluster, Family, Flavor, names};
use crate::service::local_pool::name;

impl Cluster {
    /// The load balancer of the cluster that a document describes: one on which Services may be placed, or one on which
    /// they were placed under an earlier configuration (LB-261). The latter has a pool of the cluster's name, or only
    /// pools of single Services; a load balancer of another name without them would be another cluster's.
    pub(crate) fn balancer_of(&self, document: &LoadBalancer, services: &[Arc<Service>]) -> Option<Balancer> {
        let id = document.id.as_ref()?;
        let known = self.balancers().into_iter().find(|one| self.load_balancer_id(one) == *id);
        known.or_else(|| self.former_balancer(id, document, services))
    }

    fn former_balancer(
        &self,
        id: &ResourceId,
        document: &LoadBalancer,
        services: &[Arc<Service>],
    ) -> Option<Balancer> {
        // Where an operator chooses the name, a load balancer of another name may be the operator's as well.
        let may_be_named_otherwise = !self.config.load_balancer_name.is_empty();
        let is_ours = || {
            let group = self.network_group(self.config.load_balancer_resource_group());
            let has_pool = |family| pool_in(document, &self.pool_name(family)).is_some();
            id.parent() == Some(group)
                && (Family::BOTH.into_iter().any(has_pool) || are_all_pools_of(document, services))
        };
        let has_one_name = !self.has_several_load_balancers() && !self.config.uses_basic_load_balancer();
        if may_be_named_otherwise && has_one_name || !is_ours() {
            return None;
        }
        let is_internal = without_suffix(id.name()) != id.name();
        let flavor = if is_internal { Flavor::Internal } else { Flavor::External };
        Some(Balancer { name: id.name().to_owned(), flavor })
    }

    /// The cluster's own load balancers among these. `services` are all known Services of the cluster.
    pub fn own_load_balancers(
        &self,
        all: impl IntoIterator<Item = Arc<LoadBalancer>>,
        services: &[Arc<Service>],
    ) -> Vec<(Balancer, ListedLoadBalancer)> {
        all.into_iter()
            .filter_map(|document| Some((self.balancer_of(&document, services)?, document.into())))
            .collect()
    }

    /// The load balancers on which the cluster's Services were placed before, among these.
    pub fn former_load_balancers(
        &self,
        all: impl IntoIterator<Item = Arc<LoadBalancer>>,
        services: &[Arc<Service>],
    ) -> Vec<(Balancer, ListedLoadBalancer)> {
        let own = self.own_load_balancers(all, services).into_iter();
        own.filter(|(balancer, _)| !self.is_configured(balancer)).collect()
    }
}

/// Whether a load balancer has pools, and each belongs to one of these Services: rules that are named after the Service
/// refer to it. Such pools exist only where several load balancers share the Services, so the load balancer's own name
/// does not say to which cluster it belongs.
pub(crate) fn are_all_pools_of(document: &LoadBalancer, services: &[Arc<Service>]) -> bool {
    let Some(properties) = &document.properties else { return false };
    // The base names of the rules that refer to each pool.
    let mut leading: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for rule in properties.load_balancing_rules.iter().flatten() {
        let pool = rule.properties.as_ref().and_then(|p| p.backend_address_pool.as_ref()?.id.as_ref());
        let base = rule.name.as_deref().and_then(|name| name.split('-').next());
        let (Some(pool), Some(base)) = (pool, base) else { continue };
        if base.starts_with(['a', 'A']) {
            leading.entry(base.to_lowercase()).or_default().insert(pool.name().to_lowercase());
        }
    }
    let pools = properties.backend_address_pools.iter().flatten();
    let mut unproven: BTreeSet<String> =
        pools.map(|pool| pool.name.as_deref().unwrap_or_default().to_lowercase()).collect();
    if leading.is_empty() || unproven.is_empty() {
        return false;
    }
    for service in services {
        let base = names::base_name(service.uid()).unwrap_or_default().to_lowercase();
        let Some(led_to) = leading.get(&base) else { continue };
        for own in Family::BOTH.map(|family| name(&service.key(), family)) {
            if led_to.contains(&own) {
                unproven.remove(&own);
            }
        }
    }
    unproven.is_empty()
}
