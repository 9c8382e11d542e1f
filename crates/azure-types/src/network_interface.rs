//! Network interfaces, and what IP configurations of every kind have in common (Azure REST reference, "Network
//! Interfaces").

use crate::document::{SubResource, Word, document, resource};
use crate::resource_id::ResourceId;
use crate::scale_set::ScaleSetIpConfiguration;

resource! {
    /// A network interface, of a virtual machine or of a uniform scale set's instance.
    NetworkInterface {
        /// Its addresses and its machine.
        properties: NetworkInterfaceProperties,
    }
}

document! {
    /// The addresses of a network interface and its machine.
    NetworkInterfaceProperties {
        /// `Succeeded`, `Updating`, `Deleting` or `Failed`.
        provisioning_state: Word,
        /// Whether it is the machine's first interface.
        primary: bool,
        /// Its addresses.
        ip_configurations: Vec<InterfaceIpConfiguration>,
        /// The machine that it belongs to.
        virtual_machine: SubResource,
        /// The security group that guards it, beside that of its subnet.
        network_security_group: SubResource,
    }
}

document! {
    /// One address of a network interface.
    InterfaceIpConfiguration {
        /// The configuration's id.
        id: ResourceId,
        /// The configuration's name.
        name: String,
        /// The address and the pools that it belongs to.
        properties: InterfaceIpConfigurationProperties,
    }
}

document! {
    /// An address of a network interface and the pools that it belongs to.
    InterfaceIpConfigurationProperties {
        /// Whether it is the interface's first address.
        primary: bool,
        /// The private address.
        #[serde(rename = "privateIPAddress")]
        private_ip_address: String,
        /// `IPv4` (also where absent) or `IPv6`.
        #[serde(rename = "privateIPAddressVersion")]
        private_ip_address_version: Word,
        /// The subnet that the address comes from.
        subnet: SubResource,
        /// The public IP in front of it.
        #[serde(rename = "publicIPAddress")]
        public_ip_address: SubResource,
        /// The pools that the address is a member of.
        load_balancer_backend_address_pools: Vec<SubResource>,
    }
}

/// An IP configuration, of a network interface or of a scale set's model or instance: what belongs to pools.
pub trait IpConfiguration {
    /// Whether it is its interface's first one.
    fn is_primary(&self) -> bool;
    /// Whether its address is an IPv6 one; one that does not say is IPv4.
    fn is_ipv6(&self) -> bool;
    /// The pools that it belongs to.
    fn pools(&self) -> &[SubResource];
    /// The same, to be changed.
    fn pools_mut(&mut self) -> &mut Vec<SubResource>;
}

macro_rules! ip_configuration {
    ($name:ident) => {
        impl IpConfiguration for $name {
            fn is_primary(&self) -> bool {
                self.properties.as_ref().is_some_and(|properties| properties.primary == Some(true))
            }

            fn is_ipv6(&self) -> bool {
                let properties = self.properties.as_ref();
                let version = properties.and_then(|p| p.private_ip_address_version.as_ref());
                version.is_some_and(|version| version.is("IPv6"))
            }

            fn pools(&self) -> &[SubResource] {
                let properties = self.properties.as_ref();
                properties.and_then(|p| p.load_balancer_backend_address_pools.as_deref()).unwrap_or_default()
            }

            fn pools_mut(&mut self) -> &mut Vec<SubResource> {
                let properties = self.properties.get_or_insert_default();
                properties.load_balancer_backend_address_pools.get_or_insert_default()
            }
        }
    };
}

ip_configuration!(InterfaceIpConfiguration);
ip_configuration!(ScaleSetIpConfiguration);
