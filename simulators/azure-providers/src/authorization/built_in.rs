//! Azure's built-in roles, as far as documentation recommends them for clusters and their operators ("Azure built-in
//! roles").

use azure_types::ResourceId;
use jiff::Timestamp;
use serde_json::json;

use super::definition::RoleDefinitions;
use super::role::{BUILT_IN, id_in};
use super::{roles_of_data, roles_of_resources};
use azure_engine::provider::{AzureState, Record};

/// Puts them into each subscription.
pub(super) fn give(azure: &mut AzureState) {
    let options = azure.options.clone();
    for subscription in std::iter::once(&options.subscription).chain(&options.more_subscriptions) {
        let subscription = ResourceId::subscription(subscription);
        for role in roles_of_resources::ROLES.iter().chain(roles_of_data::ROLES) {
            let id = id_in(&subscription, role.guid);
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
