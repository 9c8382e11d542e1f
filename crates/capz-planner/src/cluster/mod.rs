//! From an AzureCluster to goals: a function for each kind of resource, none of which knows the others' order.

mod bastion;
mod completion;
mod dns_name;
mod endpoint;
mod group;
mod load_balancer;
mod memory;
mod nat_gateway;
mod network;
mod private_dns;
mod private_endpoint;
mod public_ip;
mod read_back;
mod route_table;
mod security_group;

pub use completion::complete;
pub(crate) use dns_name::hash;
pub use dns_name::{api_server_name, dns_suffix};
pub use endpoint::{Endpoint, endpoint};
pub use load_balancer::{control_plane_outbound_pool_name, internal_pool_name, pool_name};
pub use memory::{Memory, RESOURCES, SECURITY_RULES, TAGS};
pub(crate) use public_ip::goal_of as public_ip_goal;
pub use read_back::read_back;

use azure_types::ResourceId;

use crate::goal::Goal;
use crate::observed::{Observed, Seen};
use crate::scope::Scope;
use crate::tags;

/// What the cluster wants, and what of it goes at once that it wants no longer. `memory` is what was applied before.
pub fn goals(scope: Scope<'_>, memory: &Memory) -> Vec<Goal> {
    let mut goals = declared(scope, memory);
    goals.iter_mut().for_each(|goal| goal.without_tags(&memory.tags));
    let gone = memory.gone(&goals, false);
    goals.extend(gone);
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

/// How a cluster ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its resource groups are ours and go with all that is in them. What lies elsewhere goes before.
    WholeGroups,
    /// Its resources go one by one; the group stays if it is somebody else's.
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
            Seen::Present(held) if tags::are_ours(held, scope.cluster) => {}
            Seen::Absent => {}
            Seen::Present(_) => return End::OneByOne,
            Seen::Unknown => end = End::Unknown,
        }
    }
    end
}

/// What is to go when the cluster ends like this: what it wants, and what it has ever wanted.
pub fn ends(scope: Scope<'_>, memory: &Memory, end: End) -> Vec<Goal> {
    let groups = match end {
        End::Unknown => return Vec::new(),
        End::WholeGroups => group::ids(scope),
        End::OneByOne => Vec::new(),
    };
    let goes_along = |id: &ResourceId| groups.iter().any(|group| id != group && id.is_within(group));
    let mut goals = declared(scope, memory);
    let gone = memory.gone(&goals, true);
    goals.extend(gone);
    goals
        .into_iter()
        // A record goes with its zone, and stays in somebody else's.
        .filter(|goal| !goes_along(&goal.id) && *goal.service != crate::service::DNS_RECORD)
        .map(Goal::ended)
        .collect()
}
