//! The membership of a managed cluster in a fleet. It has no tags, and lies in a group of the fleet.

use azure_types::ResourceId;
use serde_json::json;

use super::scope::ManagedScope;
use crate::document::text;
use crate::goal::{Goal, OwnershipRule};
use crate::service;

pub(super) fn goal(scope: ManagedScope<'_>) -> Option<Goal> {
    let declared = scope.spec.fleets_member.as_ref()?;
    let (group, manager) = (text(&declared.manager_resource_group)?, text(&declared.manager_name)?);
    let fleet = ResourceId::group(scope.cluster.subscription, group).resource(
        "Microsoft.ContainerService",
        "fleets",
        manager,
    );
    let document = json!({
        "properties": { "clusterResourceId": scope.managed_cluster().as_str(), "group": text(&declared.group) },
    });
    let id = fleet.child("members", text(&declared.name).unwrap_or(scope.cluster.cluster));
    Some(Goal::new(id, &service::FLEET_MEMBER, document).owned(OwnershipRule::Recorded))
}
