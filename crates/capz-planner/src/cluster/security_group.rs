//! Security groups of subnets.

use capz_api::network::SecurityRule;
use serde_json::{Map, Value, json};

use super::memory::Memory;
use crate::compare::Withdrawn;
use crate::goal::{Goal, OwnershipRule};
use crate::scope::ClusterScope;
use crate::service;

const RULES: &str = "properties/securityRules";

pub(super) fn goals(scope: ClusterScope<'_>, memory: &Memory) -> Vec<Goal> {
    let mut goals: Vec<Goal> = Vec::new();
    for group in scope.subnets().iter().filter_map(|subnet| subnet.security_group.as_ref()) {
        let Some(name) = group.name.as_deref().filter(|name| !name.is_empty()) else { continue };
        let rules: Vec<Value> = group.security_rules.iter().flatten().map(rule).collect();
        let id = scope.in_network_group("networkSecurityGroups", name);
        // Subnets may share a group: it has the rules of all of them.
        if let Some(known) = goals.iter_mut().find(|goal| goal.id == id) {
            let known = known.document["properties"]["securityRules"].as_array_mut();
            if let Some(known) = known {
                let new: Vec<Value> = rules
                    .into_iter()
                    .filter(|rule| !known.iter().any(|it| it["name"] == rule["name"]))
                    .collect();
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
        let wanted = &goal.document["properties"]["securityRules"];
        let applied = memory.rules.iter().find(|(group, _)| group.eq_ignore_ascii_case(goal.id.name()));
        let withdrawn: Vec<Withdrawn> = applied
            .into_iter()
            .flat_map(|(_, rules)| rules.keys())
            .filter(|rule| {
                !wanted
                    .as_array()
                    .is_some_and(|rules| rules.iter().any(|it| it["name"].as_str() == Some(rule.as_str())))
            })
            .map(|rule| Withdrawn::Item { list: RULES, name: rule.clone() })
            .collect();
        goal.withdrawn = withdrawn;
    }
    goals
}

fn rule(rule: &SecurityRule) -> Value {
    let text = |text: &Option<String>, absent: &str| -> Value {
        json!(text.as_deref().filter(|text| !text.is_empty()).unwrap_or(absent))
    };
    let mut properties = Map::from_iter([
        ("description".to_owned(), json!(rule.description)),
        ("protocol".to_owned(), json!(rule.protocol)),
        ("direction".to_owned(), text(&rule.direction, "Inbound")),
        ("access".to_owned(), text(&rule.action, "Allow")),
        ("priority".to_owned(), json!(rule.priority)),
        ("sourcePortRange".to_owned(), text(&rule.source_ports, "*")),
        ("destinationPortRange".to_owned(), text(&rule.destination_ports, "*")),
        ("destinationAddressPrefix".to_owned(), text(&rule.destination, "*")),
    ]);
    match rule.sources.as_deref() {
        Some(sources) if !sources.is_empty() => {
            properties.insert("sourceAddressPrefixes".into(), json!(sources));
        }
        _ => {
            properties.insert("sourceAddressPrefix".into(), text(&rule.source, "*"));
        }
    }
    json!({ "name": rule.name, "properties": properties })
}
