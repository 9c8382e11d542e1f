//! What was applied before, as annotations of the AzureCluster remember it: without it nobody could tell what is wanted no
//! longer from what somebody else added.

use std::collections::BTreeMap;

use capz_api::Tags;
use serde_json::{Value, json};

use crate::scope::Scope;

/// Rules of security groups: `{"<group>": {"<rule>": "<description>"}}`.
pub const SECURITY_RULES: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-security-rules";
/// Additional tags of resource groups: `{"<key>": "<value>"}`.
pub const GROUP_TAGS: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-tags-rg";
/// Subnets and NAT gateways: `{"subnets": ["<name>"], "natGateways": ["<name>"]}`.
pub const SUBNETS: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-subnets";

/// What was applied before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// Rules by security group, with their descriptions.
    pub rules: BTreeMap<String, BTreeMap<String, String>>,
    /// Additional tags of resource groups.
    pub group_tags: Tags,
    /// Names of subnets.
    pub subnets: Vec<String>,
    /// Names of NAT gateways.
    pub nat_gateways: Vec<String>,
}

impl Memory {
    /// What annotations remember. One that cannot be read remembers nothing: what it was about stays in Azure.
    pub fn of(annotations: &BTreeMap<String, String>) -> Self {
        let read = |key: &str| -> Value {
            annotations.get(key).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
        };
        let names = |value: &Value| -> Vec<String> {
            value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect()
        };
        let texts = |value: &Value| -> BTreeMap<String, String> {
            value
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
                .collect()
        };
        let made = read(SUBNETS);
        Self {
            rules: read(SECURITY_RULES)
                .as_object()
                .into_iter()
                .flatten()
                .map(|(group, rules)| (group.clone(), texts(rules)))
                .collect(),
            group_tags: texts(&read(GROUP_TAGS)),
            subnets: names(&made["subnets"]),
            nat_gateways: names(&made["natGateways"]),
        }
    }

    /// What is to be remembered once everything that the cluster declares is applied.
    pub fn after(scope: Scope<'_>) -> Self {
        let rules = scope
            .subnets()
            .iter()
            .filter_map(|subnet| subnet.security_group.as_ref())
            .map(|group| {
                let rules = group.security_rules.iter().flatten();
                let rules = rules
                    .map(|rule| {
                        let text = |text: &Option<String>| text.clone().unwrap_or_default();
                        (text(&rule.name), text(&rule.description))
                    })
                    .collect();
                (group.name.clone().unwrap_or_default(), rules)
            })
            // Groups without rules are left out, as the established provider does: nothing of theirs is to be taken away.
            .filter(|(_, rules): &(String, BTreeMap<String, String>)| !rules.is_empty())
            .collect();
        let mut nat_gateways: Vec<String> =
            super::nat_gateway::declared(scope).filter_map(|(_, gateway)| gateway.name.clone()).collect();
        nat_gateways.sort();
        nat_gateways.dedup();
        Self {
            rules,
            group_tags: scope.spec.additional_tags.clone().unwrap_or_default(),
            subnets: scope.subnets().iter().filter_map(|subnet| subnet.name.clone()).collect(),
            nat_gateways,
        }
    }

    /// What is in this memory, or in that one.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let mut all = self.clone();
        for (group, rules) in &other.rules {
            all.rules.entry(group.clone()).or_default().extend(rules.clone());
        }
        all.group_tags.extend(other.group_tags.clone());
        for (mine, others) in
            [(&mut all.subnets, &other.subnets), (&mut all.nat_gateways, &other.nat_gateways)]
        {
            let new: Vec<String> = others.iter().filter(|name| !mine.contains(name)).cloned().collect();
            mine.extend(new);
        }
        all
    }

    /// As annotations.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        [
            (SECURITY_RULES, json!(self.rules)),
            (GROUP_TAGS, json!(self.group_tags)),
            (SUBNETS, json!({ "subnets": self.subnets, "natGateways": self.nat_gateways })),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_string()))
        .collect()
    }
}
