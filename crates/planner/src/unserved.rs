//! Nodes that belong in a backend pool and are not in it: why, and whether that passes by itself.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use azure_types::{ResourceId, ScaleSet, ScaleSetInstance};
use k8s::{Node, Notice, ObjectKey};

use crate::backend_pool::{PoolMembership, is_eligible};
use crate::cluster::{Cluster, Family};
use crate::instance::{self, ProviderId};
use crate::plan::name_some;
use crate::scale_set::{Place, is_flexible, place_of};

/// Why a node is not in a pool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Its machine is standalone, or belongs to an availability set or a flexible scale set.
    NotUniform,
    /// No instance of its scale set is known by its id: it is about to come or to go.
    NoMachine,
    /// Its machine does not run; it joins when it has started.
    NotRunning,
    /// The primary interface of its machine has no address of this family.
    NoAddress(Family),
    /// Its machine serves another load balancer.
    OtherLoadBalancer(String),
}

/// A node that is not in a pool in which it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unserved {
    /// The node's name.
    pub node: String,
    /// The pool's id.
    pub pool: ResourceId,
    /// Why.
    pub reason: Reason,
}

impl Reason {
    /// Whether it passes without a change of the machine: then it is worth looking again.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::NoMachine | Self::NotRunning)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUniform => f.write_str(
                "their machines are no instances of a uniform scale set, and this release puts no others into \
                 backend pools",
            ),
            Self::NoMachine => f.write_str("Azure shows no machine for them"),
            Self::NotRunning => f.write_str("their machines do not run"),
            Self::NoAddress(family) => write!(
                f,
                "the primary network interface of their machines has no {family} address: add an {family} IP \
                 configuration to it"
            ),
            Self::OtherLoadBalancer(name) => {
                write!(f, "their machines serve load balancer {name}: take them out of its backend pools")
            }
        }
    }
}

/// Finds the eligible nodes that are not in pools in which they belong. `scale_sets` are those of the cluster; the
/// instances of a set may be missing if it has no node.
pub fn find<S: Borrow<ScaleSet>, I: Borrow<ScaleSetInstance>>(
    cluster: &Cluster,
    nodes: &[Arc<Node>],
    scale_sets: &[(S, Vec<I>)],
    memberships: &[PoolMembership],
) -> Vec<Unserved> {
    let mut machines: HashMap<(&ResourceId, &str), &ScaleSetInstance> = HashMap::new();
    let mut flexible = Vec::new();
    for (set, instances) in scale_sets {
        let set = set.borrow();
        let Some(id) = &set.id else { continue };
        if is_flexible(set) {
            flexible.push(id);
        }
        for machine in instances.iter().map(Borrow::borrow) {
            let number = machine.instance_id.as_deref().or_else(|| machine.id.as_ref().map(ResourceId::name));
            machines.extend(number.map(|number| ((id, number), machine)));
        }
    }
    let mut found = Vec::new();
    for node in nodes.iter().filter(|node| is_eligible(cluster, node)) {
        let machine = match instance::parse_provider_id(&node.spec.provider_id) {
            ProviderId::Machine(_) => Err(Reason::NotUniform),
            ProviderId::Instance(name) if flexible.contains(&&name.scale_set) => Err(Reason::NotUniform),
            ProviderId::Instance(name) => {
                let machine = machines.get(&(&name.scale_set, name.instance_id.as_str()));
                machine.copied().ok_or(Reason::NoMachine)
            }
            // A node without a provider id is not initialised; with a foreign one it is none of ours.
            ProviderId::Other => continue,
        };
        for membership in memberships.iter().filter(|membership| membership.member) {
            let reason = match machine {
                Err(ref reason) => reason.clone(),
                Ok(machine) if instance::is_inactive(cluster, machine) => Reason::NotRunning,
                Ok(machine) => match place_of(machine, membership) {
                    Place::Member => continue,
                    Place::Free => Reason::NoMachine,
                    Place::NoAddress => Reason::NoAddress(membership.family),
                    Place::Elsewhere(name) => Reason::OtherLoadBalancer(name),
                },
            };
            found.push(Unserved { node: node.name().to_owned(), pool: membership.pool.clone(), reason });
        }
    }
    found
}

/// What to tell the owner of a Service about nodes that get no traffic and will not by themselves: one event for
/// each reason.
pub fn notices(service: &ObjectKey, unserved: &[Unserved]) -> Vec<Notice> {
    let mut reasons: Vec<&Reason> =
        unserved.iter().map(|one| &one.reason).filter(|reason| !reason.may_pass()).collect();
    reasons.sort();
    reasons.dedup();
    reasons
        .into_iter()
        .map(|reason| {
            let mut nodes: Vec<&str> =
                unserved.iter().filter(|one| one.reason == *reason).map(|one| one.node.as_str()).collect();
            nodes.sort_unstable();
            nodes.dedup();
            let named = name_some(&nodes);
            let message = format!("the load balancer sends no traffic to nodes {named}: {reason}");
            Notice { service: service.clone(), warning: true, reason: "NodesWithoutTraffic", message }
        })
        .collect()
}
