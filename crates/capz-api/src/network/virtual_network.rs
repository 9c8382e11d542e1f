//! Virtual networks and their peerings.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::common::Tags;
use crate::field_error::Field;
use crate::object::object;
use crate::text::text;

object! {
    /// The virtual network of a cluster.
    VirtualNetwork {
        /// The address space, as ranges in CIDR notation.
        cidr_blocks: Vec<String>,
        /// The id of the network in Azure. Set by the controller.
        id: String,
        /// The name of the network. An existing network that was not created for this cluster is used as it is.
        #[schemars(required)]
        name: String,
        /// Networks that are peered with this one.
        peerings: Vec<Peering>,
        /// The resource group of the network, its security groups and route tables; that of the cluster if it is not set.
        resource_group: String,
        /// Tags of the network.
        tags: Tags,
    }

    /// The virtual network of a cluster in a template.
    VirtualNetworkClass {
        /// The address space, as ranges in CIDR notation.
        cidr_blocks: Vec<String>,
        /// Networks that are peered with this one.
        peerings: Vec<Peering>,
        /// Tags of the network.
        tags: Tags,
    }

    /// A network that is peered with a cluster's network, in both directions.
    Peering {
        /// The properties of the peering from the cluster's network to the other one.
        forward_peering_properties: PeeringProperties,
        /// The name of the other network.
        #[schemars(required)]
        remote_vnet_name: String,
        /// The resource group of the other network; that of the cluster if it is not set.
        resource_group: String,
        /// The properties of the peering from the other network to the cluster's one.
        reverse_peering_properties: PeeringProperties,
    }

    /// What a peering lets through.
    PeeringProperties {
        /// Whether traffic that did not originate in the network is permitted.
        allow_forwarded_traffic: bool,
        /// Whether the other network may use this network's gateway.
        allow_gateway_transit: bool,
        /// Whether machines of both networks reach each other.
        allow_virtual_network_access: bool,
        /// Whether this network uses the other one's gateway.
        use_remote_gateways: bool,
    }
}

/// Parses ranges; an invalid one is an error.
pub(crate) fn check_cidrs(texts: Option<&[String]>, list: &Field<'_>) -> Vec<IpNet> {
    let mut ranges = Vec::new();
    for (index, text) in texts.into_iter().flatten().enumerate() {
        match text.parse() {
            Ok(range) => ranges.push(range),
            Err(_) => list.index(index).invalid(text, "invalid CIDR format: write it as 10.0.0.0/16"),
        }
    }
    ranges
}

/// Validates an address of `owner`, which must be in one of these ranges of `place`.
pub(crate) fn check_address(address: &str, ranges: &[IpNet], owner: &str, place: &str, field: &Field<'_>) {
    match address.parse::<IpAddr>() {
        Err(_) => {
            field.invalid(address, format_args!("{owner} IP address isn't a valid IPv4 or IPv6 address"));
        }
        Ok(ip) => field.invalid_if(
            !ranges.iter().any(|range| range.contains(&ip)),
            address,
            format_args!("{owner} IP address needs to be in {place} range ({})", joined(ranges)),
        ),
    }
}

/// Ranges for a message.
pub(super) fn joined(ranges: &[IpNet]) -> String {
    ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A network must not be peered twice.
pub(crate) fn check_peerings(peerings: Option<&[Peering]>, list: &Field<'_>) {
    let mut known = BTreeSet::new();
    for (index, peering) in peerings.into_iter().flatten().enumerate() {
        let name = text(&peering.remote_vnet_name);
        list.index(index).duplicate_if(!known.insert((text(&peering.resource_group), name)), name);
    }
}
