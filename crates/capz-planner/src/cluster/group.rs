//! Resource groups.

use azure_types::ResourceId;
use serde_json::json;

use super::memory::Memory;
use crate::goal::{Goal, Withdrawn};
use crate::scope::Scope;
use crate::service;

/// The cluster's group, and that of its network where it is another one.
pub(super) fn ids(scope: Scope<'_>) -> Vec<ResourceId> {
    let (group, network) = (scope.group(), scope.network_group());
    if group == network { vec![group] } else { vec![group, network] }
}

pub(super) fn goals(scope: Scope<'_>, memory: &Memory) -> Vec<Goal> {
    ids(scope)
        .into_iter()
        .map(|id| {
            let tags = scope.tags(Some("common"), Some(id.name()));
            let withdrawn: Vec<Withdrawn> = memory
                .group_tags
                .keys()
                .filter(|key| !tags.contains_key(*key))
                .map(|key| Withdrawn::Tag(key.clone()))
                .collect();
            let document = json!({ "location": scope.location(), "tags": tags });
            Goal::new(id, &service::GROUP, document).without(withdrawn)
        })
        .collect()
}
