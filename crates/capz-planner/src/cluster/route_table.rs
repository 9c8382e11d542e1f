//! Route tables of subnets. The cloud controller manager manages the routes in them.

use serde_json::json;

use crate::document::text;
use crate::goal::{Goal, OwnershipRule};
use crate::scope::ClusterScope;
use crate::service;

pub(super) fn goals(scope: ClusterScope<'_>) -> Vec<Goal> {
    let mut goals: Vec<Goal> = Vec::new();
    for table in scope.subnets().iter().filter_map(|subnet| subnet.route_table.as_ref()) {
        let Some(name) = text(&table.name) else { continue };
        let id = scope.in_network_group("routeTables", name);
        if goals.iter().any(|goal| goal.id == id) {
            continue;
        }
        let document = json!({
            "location": scope.location(),
            "tags": scope.tags(None, Some(name)),
            "properties": { "routes": [] },
        });
        goals.push(
            Goal::new(id, &service::ROUTE_TABLES, document).owned(OwnershipRule::TaggedWith(scope.network())),
        );
    }
    goals
}
