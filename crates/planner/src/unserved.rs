//! Nodes that belong in a backend pool and are not in it: the reason, and whether it is temporary.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use azure_types::{NetworkInterface, ResourceId, ScaleSetInstance};
use k8s::{Node, Notice, ObjectKey};

use crate::backend_pool::{PoolMembership, is_eligible};
use crate::cluster::{Cluster, Family};
use crate::holder::{Place, place_of};
use crate::instance::{self, ProviderId};
use crate::interface::{obstacle, primary_interface};
use crate::machines::{Machines, instance_id, interfaces_by_machine};
use crate::placement::without_suffix;
use crate::plan::name_some;

/// Why a node is not in a pool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Azure reports no instance of its scale set, or no interface of its virtual machine: it is being created or
    /// deleted.
    NoMachine,
    /// Its machine is not running; it joins once it runs.
    NotRunning,
    /// The primary interface of its machine has no address of this family.
    NoAddress(Family),
    /// Its virtual machine has several network interfaces, and none is marked as primary.
    NoPrimaryInterface,
    /// Azure could not finish the last write of its virtual machine's network interface, and refuses further writes.
    InterfaceFailed,
    /// The load balancer is a basic one, which does not reach machines outside of uniform scale sets.
    BasicLoadBalancer,
    /// Azure refuses the write by which its machine would join; with Azure's message.
    Refused(String),
    /// Its machine is in pools of another load balancer.
    OtherLoadBalancer {
        /// That load balancer's name.
        name: String,
        /// The remedy, which leaves the machine in that load balancer.
        remedy: String,
    },
}

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

impl Reason {
    /// Its machine is in pools of another load balancer, which may be its route to the internet. The remedy moves the
    /// Services to that load balancer, or adds the machine by its address.
    pub(crate) fn other_load_balancer(cluster: &Cluster, balancer: &ResourceId) -> Self {
        let config = &cluster.config;
        let name = without_suffix(balancer.name());
        let remedy = if config.uses_multiple_standard_load_balancers() {
            format!(
                "add an entry {name} to multipleStandardLoadBalancerConfigurations in the cloud configuration"
            )
        } else if config.uses_standard_load_balancer() {
            let own = cluster.network_group(config.load_balancer_resource_group());
            let group = balancer.parent().filter(|group| *group != own);
            let group = group.map(|group| format!(" and loadBalancerResourceGroup to {}", group.name()));
            format!(
                "set loadBalancerName to {name}{} in the cloud configuration, so that Services have their frontends on \
                 it, or set loadBalancerBackendPoolConfigurationType to nodeIP, so that pools hold IP addresses",
                group.unwrap_or_default()
            )
        } else {
            "set loadBalancerSku to standard and loadBalancerBackendPoolConfigurationType to nodeIP in the cloud \
             configuration, so that pools hold IP addresses"
                .to_owned()
        };
        Self::OtherLoadBalancer { name: balancer.name().to_owned(), remedy }
    }

    /// Whether the reason may pass without a change of the machine, so that a retry makes sense.
    pub fn may_pass(&self) -> bool {
        self.is_ordinary() || matches!(self, Self::InterfaceFailed | Self::Refused(_))
    }

    /// Whether the reason is part of every start and stop of a machine, so that no notice is needed.
    fn is_ordinary(&self) -> bool {
        matches!(self, Self::NoMachine | Self::NotRunning)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMachine => f.write_str("Azure shows no machine for them"),
            Self::NotRunning => f.write_str("their machines do not run"),
            Self::NoAddress(family) => write!(
                f,
                "the primary network interface of their machines has no {family} address: add an {family} IP \
                 configuration to it"
            ),
            Self::NoPrimaryInterface => f.write_str(
                "their machines have several network interfaces, and none is primary: mark one as primary",
            ),
            Self::InterfaceFailed => f.write_str(
                "the network interface of their machines is in provisioning state Failed: repair it in Azure",
            ),
            Self::BasicLoadBalancer => f.write_str(
                "a basic load balancer reaches no machines outside of uniform scale sets: set loadBalancerSku to \
                 standard",
            ),
            Self::Refused(words) => {
                write!(f, "Azure does not let their machines join its backend pools: {words}")
            }
            Self::OtherLoadBalancer { name, remedy } => write!(
                f,
                "their machines are in backend pools of load balancer {name}, and their network interfaces join no \
                 other. Leave them there, because they may reach the internet through it: {remedy}"
            ),
        }
    }
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
