//! Route tables (Azure REST reference, "Route Tables").

use crate::document::{SubResource, Word, document, part, resource};

resource! {
    /// A route table: where a subnet sends packets that it would send elsewhere otherwise.
    RouteTable {
        /// Its routes.
        properties: RouteTableProperties,
    }
}

document! {
    /// The routes of a route table.
    RouteTableProperties {
        /// `Succeeded`, `Updating`, `Deleting` or `Failed`.
        provisioning_state: Word,
        /// The routes that were written. No two have one name, and no two one prefix.
        routes: Vec<Route>,
        /// The subnets that use it, as Azure says.
        subnets: Vec<SubResource>,
    }
}

part! {
    /// One route.
    Route {
        /// The destination and the next hop.
        properties: RouteProperties,
    }
}

document! {
    /// The destination and the next hop of a route.
    RouteProperties {
        /// `Succeeded`, `Updating`, `Deleting` or `Failed`.
        provisioning_state: Word,
        /// The destination: a range of addresses, or a service tag.
        address_prefix: String,
        /// `VirtualAppliance`, `VnetLocal`, `Internet`, `VirtualNetworkGateway` or `None`.
        next_hop_type: Word,
        /// The address of the next hop; only with `VirtualAppliance`.
        next_hop_ip_address: String,
    }
}
