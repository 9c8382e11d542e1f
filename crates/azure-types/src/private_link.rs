//! Private link services (Azure REST reference, "Private Link Services").

use crate::document::{ExtendedLocation, SubResource, Word, document, part, resource};
use crate::resource_id::ResourceId;
use crate::virtual_network::Subnet;

resource! {
    /// A private link service: frontends of a load balancer, offered to private endpoints in other networks.
    PrivateLinkService {
        /// The edge zone that holds it, if any.
        extended_location: ExtendedLocation,
        /// Its frontends, and the subscriptions that may use it.
        properties: PrivateLinkServiceProperties,
    }
}

document! {
    /// The frontends of a private link service, and the subscriptions that may use it.
    PrivateLinkServiceProperties {
        /// `Succeeded`, `Updating`, `Deleting` or `Failed`.
        provisioning_state: Word,
        /// The frontends that it offers; chosen once.
        load_balancer_frontend_ip_configurations: Vec<SubResource>,
        /// The addresses under which its clients appear.
        ip_configurations: Vec<PrivateLinkServiceIpConfiguration>,
        /// The private endpoints that are connected, or ask to be; read-only.
        private_endpoint_connections: Vec<PrivateEndpointConnection>,
        /// Whether each connection begins with a header of the PROXY protocol.
        enable_proxy_protocol: bool,
        /// The names under which it is offered.
        fqdns: Vec<String>,
        /// Who may see it.
        visibility: SubscriptionList,
        /// Whose connections need no approval.
        auto_approval: SubscriptionList,
    }
}

document! {
    /// Subscriptions, by id; `*` for all.
    SubscriptionList {
        /// Their ids.
        subscriptions: Vec<String>,
    }
}

part! {
    /// An address under which the clients of a private link service appear.
    PrivateLinkServiceIpConfiguration {
        /// The address.
        properties: PrivateLinkServiceIpConfigurationProperties,
    }
}

document! {
    /// An address of a subnet.
    PrivateLinkServiceIpConfigurationProperties {
        /// `Succeeded`, `Updating`, `Deleting` or `Failed`.
        provisioning_state: Word,
        /// Whether it is the first to be used.
        primary: bool,
        /// The address, where it was chosen.
        #[serde(rename = "privateIPAddress")]
        private_ip_address: String,
        /// `IPv4`.
        #[serde(rename = "privateIPAddressVersion")]
        private_ip_address_version: Word,
        /// `Dynamic` or `Static`.
        #[serde(rename = "privateIPAllocationMethod")]
        private_ip_allocation_method: Word,
        /// The subnet that it is of.
        subnet: Subnet,
    }
}

document! {
    /// The connection of a private endpoint, as the private link service shows it.
    PrivateEndpointConnection {
        /// The connection's id.
        id: ResourceId,
        /// The connection's name, unique in its private link service.
        name: String,
    }
}
