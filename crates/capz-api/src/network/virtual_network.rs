//! Virtual networks and their peerings.

use std::collections::BTreeSet;

use ipnet::IpNet;

use crate::common::Tags;
use crate::field_error::{FieldErrors, Path};
use crate::object::object;

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
}

object! {
    /// The virtual network of a cluster in a template.
    VirtualNetworkClass {
        /// The address space, as ranges in CIDR notation.
        cidr_blocks: Vec<String>,
        /// Networks that are peered with this one.
        peerings: Vec<Peering>,
        /// Tags of the network.
        tags: Tags,
    }
}

object! {
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
}

object! {
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
pub(crate) fn check_cidrs(texts: Option<&[String]>, path: &Path, errors: &mut FieldErrors) -> Vec<IpNet> {
    let mut ranges = Vec::new();
    for (index, text) in texts.into_iter().flatten().enumerate() {
        match text.parse() {
            Ok(range) => ranges.push(range),
            Err(_) => errors.invalid(
                &path.index(index),
                text.as_str(),
                "invalid CIDR format: write it as 10.0.0.0/16",
            ),
        }
    }
    ranges
}

/// A network must not be peered twice.
pub(crate) fn check_peerings(peerings: Option<&[Peering]>, path: &Path, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (index, peering) in peerings.into_iter().flatten().enumerate() {
        let name = peering.remote_vnet_name.as_deref().unwrap_or_default();
        if !seen.insert((peering.resource_group.as_deref().unwrap_or_default(), name)) {
            errors.duplicate(&path.index(index), name);
        }
    }
}
