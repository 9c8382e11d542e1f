//! The goals of a managed cluster and of its deletion.

use serde_json::{Value, json};

use super::document::document;
use super::scope::ManagedScope;
use super::{extension, fleet_member, network_profile};
use crate::agent_pool::AgentPool;
use crate::cluster::{
    End, Inventory, Memory, beside, ends_of, group, network, private_endpoint, with_memory,
};
use crate::custom_headers;
use crate::document::{list, without_nulls};
use crate::goal::{Goal, GoalError, OwnershipRule};
use crate::observed::{Observation, ObservedResources};
use crate::patches;
use crate::service;

/// The members of a managed cluster that Azure cannot change: a difference is reported.
const FIXED: [&str; 6] = [
    "/properties/dnsPrefix",
    "/properties/nodeResourceGroup",
    "/properties/networkProfile/dnsServiceIP",
    "/properties/networkProfile/loadBalancerSku",
    "/properties/networkProfile/networkPlugin",
    "/properties/networkProfile/serviceCidr",
];

/// The goals of the cluster, including withdrawn resources that are deleted at once. `pools` are all its node pools,
/// `memory` is the configuration that was applied before.
///
/// # Errors
/// The declaration is invalid, or a managed cluster cannot be created with these pools.
pub fn goals(
    scope: ManagedScope<'_>,
    pools: &[AgentPool<'_>],
    memory: &Memory,
    observed: &ObservedResources,
) -> Result<Vec<Goal>, GoalError> {
    custom_headers::check(scope.headers)?;
    let held = match observed.get(&scope.managed_cluster()) {
        Observation::Present(held) => Some(held),
        // Before it is read, its document shows what it depends on.
        Observation::Absent | Observation::Unknown => None,
    };
    let is_without_pools =
        held.is_none_or(|held| list(&held["properties"]["agentPoolProfiles"]).next().is_none());
    let is_known = observed.get(&scope.managed_cluster()) != Observation::Unknown;
    let mut wanted = document(scope, held)?;
    if is_without_pools && is_known {
        wanted["properties"]["agentPoolProfiles"] = crate::agent_pool::profiles(scope, pools)?;
    }
    wanted["tags"] = tags(scope);
    let mut wanted = without_nulls(wanted);
    let patches = scope.spec.aso_managed_cluster_patches.as_deref();
    patches::apply("ManagedCluster", "asoManagedClusterPatches", patches, &mut wanted)?;
    let withdrawn = held.map(|held| network_profile::withdrawn(&wanted, held)).unwrap_or_default();
    let mut goal = managed_cluster(scope, wanted).reporting(&FIXED).without(withdrawn);
    custom_headers::apply(&mut goal, scope.headers, "tags", held);
    Ok(with_memory(scope.cluster, declared(scope, goal), memory))
}

/// The memory once everything declared is applied.
pub fn remembered(scope: ManagedScope<'_>) -> Memory {
    Memory::after(scope.cluster, &names(scope))
}

/// The memory once everything is applied, with the owner tags observed in Azure.
pub fn remembered_of(scope: ManagedScope<'_>, observed: &ObservedResources) -> Memory {
    let declared = names(scope);
    Memory::after(scope.cluster, &declared).bearing(scope.cluster, &declared, observed)
}

/// The goals of a deletion, given the inventory of the cluster's groups: all resources that the cluster has ever
/// recorded. Node pools and extensions are deleted with the managed cluster.
pub fn ends(scope: ManagedScope<'_>, memory: &Memory, end: End, inventory: &Inventory) -> Vec<Goal> {
    beside(ends_of(scope.cluster, names(scope), memory, end), end, inventory)
}

/// The goals of the declaration, without the content of the managed cluster.
fn names(scope: ManagedScope<'_>) -> Vec<Goal> {
    declared(scope, managed_cluster(scope, json!({ "tags": tags(scope) })))
}

fn declared(scope: ManagedScope<'_>, managed_cluster: Goal) -> Vec<Goal> {
    let mut goals = group::goals(scope.cluster);
    goals.extend(network::goals(scope.cluster));
    goals.push(managed_cluster);
    goals.extend(private_endpoint::goals(scope.cluster, &scope.cluster.network_group()));
    goals.extend(fleet_member::goal(scope));
    goals.extend(extension::goals(scope));
    goals
}

fn managed_cluster(scope: ManagedScope<'_>, document: Value) -> Goal {
    let goal = Goal::new(scope.managed_cluster(), &service::MANAGED_CLUSTER, document)
        .owned(OwnershipRule::Declared(crate::cluster::DECLARED_BY));
    if scope.is_in_preview() { goal.in_preview() } else { goal }
}

fn tags(scope: ManagedScope<'_>) -> Value {
    json!(scope.cluster.tags(Some("common"), Some(scope.cluster.name)))
}
