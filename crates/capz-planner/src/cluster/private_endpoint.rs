//! Private endpoints in subnets.

use capz_api::network::{PrivateEndpoint, Subnet};
use serde_json::{Map, Value, json};

use crate::goal::Goal;
use crate::scope::{ClusterScope, reference};
use crate::service;

pub(super) fn goals(scope: ClusterScope<'_>) -> Vec<Goal> {
    let bastion = super::bastion::declared(scope).and_then(|bastion| bastion.subnet.as_ref());
    scope
        .subnets()
        .iter()
        .chain(bastion)
        .flat_map(|subnet| {
            subnet.private_endpoints.iter().flatten().map(move |endpoint| goal(scope, subnet, endpoint))
        })
        .collect()
}

fn goal(scope: ClusterScope<'_>, subnet: &Subnet, endpoint: &PrivateEndpoint) -> Goal {
    let name = endpoint.name.as_deref().unwrap_or_default();
    let mut connections: Vec<Value> = endpoint
        .private_link_service_connections
        .iter()
        .flatten()
        .map(|connection| {
            let mut properties = Map::from_iter([(
                "privateLinkServiceId".to_owned(),
                json!(connection.private_link_service_id),
            )]);
            if let Some(groups) = &connection.group_ids {
                properties.insert("groupIds".into(), json!(groups));
            }
            if let Some(message) = &connection.request_message {
                properties.insert("requestMessage".into(), json!(message));
            }
            let own = connection.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(name);
            json!({ "name": own, "properties": properties })
        })
        .collect();
    connections.sort_by_key(|connection| connection["name"].as_str().map(str::to_owned));
    let mut properties = Map::from_iter([(
        "subnet".to_owned(),
        reference(&scope.subnet(subnet.name.as_deref().unwrap_or_default())),
    )]);
    let list = if endpoint.manual_approval == Some(true) {
        "manualPrivateLinkServiceConnections"
    } else {
        "privateLinkServiceConnections"
    };
    properties.insert(list.into(), json!(connections));
    if let Some(interface) = &endpoint.custom_network_interface_name {
        properties.insert("customNetworkInterfaceName".into(), json!(interface));
    }
    let mut groups: Vec<&String> = endpoint.application_security_groups.iter().flatten().collect();
    groups.sort();
    if !groups.is_empty() {
        let groups: Vec<Value> = groups.iter().map(|id| json!({ "id": id })).collect();
        properties.insert("applicationSecurityGroups".into(), json!(groups));
    }
    let mut addresses: Vec<&String> = endpoint.private_ip_addresses.iter().flatten().collect();
    addresses.sort();
    if !addresses.is_empty() {
        let addresses: Vec<Value> = addresses
            .iter()
            .map(|address| json!({ "properties": { "privateIPAddress": address } }))
            .collect();
        properties.insert("ipConfigurations".into(), json!(addresses));
    }
    let location = endpoint.location.as_deref().filter(|location| !location.is_empty());
    let document = json!({
        "location": location.unwrap_or_else(|| scope.location()),
        "tags": scope.tags(None, Some(name)),
        "properties": properties,
    });
    Goal::new(scope.in_group("privateEndpoints", name), &service::PRIVATE_ENDPOINTS, document)
}
