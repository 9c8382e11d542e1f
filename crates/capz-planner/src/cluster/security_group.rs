//! Security groups of subnets.

use capz_api::network::SecurityRule;
use serde_json::{Value, json};

use super::memory::Memory;
use crate::compare::Withdrawn;
use crate::document::{items, text};
use crate::goal::{Goal, OwnershipRule};
use crate::scope::ClusterScope;
use crate::service;

const RULES: &str = "properties/securityRules";

pub(super) fn goals(scope: ClusterScope<'_>, memory: &Memory) -> Vec<Goal> {
    let mut goals: Vec<Goal> = Vec::new();
    for group in scope.subnets().iter().filter_map(|subnet| subnet.security_group.as_ref()) {
        let Some(name) = text(&group.name) else { continue };
        let rules: Vec<Value> = group.security_rules.iter().flatten().map(rule).collect();
        let id = scope.in_network_group("networkSecurityGroups", name);
        // Subnets may share a group: it has the rules of all of them.
        if let Some(known) = goals.iter_mut().find(|goal| goal.id == id) {
            if let Some(known) = known.document["properties"]["securityRules"].as_array_mut() {
                let is_new = |rule: &Value| known.iter().all(|it| it["name"] != rule["name"]);
                let new: Vec<Value> = rules.into_iter().filter(is_new).collect();
                known.extend(new);
            }
            continue;
        }
        let document = json!({
            "location": scope.location(),
            "tags": scope.tags(None, Some(name)),
            "properties": { "securityRules": rules },
        });
        goals.push(
            Goal::new(id, &service::SECURITY_GROUPS, document)
                .owned(OwnershipRule::TaggedWith(scope.network())),
        );
    }
    for goal in &mut goals {
        let wanted = goal.document["properties"]["securityRules"].as_array();
        let is_wanted = |rule: &str| wanted.into_iter().flatten().any(|it| it["name"] == rule);
        let applied = memory.rules.iter().find(|(group, _)| group.eq_ignore_ascii_case(goal.id.name()));
        goal.withdrawn = applied
            .into_iter()
            .flat_map(|(_, rules)| rules.keys())
            .filter(|rule| !is_wanted(rule))
            .map(|rule| Withdrawn::Item { list: RULES, name: rule.clone() })
            .collect();
    }
    goals
}

fn rule(rule: &SecurityRule) -> Value {
    let sources = items(&rule.sources);
    json!({
        "name": rule.name,
        "properties": {
            "description": rule.description,
            "protocol": rule.protocol,
            "direction": text(&rule.direction).unwrap_or("Inbound"),
            "access": text(&rule.action).unwrap_or("Allow"),
            "priority": rule.priority,
            "sourcePortRange": text(&rule.source_ports).unwrap_or("*"),
            "destinationPortRange": text(&rule.destination_ports).unwrap_or("*"),
            "destinationAddressPrefix": text(&rule.destination).unwrap_or("*"),
            "sourceAddressPrefixes": sources,
            "sourceAddressPrefix": sources.is_none().then(|| text(&rule.source).unwrap_or("*")),
        },
    })
}
