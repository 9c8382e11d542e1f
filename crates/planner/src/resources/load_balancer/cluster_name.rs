//! Whether the cluster already has load balancers under another name than the configured one.
//!
//! Load balancers are named after the cluster, so a wrong `--cluster-name` creates everything a second time: machines
//! stay with the first load balancer, addresses change, and the resources of the first one lose their owner. The names
//! of frontends and rules are derived from the UIDs of Services: a load balancer that holds frontends or rules of this
//! cluster's Services belongs to this cluster, whatever its name. Nothing is written for a Service that is served there
//! (LB-453).

use std::collections::BTreeMap;
use std::sync::Arc;

use azure_types::{LoadBalancer, ResourceId};
use k8s::{ObjectKey, Service};

use crate::model::Cluster;
use crate::model::balancer::without_suffix;
use crate::model::names::{base_name, is_rule_of};
use crate::outcome::OtherName;

/// The load balancers of the group, split by whether their names are the cluster's.
#[derive(Debug)]
pub struct LoadBalancersByName<'a> {
    cluster: &'a Cluster,
    own: Vec<&'a LoadBalancer>,
    others: Vec<(&'a ResourceId, &'a LoadBalancer)>,
}

impl<'a> LoadBalancersByName<'a> {
    /// Sorts the load balancers of the group. `services` are all known Services of the cluster.
    pub fn new(
        cluster: &'a Cluster,
        load_balancers: impl IntoIterator<Item = &'a LoadBalancer>,
        services: &[Arc<Service>],
    ) -> Self {
        let mut sorted = Self { cluster, own: Vec::new(), others: Vec::new() };
        for load_balancer in load_balancers {
            match &load_balancer.id {
                Some(_) if cluster.balancer_of(load_balancer, services).is_some() => {
                    sorted.own.push(load_balancer)
                }
                Some(id) => sorted.others.push((id, load_balancer)),
                None => {}
            }
        }
        sorted
    }

    /// The load balancers of other names that serve any of these Services.
    pub fn serving(&self, services: &[Arc<Service>]) -> Option<OtherName> {
        if self.others.is_empty() {
            return None;
        }
        let keys: BTreeMap<String, ObjectKey> = services
            .iter()
            .filter_map(|service| Some((base_name(service.uid())?.to_ascii_lowercase(), service.key())))
            .collect();
        let found = self.others.iter().flat_map(|(id, load_balancer)| {
            let bases = names_in(load_balancer).filter_map(|name| name.split('-').next());
            bases.filter_map(|base| Some((id.name(), keys.get(&base.to_ascii_lowercase())?.clone())))
        });
        self.other_name(found)
    }

    /// The load balancers of other names that serve one Service, unless one of the cluster's name does.
    pub fn serving_instead(&self, key: &ObjectKey, base: &str) -> Option<OtherName> {
        let holds = |load_balancer: &LoadBalancer| names_in(load_balancer).any(|name| is_rule_of(name, base));
        let others = self.others.iter().filter(|(_, load_balancer)| holds(load_balancer));
        let found = self.other_name(others.map(|(id, _)| (id.name(), key.clone())))?;
        (!self.own.iter().any(|load_balancer| holds(load_balancer))).then_some(found)
    }

    /// Whether there are load balancers, but none of the cluster's name.
    pub fn are_all_others(&self) -> bool {
        self.own.is_empty() && !self.others.is_empty()
    }

    fn other_name<'b>(&self, found: impl Iterator<Item = (&'b str, ObjectKey)>) -> Option<OtherName> {
        let (mut names, mut services): (Vec<String>, Vec<ObjectKey>) =
            found.map(|(name, key)| (without_suffix(name).to_owned(), key)).unzip();
        names.sort();
        names.dedup();
        services.sort();
        services.dedup();
        let configured = &self.cluster.config.load_balancer_name;
        let (given, setting) = match configured.is_empty() {
            true => (self.cluster.name.clone(), "--cluster-name"),
            false => (configured.clone(), "loadBalancerName"),
        };
        (!names.is_empty()).then_some(OtherName { given, found: names, services, setting })
    }
}

/// The names in a load balancer that begin with the base name of a Service.
fn names_in(load_balancer: &LoadBalancer) -> impl Iterator<Item = &str> {
    load_balancer.properties.iter().flat_map(|properties| {
        let frontends = properties.frontend_ip_configurations.iter().flatten();
        let rules = properties.load_balancing_rules.iter().flatten();
        let frontends = frontends.filter_map(|frontend| frontend.name.as_deref());
        frontends.chain(rules.filter_map(|rule| rule.name.as_deref()))
    })
}
