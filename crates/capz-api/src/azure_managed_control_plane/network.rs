//! The network of a cluster that Azure manages.

use crate::network::{PrivateEndpoint, ServiceEndpoint};
use crate::object::object;

object! {
    /// The virtual network of a cluster that Azure manages.
    ManagedVirtualNetwork {
        /// The address space, as a range in CIDR notation.
        #[schemars(required, extend("default" = "10.0.0.0/8"))]
        cidr_block: String,
        /// The name of the network; the object's name if it is not set. An existing network that was not created for this
        /// cluster is used as it is.
        #[schemars(required)]
        name: String,
        /// The resource group of the network; that of the cluster if it is not set.
        resource_group: String,
        /// The subnet of the machines.
        subnet: ManagedSubnet,
    }

    /// The subnet of a managed cluster's machines.
    ManagedSubnet {
        /// The range of the subnet in CIDR notation.
        #[schemars(required, extend("default" = "10.240.0.0/16"))]
        cidr_block: String,
        /// The name of the subnet; the object's name if it is not set.
        #[schemars(required)]
        name: String,
        /// Private endpoints in the subnet.
        #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
        private_endpoints: Vec<PrivateEndpoint>,
        /// Services of Azure that the subnet's machines reach without leaving Azure's network.
        #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["service"]))]
        service_endpoints: Vec<ServiceEndpoint>,
    }

    /// The outbound addresses and ports of a cluster's load balancer. Addresses are of one kind only: managed ones,
    /// prefixes, or public addresses.
    LoadBalancerProfile {
        /// The number of ports of each machine, from 0, which lets Azure choose, to 64000.
        allocated_outbound_ports: i64,
        /// How many minutes a connection may be idle, from 4 to 120.
        idle_timeout_in_minutes: i64,
        /// The number of addresses that Azure creates, from 1 to 100.
        #[serde(rename = "managedOutboundIPs")]
        managed_outbound_ips: i64,
        /// The ids of public IP prefixes.
        #[serde(rename = "outboundIPPrefixes")]
        outbound_ip_prefixes: Vec<String>,
        /// The ids of public addresses.
        #[serde(rename = "outboundIPs")]
        outbound_ips: Vec<String>,
    }
}
