//! The nodes of each load balancer, where load balancers share the cluster's nodes.

use std::collections::{BTreeMap, BTreeSet};

use k8s::{Notice, ObjectKey};

use crate::model::Balancer;
use crate::model::words::name_some;

/// The nodes of each entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct NodePlaces {
    /// The nodes by the entry's name in lower case.
    pub(crate) by_entry: BTreeMap<String, BTreeSet<String>>,
    /// The nodes that no existing load balancer is for.
    pub(crate) nowhere: BTreeSet<String>,
    /// The nodes for whose machines Azure has not reported the set yet.
    pub(crate) unknown: BTreeSet<String>,
}

impl NodePlaces {
    /// The names of the nodes of a load balancer.
    pub(crate) fn names_on(&self, balancer: &Balancer) -> BTreeSet<String> {
        self.of(balancer).cloned().unwrap_or_default()
    }

    fn of(&self, balancer: &Balancer) -> Option<&BTreeSet<String>> {
        let name = match balancer.flavor.is_internal() {
            true => crate::model::balancer::without_suffix(&balancer.name),
            false => &balancer.name,
        };
        self.by_entry.get(&name.to_ascii_lowercase())
    }

    /// The nodes of a load balancer.
    pub fn on(&self, balancer: &Balancer) -> impl Iterator<Item = &str> {
        self.of(balancer).into_iter().flatten().map(String::as_str)
    }

    /// Whether any node has a place.
    pub(crate) fn has_any(&self) -> bool {
        self.by_entry.values().any(|nodes| !nodes.is_empty())
    }

    /// The nodes that have no place yet, or may get another, because Azure has not reported the sets of their machines.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.unknown.iter().map(String::as_str)
    }

    /// The notice for the owner of a Service about nodes that are on no load balancer.
    pub fn notice(&self, service: &ObjectKey) -> Option<Notice> {
        let nodes: Vec<&str> = self.nowhere.iter().map(String::as_str).collect();
        (!nodes.is_empty()).then(|| Notice {
            service: service.clone(),
            warning: true,
            reason: "FailedToFindLoadBalancerForNode",
            message: format!(
                "failed to find a load balancer for {}: no entry of multipleStandardLoadBalancerConfigurations whose \
                 load balancer exists has their machine set as primaryVMSet, a nodeSelector that fits, or no \
                 nodeSelector",
                name_some(&nodes)
            ),
        })
    }
}

/// The nodes that may be in the pools of one of several load balancers now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct NodeShare {
    pub(crate) nodes: BTreeSet<String>,
    /// Whether pools may become empty, because other load balancers have the nodes.
    pub(crate) may_be_empty: bool,
}

impl NodeShare {
    /// Whether a node may be in its pools.
    pub fn has(&self, node: &str) -> bool {
        self.nodes.contains(node)
    }

    /// Whether no node may be in its pools.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}
