//! Private endpoints in a subnet.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use ipnet::IpNet;

use super::virtual_network::check_address;
use crate::field_error::Field;
use crate::names::{RESOURCE_NAME, is_resource_name};
use crate::object::object;
use crate::text::text;

/// Azure's limit for the message to the approver of a connection.
const MAX_REQUEST_MESSAGE: usize = 140;

object! {
    /// A private endpoint.
    PrivateEndpoint {
        /// The application security groups that the endpoint's interface belongs to.
        application_security_groups: Vec<String>,
        /// The name of the endpoint's network interface.
        custom_network_interface_name: String,
        /// The region of the endpoint.
        location: String,
        /// Whether the connection needs manual approval by the owner of the resource.
        manual_approval: bool,
        /// The name of the endpoint.
        #[schemars(required)]
        name: String,
        /// Addresses of the endpoint's interface. They must lie in the subnet.
        #[serde(rename = "privateIPAddresses")]
        private_ip_addresses: Vec<String>,
        /// The targets of the endpoint.
        private_link_service_connections: Vec<PrivateLinkServiceConnection>,
    }

    /// A connection of a private endpoint to a resource.
    PrivateLinkServiceConnection {
        /// The sub-resources of the endpoint's target.
        #[serde(rename = "groupIDs")]
        group_ids: Vec<String>,
        /// The name of the connection.
        name: String,
        /// The id of the resource.
        #[serde(rename = "privateLinkServiceID")]
        private_link_service_id: String,
        /// A text for the approver of the connection.
        #[schemars(length(max = 140))]
        request_message: String,
    }
}

/// Validates the private endpoints of a subnet with these ranges.
pub(crate) fn check(endpoints: Option<&[PrivateEndpoint]>, ranges: &[IpNet], list: &Field<'_>) {
    let mut names = BTreeSet::new();
    for (index, endpoint) in endpoints.into_iter().flatten().enumerate() {
        let field = list.index(index);
        let name = text(&endpoint.name);
        field.child("name").duplicate_if(!names.insert(name), name);
        if name.is_empty() {
            field.invalid(name, "private endpoint must have a non-empty name");
        } else {
            field.child("name").invalid_if(!is_resource_name(name), name, RESOURCE_NAME);
        }
        let connections = endpoint.private_link_service_connections.as_deref().unwrap_or_default();
        let connection_list = field.child("privateLinkServiceConnections");
        connection_list.invalid_if(
            connections.is_empty(),
            connections,
            "privateLinkServiceConnections cannot be empty: name the resource that the endpoint leads to",
        );
        for (index, connection) in connections.iter().enumerate() {
            check_connection(connection, &connection_list.index(index));
        }
        for (index, address) in endpoint.private_ip_addresses.iter().flatten().enumerate() {
            let field = field.child("privateIPAddresses").index(index);
            check_address(address, ranges, "Private Endpoint", "subnet", &field);
        }
    }
}

fn check_connection(connection: &PrivateLinkServiceConnection, field: &Field<'_>) {
    let service = field.child("privateLinkServiceID");
    match text(&connection.private_link_service_id) {
        "" => service.required("private link service ID is required for all private endpoints"),
        id => service.invalid_if(
            !is_resource(id),
            id,
            "private link service ID doesn't match regex: it must look like /subscriptions/ID/resourceGroups/NAME/providers/NAMESPACE/TYPE/NAME",
        ),
    }
    let name = text(&connection.name);
    field.child("name").invalid_if(!name.is_empty() && !is_resource_name(name), name, RESOURCE_NAME);
    let message = text(&connection.request_message);
    field.child("requestMessage").invalid_if(
        message.chars().count() > MAX_REQUEST_MESSAGE,
        message,
        format_args!("request message must be at most {MAX_REQUEST_MESSAGE} characters"),
    );
}

/// Whether it is the id of a resource in a group; a leading slash may be missing.
fn is_resource(id: &str) -> bool {
    let id = if id.starts_with('/') { id.to_owned() } else { format!("/{id}") };
    ResourceId::parse(&id).is_ok_and(|id| id.group_name().is_some() && id.namespace().is_some())
}
