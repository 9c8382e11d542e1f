//! From an AzureCluster to goals: one function for each kind of resource, none of which depends on the order of the
//! others.

mod bastion;
mod completion;
mod contact;
mod dns_name;
mod endpoint;
pub(crate) mod first;
pub(crate) mod group;
mod inventory;
mod load_balancer;
mod memory;
mod nat_gateway;
pub(crate) mod network;
mod private_dns;
pub(crate) mod private_endpoint;
mod public_ip;
mod read_back;
mod rival;
mod route_table;
mod security_group;

pub use completion::complete;
pub use contact::{contact, linked_already, links_of_zones, unrecorded};
pub(crate) use dns_name::hash;
pub use dns_name::{api_server_name, dns_suffix};
pub use endpoint::{Endpoint, endpoint};
pub use inventory::{Inventory, resources_of};
pub use load_balancer::{control_plane_outbound_pool_name, internal_pool_name, pool_name};
pub(crate) use memory::DECLARED_BY;
pub use memory::{Memory, RESOURCES, SECURITY_RULES, TAGS};
pub(crate) use public_ip::goal_of as public_ip_goal;
pub use read_back::read_back;
pub use rival::{Claim, rival};

use azure_types::ResourceId;

use crate::goal::{Goal, OwnershipRule};
use crate::observed::{Observation, ObservedResources};
use crate::scope::ClusterScope;
use crate::service;

/// The annotation of AzureClusters with the ID of the cluster: the UID that the object had at its first reconcile. UIDs
/// change with `clusterctl move`, annotations stay.
pub const CLUSTER_ID: &str = "sigs.k8s.io/cluster-api-provider-azure-cluster-id";

/// The goals of the cluster, including withdrawn resources that are deleted at once. `memory` is the configuration that
/// was applied before.
pub fn goals(scope: ClusterScope<'_>, memory: &Memory) -> Vec<Goal> {
    let mut goals = with_memory(scope, declared(scope, memory), memory);
    // Once the cluster was as desired, a name that Azure refuses does not delay repairs.
    if memory.borne.is_empty() {
        private_dns::wait(&mut goals);
    }
    goals
}

/// These goals of a declaration, and the effects of what was applied before.
pub(crate) fn with_memory(scope: ClusterScope<'_>, mut goals: Vec<Goal>, memory: &Memory) -> Vec<Goal> {
    goals.iter_mut().for_each(|goal| goal.without_tags(&memory.tags));
    let gone = memory.gone(scope, &goals, false);
    goals.extend(gone);
    memory.remind(&mut goals);
    first::wait(&scope.group(), &mut goals);
    goals
}

fn declared(scope: ClusterScope<'_>, memory: &Memory) -> Vec<Goal> {
    let mut goals = group::goals(scope);
    goals.extend(network::goals(scope));
    goals.extend(security_group::goals(scope, memory));
    goals.extend(route_table::goals(scope));
    goals.extend(public_ip::goals(scope));
    goals.extend(nat_gateway::goals(scope));
    goals.extend(load_balancer::goals(scope));
    goals.extend(private_dns::goals(scope));
    goals.extend(private_endpoint::goals(scope, &scope.group()));
    goals.extend(bastion::goals(scope));
    goals
}

/// The memory once everything declared is applied.
pub fn remembered(scope: ClusterScope<'_>) -> Memory {
    Memory::after(scope, &declared(scope, &Memory::default()))
}

/// The memory once everything is applied, with the owner tags observed in Azure.
pub fn remembered_of(scope: ClusterScope<'_>, observed: &ObservedResources) -> Memory {
    let declared = declared(scope, &Memory::default());
    Memory::after(scope, &declared).bearing(scope, &declared, observed)
}

/// The resource groups of a cluster: its own, and that of its network if that is another one.
pub fn groups(scope: ClusterScope<'_>) -> Vec<ResourceId> {
    group::ids(scope)
}

/// How a cluster is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its resource groups are ours and are deleted with everything in them. Resources elsewhere are deleted before.
    WholeGroups,
    /// Its resources are deleted one by one; a group that is foreign, or contains resources not proven to be the
    /// cluster's, stays.
    OneByOne,
    /// The owner of the groups is unknown.
    Unknown,
}

/// Decides how the cluster is deleted: by resource groups only if the Cluster itself is deleted and all groups are
/// ours.
pub fn end(scope: ClusterScope<'_>, cluster_is_deleted: bool, observed: &ObservedResources) -> End {
    if !cluster_is_deleted {
        return End::OneByOne;
    }
    let mut end = End::WholeGroups;
    for group in group::ids(scope) {
        match observed.get(&group) {
            Observation::Present(held) if scope.claimant().owns(held) => {}
            Observation::Absent => {}
            Observation::Present(_) => return End::OneByOne,
            Observation::Unknown => end = End::Unknown,
        }
    }
    end
}

/// The goals of a deletion, given the inventory of its groups. A group with resources that are not proven to be the
/// cluster's stays; then the proven ones in it are deleted one by one.
pub fn ends_beside(scope: ClusterScope<'_>, memory: &Memory, end: End, inventory: &Inventory) -> Vec<Goal> {
    beside(ends(scope, memory, end), end, inventory)
}

/// These goals of a deletion, given the inventory of the groups.
pub(crate) fn beside(mut goals: Vec<Goal>, end: End, inventory: &Inventory) -> Vec<Goal> {
    goals.retain(|goal| {
        *goal.service != service::GROUP || !inventory.others().any(|other| other.is_within(&goal.id))
    });
    if end == End::OneByOne {
        let more: Vec<Goal> =
            inventory.ends().into_iter().filter(|more| goals.iter().all(|goal| goal.id != more.id)).collect();
        goals.extend(more);
    }
    goals
}

/// The goals of a deletion: all resources that the cluster has ever recorded.
pub fn ends(scope: ClusterScope<'_>, memory: &Memory, end: End) -> Vec<Goal> {
    ends_of(scope, declared(scope, memory), memory, end)
}

/// The goals of a deletion, with these goals of the declaration.
pub(crate) fn ends_of(scope: ClusterScope<'_>, declared: Vec<Goal>, memory: &Memory, end: End) -> Vec<Goal> {
    let groups = match end {
        End::Unknown => return Vec::new(),
        End::WholeGroups => group::ids(scope),
        End::OneByOne => Vec::new(),
    };
    // A managed cluster is deleted before its group: a failure is reported as its own. Its extensions go with it.
    let goes_along = |goal: &Goal| {
        let with_group = |group: &ResourceId| goal.id != *group && goal.id.is_within(group);
        *goal.service == service::CLUSTER_EXTENSIONS
            || (*goal.service != service::MANAGED_CLUSTER && groups.iter().any(with_group))
    };
    let mut goals = declared;
    let gone = memory.gone(scope, &goals, true);
    goals.retain(|goal| memory.has(&goal.id));
    goals.extend(gone);
    memory.remind(&mut goals);
    goals
        .into_iter()
        .filter(|goal| !goes_along(goal))
        // A record is deleted with its zone. In a user's zone it is deleted only if it bears the cluster's ID.
        .map(|goal| match *goal.service == service::DNS_RECORD {
            true => goal.owned(OwnershipRule::Marked),
            false => goal,
        })
        .map(Goal::ended)
        .collect()
}
