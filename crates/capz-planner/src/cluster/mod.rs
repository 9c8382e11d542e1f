//! From an AzureCluster to goals: a function for each kind of resource, none of which knows the others' order.

mod bastion;
mod completion;
mod contact;
mod dns_name;
mod endpoint;
pub(crate) mod first;
mod group;
mod inventory;
mod load_balancer;
mod memory;
mod nat_gateway;
mod network;
mod private_dns;
mod private_endpoint;
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
pub use memory::{Memory, RESOURCES, SECURITY_RULES, TAGS};
pub(crate) use public_ip::goal_of as public_ip_goal;
pub use read_back::read_back;
pub use rival::{Claim, rival};

use azure_types::ResourceId;

use crate::goal::{Goal, OwnershipRule};
use crate::observed::{Observed, Seen};
use crate::scope::Scope;

/// The annotation of AzureClusters with the id of the cluster: the UID that the object had when it was first worked on. UIDs change
/// with `clusterctl move`, annotations stay.
pub const CLUSTER_ID: &str = "sigs.k8s.io/cluster-api-provider-azure-cluster-id";

/// What the cluster wants, and what of it goes at once that it wants no longer. `memory` is what was applied before.
pub fn goals(scope: Scope<'_>, memory: &Memory) -> Vec<Goal> {
    let mut goals = declared(scope, memory);
    goals.iter_mut().for_each(|goal| goal.without_tags(&memory.tags));
    let gone = memory.gone(scope, &goals, false);
    goals.extend(gone);
    memory.remind(&mut goals);
    first::wait(&scope.group(), &mut goals);
    // Once the cluster was as wanted, a name that Azure refuses holds up no repair.
    if memory.borne.is_empty() {
        private_dns::wait(&mut goals);
    }
    goals
}

fn declared(scope: Scope<'_>, memory: &Memory) -> Vec<Goal> {
    let mut goals = group::goals(scope);
    goals.extend(network::goals(scope));
    goals.extend(security_group::goals(scope, memory));
    goals.extend(route_table::goals(scope));
    goals.extend(public_ip::goals(scope));
    goals.extend(nat_gateway::goals(scope));
    goals.extend(load_balancer::goals(scope));
    goals.extend(private_dns::goals(scope));
    goals.extend(private_endpoint::goals(scope));
    goals.extend(bastion::goals(scope));
    goals
}

/// What is to be remembered once everything that the cluster declares is applied.
pub fn remembered(scope: Scope<'_>) -> Memory {
    Memory::after(scope, &declared(scope, &Memory::default()))
}

/// The same, now that everything is applied and Azure holds that.
pub fn remembered_of(scope: Scope<'_>, observed: &Observed) -> Memory {
    let declared = declared(scope, &Memory::default());
    Memory::after(scope, &declared).bearing(scope, &declared, observed)
}

/// The resource groups of a cluster: its own, and that of its network where it is another one.
pub fn groups(scope: Scope<'_>) -> Vec<ResourceId> {
    group::ids(scope)
}

/// How a cluster ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its resource groups are ours and go with all that is in them. What lies elsewhere goes before.
    WholeGroups,
    /// Its resources go one by one; a group stays that is another's, or holds what is not proven to be the cluster's.
    OneByOne,
    /// It is not known whose the groups are.
    Unknown,
}

/// How the cluster ends: with its groups only if the Cluster itself is deleted and all of them are ours.
pub fn end(scope: Scope<'_>, cluster_is_deleted: bool, observed: &Observed) -> End {
    if !cluster_is_deleted {
        return End::OneByOne;
    }
    let mut end = End::WholeGroups;
    for group in group::ids(scope) {
        match observed.see(&group) {
            Seen::Present(held) if scope.claimant().owns(held) => {}
            Seen::Absent => {}
            Seen::Present(_) => return End::OneByOne,
            Seen::Unknown => end = End::Unknown,
        }
    }
    end
}

/// What is to go when the cluster ends like this, and its groups hold that. A group that holds what is not proven to be the
/// cluster's stays; then everything in it that is proven goes by itself.
pub fn ends_beside(scope: Scope<'_>, memory: &Memory, end: End, inventory: &Inventory) -> Vec<Goal> {
    let mut goals = ends(scope, memory, end);
    goals.retain(|goal| {
        *goal.service != crate::service::GROUP || !inventory.others().any(|other| other.is_within(&goal.id))
    });
    if end == End::OneByOne {
        let more: Vec<Goal> =
            inventory.ends().into_iter().filter(|more| goals.iter().all(|goal| goal.id != more.id)).collect();
        goals.extend(more);
    }
    goals
}

/// What is to go when the cluster ends like this: what it has ever wanted, as it has recorded.
pub fn ends(scope: Scope<'_>, memory: &Memory, end: End) -> Vec<Goal> {
    let groups = match end {
        End::Unknown => return Vec::new(),
        End::WholeGroups => group::ids(scope),
        End::OneByOne => Vec::new(),
    };
    let goes_along = |id: &ResourceId| groups.iter().any(|group| id != group && id.is_within(group));
    let mut goals = declared(scope, memory);
    let gone = memory.gone(scope, &goals, true);
    goals.retain(|goal| memory.has(&goal.id));
    goals.extend(gone);
    memory.remind(&mut goals);
    goals
        .into_iter()
        .filter(|goal| !goes_along(&goal.id))
        // A record goes with its zone. In a user's zone it goes only if it bears the cluster's id.
        .map(|goal| match *goal.service == crate::service::DNS_RECORD {
            true => goal.owned(OwnershipRule::Marked),
            false => goal,
        })
        .map(Goal::ended)
        .collect()
}
