//! The pools of single Services on a load balancer ([`crate::local_pool`]): which pool a Service's rules use, the
//! pool's members, and its removal.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use azure_types::{LoadBalancer, LoadBalancerProperties, ResourceId, SubResource};
use k8s::ObjectKey;
use ownership::Evidence;

use super::edit::Draft;
use super::index::RuleIndex;
use super::intent::LoadBalancerIntent;
use super::members::{Members, fill, has_interfaces};
use super::parts::{is_named, pool_in, text};
use crate::machines::backend_pool;
use crate::model::Family;
use crate::outcome::{Change, Refusal};
use crate::service::{LocalService, ServiceIntent, ServiceRemoval, local_pool};

/// An existing pool of a Service's own.
pub(super) struct LocalPool<'a> {
    /// Its name.
    pub(super) name: String,
    family: Family,
    service: &'a LocalService,
}

/// Whether a load balancer has a pool that is named after a Service.
pub(super) fn has_pool_of(observed: &LoadBalancer, owner: &ServiceRemoval) -> bool {
    let named = |family: &Family| pool_in(observed, &local_pool::name(&owner.key, *family)).is_some();
    Family::BOTH.iter().any(named)
}

fn refers(reference: &Option<SubResource>, pool: &ResourceId) -> bool {
    reference.as_ref().and_then(|reference| reference.id.as_ref()) == Some(pool)
}

/// Whether anything on the load balancer refers to a pool.
fn is_used(properties: &LoadBalancerProperties, pool: &ResourceId) -> bool {
    let mut rules =
        properties.load_balancing_rules.iter().flatten().filter_map(|rule| rule.properties.as_ref());
    let mut outbound = properties.outbound_rules.iter().flatten().filter_map(|rule| rule.properties.as_ref());
    // Rules of a single machine may refer to a pool as well.
    let mut inbound =
        properties.inbound_nat_rules.iter().flatten().filter_map(|rule| rule.properties.as_ref());
    rules.any(|rule| refers(&rule.backend_address_pool, pool))
        || outbound.any(|rule| refers(&rule.backend_address_pool, pool))
        || inbound.any(|rule| {
            let reference = rule.rest.get("backendAddressPool");
            let id = reference.as_ref().and_then(|reference| reference.get("id")?.as_str());
            id.is_some_and(|id| id.eq_ignore_ascii_case(pool.as_str()))
        })
}

impl<'a> Draft<'a> {
    /// The name of the pool that the rules of a Service use: its own pool if it has one, and otherwise that of the
    /// cluster's nodes. If two Services have the same pool name, the one whose rules already use the pool keeps it.
    pub(super) fn pool_for(
        &mut self,
        service: &ServiceIntent,
        family: Family,
        index: &RuleIndex,
    ) -> Result<String, Refusal> {
        if !service.local || !self.cluster.has_local_pools() {
            return Ok(self.cluster.pool_name(family));
        }
        let name = local_pool::name(&service.key, family);
        let id = self.pool_id(&name);
        let rules = self.rules();
        let leading = index.leading_to(&id).iter().filter_map(|at| rules.get(*at));
        let others = leading.into_iter().find(|rule| {
            let leads = rule.properties.as_ref().is_some_and(|p| refers(&p.backend_address_pool, &id));
            leads && !service.removal().owns_rule(text(&rule.name))
        });
        match others {
            Some(rule) => {
                let holder = format!("load-balancing rule {}", text(&rule.name));
                Err(Refusal::PoolNameTaken { pool: name, holder })
            }
            None => Ok(name),
        }
    }

    /// Removes the pools that are named after Services of the batch and that are no longer referred to: those of
    /// Services that leave or that now use the cluster's pool, and those of families that are given up. A pool with
    /// interfaces as members was created by others, and stays.
    pub(super) fn remove_unused_local_pools(
        &mut self,
        members: &BTreeMap<&'a ObjectKey, &'a LoadBalancerIntent>,
    ) {
        for key in members.keys() {
            for family in Family::BOTH {
                let name = local_pool::name(key, family);
                let id = self.pool_id(&name);
                let pools = self.properties().backend_address_pools.iter().flatten();
                let is_here = pools.into_iter().any(|pool| is_named(&pool.name, &name));
                if !is_here || self.cluster.is_pool_of_nodes(&name) || is_used(self.properties(), &id) {
                    continue;
                }
                let pools = self.properties().backend_address_pools.iter_mut();
                let mut removed = false;
                for pools in pools {
                    pools.retain(|pool| {
                        let foreign = pool.properties.as_ref().is_some_and(has_interfaces);
                        let goes = is_named(&pool.name, &name) && !foreign;
                        removed |= goes;
                        !goes
                    });
                }
                if removed {
                    let rule = "the namespace and the name of the Service";
                    let evidence = Evidence::Name { name: name.clone(), rule };
                    let part = format!("backend pool {name}");
                    self.note_removal(key, part, evidence, Change::PoolRemoved { pool: name });
                }
            }
        }
    }

    /// The pools of single Services that exist here: a rule of the Service refers to each.
    pub(super) fn local_pools(&mut self) -> Vec<LocalPool<'a>> {
        let Some(services) = self.known.local_services.filter(|services| !services.is_empty()) else {
            return Vec::new();
        };
        let mut used: BTreeSet<(String, String)> = BTreeSet::new();
        for rule in self.rules().iter() {
            let pool = rule.properties.as_ref().and_then(|p| p.backend_address_pool.as_ref()?.id.as_ref());
            let base = text(&rule.name).split('-').next().unwrap_or_default();
            used.extend(pool.map(|pool| (base.to_lowercase(), pool.name().to_lowercase())));
        }
        let pools = services.iter().flat_map(|service| {
            Family::BOTH.map(|family| LocalPool {
                name: local_pool::name(&service.key, family),
                family,
                service,
            })
        });
        pools.filter(|pool| used.contains(&(pool.service.base_name.clone(), pool.name.clone()))).collect()
    }

    /// Updates the members of the pools of single Services to the nodes with their endpoints. Does nothing if nodes or
    /// endpoints are unknown. A pool of a Service without endpoints is empty.
    pub(super) fn fill_local_pools(&mut self) {
        let cluster = self.cluster;
        let Some(nodes) = self.known.nodes else { return };
        let pools = self.local_pools();
        if pools.is_empty() {
            return;
        }
        let preconfigured = cluster.has_preconfigured_pools(self.balancer);
        let observed = self.observed;
        let network = cluster.virtual_network_id();
        let of_nodes: BTreeMap<Family, BTreeMap<&str, IpAddr>> = Family::BOTH
            .map(|family| {
                let members = backend_pool::members_by_address(cluster, nodes, family);
                (family, members.into_iter().map(|(address, node)| (node, address)).collect())
            })
            .into();
        for LocalPool { name, family, service } in pools {
            let is_old = observed.is_some_and(|document| pool_in(document, &name).is_some());
            if preconfigured && is_old {
                continue;
            }
            let wanted: Members<'_> = service
                .nodes
                .iter()
                .filter_map(|node| of_nodes.get(&family)?.get_key_value(node.as_str()))
                .map(|(node, address)| (*address, *node))
                .collect();
            let pools = self.properties().backend_address_pools.iter_mut().flatten();
            let Some(pool) = pools.into_iter().find(|pool| is_named(&pool.name, &name)) else { continue };
            // A pool is emptied only if there are no endpoints, not because nodes are unknown or have no address yet.
            let may_be_empty = service.nodes.is_empty();
            let changes =
                fill(&name, pool.properties.get_or_insert_default(), &wanted, &network, may_be_empty);
            self.changes.extend(changes);
        }
    }
}
