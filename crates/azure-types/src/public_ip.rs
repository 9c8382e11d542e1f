//! Public IP addresses (Azure REST reference, "Public IP Addresses").

use crate::document::{ExtendedLocation, Sku, SubResource, Word, document, resource};

resource! {
    /// A public IP address.
    PublicIpAddress {
        /// `Basic`, `Standard` or `StandardV2`.
        sku: Sku,
        /// The zones that hold the address.
        zones: Vec<String>,
        /// The edge zone that holds it, if any.
        extended_location: ExtendedLocation,
        /// The address and what uses it.
        properties: PublicIpAddressProperties,
    }
}

document! {
    /// The address and what uses it.
    PublicIpAddressProperties {
        /// `Succeeded`, `Updating`, `Deleting` or `Failed`.
        provisioning_state: Word,
        /// `Static` or `Dynamic`.
        #[serde(rename = "publicIPAllocationMethod")]
        public_ip_allocation_method: Word,
        /// `IPv4` or `IPv6`.
        #[serde(rename = "publicIPAddressVersion")]
        public_ip_address_version: Word,
        /// The address; absent until Azure has allocated it.
        ip_address: String,
        /// The frontend or interface configuration that uses the address; read-only.
        ip_configuration: SubResource,
        /// Routing preferences and the like.
        ip_tags: Vec<IpTag>,
        /// The prefix that the address comes from.
        #[serde(rename = "publicIPPrefix")]
        public_ip_prefix: SubResource,
        /// The name under which the address resolves.
        dns_settings: PublicIpDnsSettings,
    }
}

document! {
    /// A tag of the address itself (not of the resource).
    IpTag {
        /// The kind of tag, such as `RoutingPreference`.
        ip_tag_type: String,
        /// The tag's value.
        tag: String,
    }
}

document! {
    /// The DNS name of a public IP.
    PublicIpDnsSettings {
        /// The first label of the name, unique in its region.
        domain_name_label: String,
        /// The whole name; read-only.
        fqdn: String,
    }
}
