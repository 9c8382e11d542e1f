//! One rule of the security group while a batch is applied.

use std::collections::BTreeSet;

use azure_types::{SecurityRule, SecurityRuleProperties, Word};
use k8s::ObjectKey;

use super::rule;

/// One rule of the group.
pub(super) struct RuleEntry {
    pub document: SecurityRule,
    pub managed: bool,
    /// Destinations in their normal spelling; maintained only for managed rules.
    pub destinations: BTreeSet<String>,
    pub(super) is_new: bool,
    pub(super) asserted: bool,
    pub(super) before: BTreeSet<String>,
    /// The destinations that were removed, and the Services that had them.
    pub(super) taken: Vec<(String, Option<ObjectKey>)>,
    pub(super) added_for: BTreeSet<ObjectKey>,
}

impl RuleEntry {
    pub(super) fn observed(document: &SecurityRule) -> Self {
        let managed = rule::is_managed(document);
        let mut entry = Self {
            document: document.clone(),
            managed,
            is_new: false,
            asserted: false,
            before: BTreeSet::new(),
            destinations: BTreeSet::new(),
            taken: Vec::new(),
            added_for: BTreeSet::new(),
        };
        if managed {
            entry.read_destinations();
        }
        entry
    }

    pub(super) fn new(name: String, priority: i32) -> Self {
        let properties = SecurityRuleProperties { priority: Some(priority), ..Default::default() };
        let document = SecurityRule { name: Some(name), properties: Some(properties), ..Default::default() };
        Self { is_new: true, managed: true, ..Self::observed(&document) }
    }

    pub(super) fn read_destinations(&mut self) {
        if let Some(p) = &self.document.properties {
            let listed = rule::items(&p.destination_address_prefix, &p.destination_address_prefixes);
            self.destinations = rule::spread(listed);
            self.before = self.destinations.clone();
        }
    }

    pub(super) fn name(&self) -> &str {
        self.document.name.as_deref().unwrap_or_default()
    }

    pub fn protocol(&self) -> &str {
        let protocol = self.document.properties.as_ref().and_then(|p| p.protocol.as_ref());
        protocol.map(Word::as_str).unwrap_or_default()
    }

    pub fn is_deny(&self) -> bool {
        let access = self.document.properties.as_ref().and_then(|p| p.access.as_ref());
        access.is_some_and(|word| word.is("Deny"))
    }

    pub fn is_named(&self, name: &str) -> bool {
        self.name().eq_ignore_ascii_case(name)
    }

    /// Whether a managed rule has no destinations left.
    pub fn is_empty(&self) -> bool {
        let groups = self.document.properties.as_ref().and_then(|p| {
            p.destination_application_security_groups.as_ref().filter(|groups| !groups.is_empty())
        });
        self.managed && self.destinations.is_empty() && groups.is_none()
    }

    pub fn take(&mut self, destination: &str, from: Option<&ObjectKey>) {
        if self.destinations.remove(destination) {
            self.taken.push((destination.to_owned(), from.cloned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_managed_rule_without_destinations_is_empty() {
        const MANAGED: &str = "k8s-azure-lb_allow_IPv4_556f7044ec033071ec0dfcf7cd85bc93";
        let group = || json!([{"id": "/subscriptions/s/resourceGroups/g"}]);
        for (name, addresses, groups, expected) in [
            (MANAGED, json!([]), json!(null), true),
            (MANAGED, json!([]), json!([]), true),
            (MANAGED, json!(["20.0.0.1"]), json!([]), false),
            (MANAGED, json!([]), group(), false),
            ("theirs", json!([]), json!(null), false),
        ] {
            let document: SecurityRule = serde_json::from_value(json!({"name": name, "properties": {
                "priority": 500, "destinationAddressPrefixes": addresses, "destinationApplicationSecurityGroups": groups,
            }}))
            .unwrap();
            assert_eq!(RuleEntry::observed(&document).is_empty(), expected, "{document:?}");
        }
    }
}
