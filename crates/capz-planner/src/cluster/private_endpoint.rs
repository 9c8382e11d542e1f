//! Private endpoints in subnets.

use azure_types::ResourceId;
use capz_api::network::{PrivateEndpoint, Subnet};
use serde_json::{Value, json};

use crate::document::text;
use crate::goal::Goal;
use crate::scope::{ClusterScope, reference};
use crate::service;

/// The private endpoints of all subnets, in this resource group.
pub(crate) fn goals(scope: ClusterScope<'_>, group: &ResourceId) -> Vec<Goal> {
    let bastion = super::bastion::declared(scope).and_then(|bastion| bastion.subnet.as_ref());
    scope
        .subnets()
        .iter()
        .chain(bastion)
        .flat_map(|subnet| {
            subnet
                .private_endpoints
                .iter()
                .flatten()
                .map(move |endpoint| goal(scope, group, subnet, endpoint))
        })
        .collect()
}

fn goal(scope: ClusterScope<'_>, group: &ResourceId, subnet: &Subnet, endpoint: &PrivateEndpoint) -> Goal {
    let name = endpoint.name.as_deref().unwrap_or_default();
    let mut connections: Vec<Value> = endpoint
        .private_link_service_connections
        .iter()
        .flatten()
        .map(|connection| {
            json!({
                "name": text(&connection.name).unwrap_or(name),
                "properties": {
                    "privateLinkServiceId": connection.private_link_service_id,
                    "groupIds": connection.group_ids,
                    "requestMessage": connection.request_message,
                },
            })
        })
        .collect();
    connections.sort_by_key(|connection| connection["name"].as_str().map(str::to_owned));
    let (manual, automatic) = match endpoint.manual_approval {
        Some(true) => (Some(connections), None),
        _ => (None, Some(connections)),
    };
    let document = json!({
        "location": text(&endpoint.location).unwrap_or_else(|| scope.location()),
        "tags": scope.tags(None, Some(name)),
        "properties": {
            "subnet": reference(&scope.subnet(subnet.name.as_deref().unwrap_or_default())),
            "manualPrivateLinkServiceConnections": manual,
            "privateLinkServiceConnections": automatic,
            "customNetworkInterfaceName": endpoint.custom_network_interface_name,
            "applicationSecurityGroups":
                sorted(&endpoint.application_security_groups, |id| json!({ "id": id })),
            "ipConfigurations": sorted(
                &endpoint.private_ip_addresses,
                |address| json!({ "properties": { "privateIPAddress": address } }),
            ),
        },
    });
    let id = group.resource("Microsoft.Network", "privateEndpoints", name);
    Goal::new(id, &service::PRIVATE_ENDPOINTS, document)
}

/// The documents of these texts in a stable order; `None` if there are none.
fn sorted(texts: &Option<Vec<String>>, document: impl Fn(&String) -> Value) -> Option<Vec<Value>> {
    let mut texts: Vec<&String> = texts.iter().flatten().collect();
    texts.sort();
    (!texts.is_empty()).then(|| texts.into_iter().map(document).collect())
}
