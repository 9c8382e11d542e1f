//! Virtual networks and subnets (Azure REST reference, "Virtual Networks").

use crate::document::{SubResource, Word, document, part, resource};

resource! {
    /// A virtual network.
    VirtualNetwork {
        /// Its address space and subnets.
        properties: VirtualNetworkProperties,
    }
}

document! {
    /// The address space and subnets of a virtual network.
    VirtualNetworkProperties {
        /// `Succeeded`, `Updating`, `Deleting` or `Failed`.
        provisioning_state: Word,
        /// The subnets.
        subnets: Vec<Subnet>,
    }
}

part! {
    /// A part of a virtual network. Load balancers send it as id and name only.
    Subnet {
        /// Its address range and what is attached to it.
        properties: SubnetProperties,
    }
}

document! {
    /// The address range of a subnet and what is attached to it.
    SubnetProperties {
        /// `Succeeded`, `Updating`, `Deleting` or `Failed`.
        provisioning_state: Word,
        /// The range, where it is one.
        address_prefix: String,
        /// The ranges, where they are several.
        address_prefixes: Vec<String>,
        /// The security group that guards it.
        network_security_group: SubResource,
        /// The route table that it uses.
        route_table: SubResource,
        /// `Enabled`, or `Disabled` as private link services need it.
        private_link_service_network_policies: Word,
    }
}
