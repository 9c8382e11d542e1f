//! Azure's built-in roles, as far as documentation recommends them for clusters and their operators ("Azure built-in
//! roles"). Names, GUIDs and permissions in `built_in_roles.json` are those that Azure itself listed in August 2026 (`GET
//! roleDefinitions`, as `azure/built-in-roles-raw.json` of github.com/iann0036/iam-dataset keeps it); the descriptions are ours.

use std::sync::LazyLock;

use azure_types::ResourceId;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::definition::RoleDefinitions;
use super::role::{BUILT_IN, id_in};
use azure_engine::provider::{AzureState, Record};

/// A built-in role.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BuiltInRole {
    guid: String,
    name: String,
    description: String,
    #[serde(default)]
    actions: Vec<String>,
    #[serde(default)]
    not_actions: Vec<String>,
    #[serde(default)]
    data_actions: Vec<String>,
    #[serde(default)]
    not_data_actions: Vec<String>,
}

/// All of them: first those for resources, then those for the contents of vaults and accounts.
static ROLES: LazyLock<Vec<BuiltInRole>> = LazyLock::new(|| roles().unwrap_or_default());

fn roles() -> serde_json::Result<Vec<BuiltInRole>> {
    serde_json::from_str(include_str!("built_in_roles.json"))
}

/// Puts them into each subscription.
pub(super) fn add_built_in(azure: &mut AzureState) {
    let options = azure.options.clone();
    for subscription in std::iter::once(&options.subscription).chain(&options.more_subscriptions) {
        let subscription = ResourceId::subscription(subscription);
        for role in &*ROLES {
            let id = id_in(&subscription, &role.guid);
            if azure.store.get(&id).is_some() {
                continue;
            }
            let body = json!({ "properties": {
                "roleName": role.name,
                "type": BUILT_IN,
                "description": role.description,
                "assignableScopes": ["/"],
                "permissions": [{
                    "actions": role.actions,
                    "notActions": role.not_actions,
                    "dataActions": role.data_actions,
                    "notDataActions": role.not_data_actions,
                }],
            } });
            // Earlier than any cluster.
            let created = Timestamp::from_second(1_422_835_200).unwrap_or(Timestamp::UNIX_EPOCH);
            azure.store.insert(Record::new(&RoleDefinitions, &id, body, created));
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_list_of_roles_can_be_read() {
        assert_eq!(super::roles().unwrap().len(), 41);
    }
}
