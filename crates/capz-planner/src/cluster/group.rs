//! Resource groups.

use azure_types::ResourceId;
use serde_json::json;

use crate::goal::Goal;
use crate::scope::ClusterScope;
use crate::service;

/// The cluster's group, and its network's group if that is another one.
pub(super) fn ids(scope: ClusterScope<'_>) -> Vec<ResourceId> {
    let (group, network) = (scope.group(), scope.network_group());
    if group == network { vec![group] } else { vec![group, network] }
}

pub(crate) fn goals(scope: ClusterScope<'_>) -> Vec<Goal> {
    let goal = |id: ResourceId| {
        let tags = scope.tags(Some("common"), Some(id.name()));
        Goal::new(id, &service::GROUP, json!({ "location": scope.location(), "tags": tags }))
    };
    ids(scope).into_iter().map(goal).collect()
}
