//! The goals of a node pool, and what its MachinePool gets to know.

use capz_api::Tags;
use serde_json::{Value, json};

use super::profile::{AZURES_OWN, AgentPool, document as document_of};
use crate::cluster::Memory;
use crate::compare::Withdrawn;
use crate::custom_headers;
use crate::goal::{Goal, GoalError, OwnershipRule};
use crate::managed_cluster::ManagedScope;
use crate::observed::{Observation, ObservedResources};
use crate::service;

/// The annotation with the additional tags that were applied to the pool.
pub const TAGS: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-tags-agentpool";
/// The value of [`crate::pool::EXTERNAL_REPLICAS`] on the MachinePool of a pool that Azure's autoscaler scales.
pub const MANAGED_BY_AUTOSCALER: &str = "true";

/// The goals of the pool: the managed cluster, which must exist, and the pool in it. `memory` is the control plane's: it
/// shows whether the managed cluster is ours although its tags were removed.
///
/// # Errors
/// The declaration is invalid.
pub fn goals(
    scope: ManagedScope<'_>,
    pool: &AgentPool<'_>,
    memory: &Memory,
    observed: &ObservedResources,
) -> Result<Vec<Goal>, GoalError> {
    let headers = custom_headers::of([pool.annotations]);
    custom_headers::check(&headers)?;
    let goal = in_cluster(scope, pool);
    let document = match observed.get(&goal.id) {
        Observation::Present(held) => Some(held),
        Observation::Absent | Observation::Unknown => None,
    };
    let held = document.map(|held| &held["properties"]);
    let mut goal = Goal { document: document_of(scope, pool, held)?, ..goal };
    if let Some(held) = held {
        let withdrawn = withdrawn(pool, &goal.document["properties"], held);
        goal = goal.without(withdrawn);
    }
    custom_headers::apply(&mut goal, &headers, "properties/tags", document);
    let mut goals = vec![managed_cluster(scope), goal];
    memory.remind(&mut goals);
    Ok(goals)
}

/// The goals of the pool's deletion. A pool of a cluster that is deleted needs none.
pub fn end(scope: ManagedScope<'_>, pool: &AgentPool<'_>, memory: &Memory) -> Vec<Goal> {
    let mut goals = vec![managed_cluster(scope).ended(), in_cluster(scope, pool).ended()];
    memory.remind(&mut goals);
    goals
}

/// The managed cluster, which the pool's object only reads.
fn managed_cluster(scope: ManagedScope<'_>) -> Goal {
    let goal = Goal::foreign(scope.managed_cluster(), &service::MANAGED_CLUSTER);
    if scope.is_in_preview() { goal.in_preview() } else { goal }
}

fn in_cluster(scope: ManagedScope<'_>, pool: &AgentPool<'_>) -> Goal {
    let cluster = scope.managed_cluster();
    let goal = Goal::new(cluster.child("agentPools", pool.azure_name()), &service::AGENT_POOLS, Value::Null)
        .owned(OwnershipRule::Inside(cluster));
    if scope.is_in_preview() { goal.in_preview() } else { goal }
}

/// Members of the observed properties that are removed: labels, applied tags, and the bounds of an autoscaler.
fn withdrawn(pool: &AgentPool<'_>, wanted: &Value, held: &Value) -> Vec<Withdrawn> {
    let undeclared = |within: &'static str| {
        let held = held[within].as_object().into_iter().flatten();
        held.filter(move |(key, _)| wanted[within].get(key.as_str()).is_none())
    };
    let member = |within: &'static str, name: &str| Withdrawn::Member { within, name: name.to_owned() };
    let labels = undeclared("nodeLabels").filter(|(key, _)| !key.starts_with(AZURES_OWN));
    let applied: Tags =
        pool.annotations.get(TAGS).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    // A tag with another value belongs to another writer by now.
    let tags = undeclared("tags")
        .filter(|(key, value)| applied.get(*key).is_some_and(|applied| value.as_str() == Some(applied)));
    let bounds = ["minCount", "maxCount"].into_iter().filter(|bound| {
        let is_there = |document: &Value| document.get(*bound).is_some_and(|bound| !bound.is_null());
        is_there(held) && !is_there(wanted)
    });
    labels
        .map(|(label, _)| member("properties/nodeLabels", label))
        .chain(tags.map(|(tag, _)| member("properties/tags", tag)))
        .chain(bounds.map(|bound| member("properties", bound)))
        .collect()
}

/// The annotation [`TAGS`] once the tags are applied; `None` if there is nothing to record.
pub fn remembered_tags(pool: &AgentPool<'_>) -> Option<String> {
    let declared = pool.spec.additional_tags.clone().unwrap_or_default();
    (pool.annotations.contains_key(TAGS) || !declared.is_empty()).then(|| json!(declared).to_string())
}

/// What the MachinePool of a pool gets to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolReplicas {
    /// Whether it bears the annotation [`crate::pool::EXTERNAL_REPLICAS`].
    pub is_autoscaled: bool,
    /// `spec.replicas`; `None` if it decides itself.
    pub replicas: Option<i32>,
}

/// What the MachinePool gets to know, according to the pool's document in Azure.
pub fn sync(held: &Value) -> PoolReplicas {
    let properties = &held["properties"];
    let is_autoscaled = properties["enableAutoScaling"] == true;
    let count = properties["count"].as_i64().and_then(|count| i32::try_from(count).ok());
    PoolReplicas { is_autoscaled, replicas: count.filter(|_| is_autoscaled) }
}
