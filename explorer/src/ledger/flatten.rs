//! A document as a flat list of its members, for comparison member by member.

use std::collections::BTreeMap;

use serde_json::Value;

/// Members that only Azure writes.
pub(crate) const DERIVED: [&str; 12] = [
    "etag",
    "provisioningState",
    "resourceGuid",
    "instanceView",
    "timeCreated",
    "LastOwnershipUpdateTime",
    "ipConfiguration",
    "latestModelApplied",
    "uniqueId",
    "defaultSecurityRules",
    "backendIPConfigurations",
    "privateEndpointConnections",
];

/// Lists of references that clients write. All others are the other ends of these.
const REFERENCES: [&str; 5] = [
    "loadBalancerBackendAddressPools",
    "backendAddressPools",
    "applicationSecurityGroups",
    "loadBalancerFrontendIpConfigurations",
    "networkInterfaces",
];

/// The path of each member of a document, and its value. Items of lists are identified by their name, else by their ID,
/// else by themselves.
pub(super) fn flatten(document: &Value) -> BTreeMap<String, Value> {
    let mut leaves = BTreeMap::new();
    for member in ["location", "sku", "tags", "zones", "properties", "identity", "extendedLocation"] {
        if let Some(value) = document.get(member) {
            add(&format!("/{member}"), member, value, &mut leaves);
        }
    }
    leaves
}

fn add(at: &str, name: &str, value: &Value, leaves: &mut BTreeMap<String, Value>) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (name, value) in members.iter().filter(|(name, _)| !DERIVED.contains(&name.as_str())) {
                // `id` and `name` are the item's key.
                if !matches!(name.as_str(), "id" | "name" | "type") {
                    add(&format!("{at}/{name}"), name, value, leaves);
                } else if members.len() == 1 {
                    leaves.insert(at.to_owned(), value.clone());
                }
            }
        }
        Value::Array(items) => {
            let are_references = !items.is_empty() && items.iter().all(is_reference);
            if are_references && !REFERENCES.contains(&name) {
                return;
            }
            for (number, item) in items.iter().enumerate() {
                let at = format!("{at}/{}", key_of(item, number));
                // An item may have only a name.
                if item["name"].is_string() {
                    leaves.insert(at.clone(), Value::Bool(true));
                }
                add(&at, name, item, leaves);
            }
        }
        // One prefix is in a member of its own, several are in a list.
        value if name.ends_with("AddressPrefix") => {
            leaves.insert(format!("{at}es/{}", key_of(value, 0)), value.clone());
        }
        value => {
            leaves.insert(at.to_owned(), value.clone());
        }
    }
}

/// The key of an item in its list.
pub(crate) fn key_of(item: &Value, number: usize) -> String {
    let key = item.as_str().or_else(|| item["name"].as_str()).or_else(|| item["id"].as_str());
    key.map_or_else(|| number.to_string(), |key| key.to_lowercase().replace('/', "|"))
}

pub(crate) fn is_reference(value: &Value) -> bool {
    value.as_object().is_some_and(|members| members.len() == 1 && members.contains_key("id"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_stand_at_names_and_far_ends_of_references_are_left_out() {
        let document = json!({"id": "/x", "name": "x", "etag": "1", "tags": {"a": "1"}, "properties": {
            "rules": [{"name": "R", "etag": "2", "properties": {
                "port": 1, "probe": {"id": "/p"}, "destinationAddressPrefix": "1.2.3.4"}}],
            "pools": [{"name": "p", "properties": {"rules": [{"id": "/r"}]}}],
            "loadBalancerBackendAddressPools": [{"id": "/A"}]}});
        let leaves: Vec<String> =
            flatten(&document).into_iter().map(|(path, value)| format!("{path}={value}")).collect();
        assert_eq!(
            leaves,
            [
                r#"/properties/loadBalancerBackendAddressPools/|a="/A""#,
                "/properties/pools/p=true",
                "/properties/rules/r=true",
                r#"/properties/rules/r/properties/destinationAddressPrefixes/1.2.3.4="1.2.3.4""#,
                "/properties/rules/r/properties/port=1",
                r#"/properties/rules/r/properties/probe="/p""#,
                r#"/tags/a="1""#,
            ]
        );
    }
}
