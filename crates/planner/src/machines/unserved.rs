//! Nodes that belong in a backend pool and are not in it: the reason, and whether it is temporary.

use std::collections::HashMap;
use std::sync::Arc;

use azure_types::{NetworkInterface, ResourceId, ScaleSetInstance};
use k8s::{Node, Notice, ObjectKey};
use machine::{self as instance, ProviderId};

use super::backend_pool::{PoolMembership, is_eligible};
use super::holder::{Place, place_of};
use super::interface::{obstacle, primary_interface};
use super::inventory::Machines;
use super::nodes::{instance_id, interfaces_by_machine};
pub use super::obstacle::Reason;
use crate::model::Cluster;
use crate::model::words::name_some;

/// A node that is not in a pool that it belongs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unserved {
    /// The node's name.
    pub node: String,
    /// The pool's id.
    pub pool: ResourceId,
    /// The reason.
    pub reason: Reason,
}

/// The document that makes a node's machine a member of pools.
enum Member<'a> {
    Instance(&'a ScaleSetInstance),
    Interface(&'a NetworkInterface),
}

impl Member<'_> {
    /// Why the machine is not in a pool; `None` if it is.
    fn reason(&self, cluster: &Cluster, membership: &PoolMembership) -> Option<Reason> {
        let place = match self {
            Self::Instance(machine)
                if instance::is_inactive(*machine, cluster.lists_machines_without_views()) =>
            {
                return Some(Reason::NotRunning);
            }
            Self::Instance(machine) => {
                let profile =
                    machine.properties.as_ref().and_then(|p| p.network_profile_configuration.as_deref());
                profile.map_or(Place::NoAddress, |profile| place_of(profile, membership))
            }
            Self::Interface(interface) => place_of(*interface, membership),
        };
        let obstacle = match self {
            Self::Interface(interface) => obstacle(cluster, interface),
            Self::Instance(_) => None,
        };
        match place {
            Place::Member => None,
            _ if obstacle.is_some() => obstacle,
            Place::Free => Some(Reason::NoMachine),
            Place::NoAddress => Some(Reason::NoAddress(membership.family)),
            Place::Elsewhere(balancer) => Some(Reason::other_load_balancer(cluster, &balancer)),
        }
    }
}

/// Finds the eligible nodes that are not in pools that they belong in. `machines` are those of the cluster; the
/// instances of a set without nodes may be missing.
pub fn find(
    cluster: &Cluster,
    nodes: &[Arc<Node>],
    machines: &Machines,
    memberships: &[PoolMembership],
) -> Vec<Unserved> {
    if !memberships.iter().any(|membership| membership.member) {
        return Vec::new();
    }
    let mut instances: HashMap<ResourceId, &ScaleSetInstance> = HashMap::new();
    for (set, of_set) in &machines.scale_sets {
        let Some(id) = &set.id else { continue };
        instances.extend(of_set.iter().filter_map(|machine| Some((instance_id(id, machine)?, &**machine))));
    }
    let interfaces = interfaces_by_machine(&machines.interfaces);
    let mut found = Vec::new();
    for node in nodes.iter().filter(|node| is_eligible(cluster, node)) {
        let member = match instance::parse_provider_id(&node.spec.provider_id) {
            ProviderId::Instance(name) => {
                instances.get(&name.id()).map(|machine| Member::Instance(machine)).ok_or(Reason::NoMachine)
            }
            ProviderId::Machine(id) => {
                let interfaces = interfaces.get(&id).map(Vec::as_slice).unwrap_or_default();
                primary_interface(interfaces).map(Member::Interface)
            }
            // A node without a provider ID is not initialised; a foreign provider ID names no machine of the cluster.
            ProviderId::Unreadable | ProviderId::Other => continue,
        };
        for membership in memberships.iter().filter(|membership| membership.member && membership.is_for(node))
        {
            let reason = match &member {
                Err(reason) => Some(reason.clone()),
                Ok(member) => member.reason(cluster, membership),
            };
            let (node, pool) = (node.name().to_owned(), membership.pool.clone());
            found.extend(reason.map(|reason| Unserved { node, pool, reason }));
        }
    }
    found
}

/// The notices for the owner of a Service about nodes that get no traffic and need a change to get it: one event per
/// reason.
pub fn notices(service: &ObjectKey, unserved: &[Unserved]) -> Vec<Notice> {
    let mut reasons: Vec<&Reason> =
        unserved.iter().map(|one| &one.reason).filter(|reason| !reason.is_ordinary()).collect();
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
