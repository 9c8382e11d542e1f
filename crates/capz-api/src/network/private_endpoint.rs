//! Private endpoints in a subnet.

use std::collections::BTreeSet;
use std::net::IpAddr;

use azure_types::ResourceId;
use ipnet::IpNet;

use crate::field_error::{FieldErrors, Path};
use crate::names;
use crate::object::object;

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
}

object! {
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
pub(crate) fn check(
    endpoints: Option<&[PrivateEndpoint]>,
    ranges: &[IpNet],
    path: &Path,
    errors: &mut FieldErrors,
) {
    let mut seen = BTreeSet::new();
    for (index, endpoint) in endpoints.into_iter().flatten().enumerate() {
        let path = path.index(index);
        let name = endpoint.name.as_deref().unwrap_or_default();
        if !seen.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
        if name.is_empty() {
            errors.invalid(&path, name, "private endpoint must have a non-empty name");
        } else if !names::is_resource_name(name) {
            errors.invalid(&path.child("name"), name, names::RESOURCE_NAME);
        }
        let connections = endpoint.private_link_service_connections.as_deref().unwrap_or_default();
        if connections.is_empty() {
            errors.invalid(
                &path.child("privateLinkServiceConnections"),
                serde_json::json!([]),
                "privateLinkServiceConnections cannot be empty: name the resource that the endpoint leads to",
            );
        }
        for (index, connection) in connections.iter().enumerate() {
            check_connection(connection, &path.child("privateLinkServiceConnections").index(index), errors);
        }
        for (index, address) in endpoint.private_ip_addresses.iter().flatten().enumerate() {
            let path = path.child("privateIPAddresses").index(index);
            match address.parse::<IpAddr>() {
                Err(_) => errors.invalid(
                    &path,
                    address.as_str(),
                    "Private Endpoint IP address isn't a valid IPv4 or IPv6 address",
                ),
                Ok(ip) if !ranges.iter().any(|range| range.contains(&ip)) => errors.invalid(
                    &path,
                    address.as_str(),
                    format_args!(
                        "Private Endpoint IP address needs to be in subnet range ({})",
                        listed(ranges)
                    ),
                ),
                Ok(_) => {}
            }
        }
    }
}

fn check_connection(connection: &PrivateLinkServiceConnection, path: &Path, errors: &mut FieldErrors) {
    match connection.private_link_service_id.as_deref() {
        None | Some("") => errors.required(
            &path.child("privateLinkServiceID"),
            "private link service ID is required for all private endpoints",
        ),
        Some(id) if !is_resource(id) => errors.invalid(
            &path.child("privateLinkServiceID"),
            id,
            "private link service ID doesn't match regex: it must look like /subscriptions/ID/resourceGroups/NAME/providers/NAMESPACE/TYPE/NAME",
        ),
        Some(_) => {}
    }
    if let Some(name) = connection.name.as_deref()
        && !name.is_empty()
        && !names::is_resource_name(name)
    {
        errors.invalid(&path.child("name"), name, names::RESOURCE_NAME);
    }
    if let Some(message) = connection.request_message.as_deref()
        && message.chars().count() > MAX_REQUEST_MESSAGE
    {
        errors.invalid(
            &path.child("requestMessage"),
            message,
            format_args!("request message must be at most {MAX_REQUEST_MESSAGE} characters"),
        );
    }
}

/// Whether it is the id of a resource in a group; a leading slash may be missing.
fn is_resource(id: &str) -> bool {
    let id = if id.starts_with('/') { id.to_owned() } else { format!("/{id}") };
    ResourceId::parse(&id).is_ok_and(|id| id.group_name().is_some() && id.namespace().is_some())
}

fn listed(ranges: &[IpNet]) -> String {
    ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
