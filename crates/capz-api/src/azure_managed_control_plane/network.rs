//! The network of a cluster that Azure manages.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::context::{ClusterNetwork, Lookup};
use crate::field_error::Field;
use crate::network::{PrivateEndpoint, ServiceEndpoint, check_private_endpoints};
use crate::object::object;
use crate::text::{fill, text};

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

/// The address space of a network, and the range of its subnet.
const CIDRS: (&str, &str) = ("10.0.0.0/8", "10.240.0.0/16");
/// The same where pods have addresses outside of the network. The defaults of the schema come first: these are for
/// objects without a virtual network.
const OVERLAY_CIDRS: (&str, &str) = ("10.224.0.0/12", "10.224.0.0/16");

/// The last octet of the address of a managed cluster's DNS service.
const DNS_OCTET: u8 = 10;

impl ManagedVirtualNetwork {
    /// Sets the default ranges, and the subnet's name: that of the object.
    pub(super) fn set_ranges(&mut self, name: &str, is_overlay: bool) {
        let (network, subnet) = if is_overlay { OVERLAY_CIDRS } else { CIDRS };
        fill(&mut self.cidr_block, network);
        let declared = self.subnet.get_or_insert_default();
        fill(&mut declared.name, name);
        fill(&mut declared.cidr_block, subnet);
    }
}

/// Validates the network: its subnet is in it, and private endpoints are in the subnet.
pub(super) fn check(network: Option<&ManagedVirtualNetwork>, field: &Field<'_>) {
    let Some(network) = network else { return };
    let subnet = network.subnet.clone().unwrap_or_default();
    let parse = |range: &Option<String>, field: &Field<'_>| -> Option<IpNet> {
        let parsed = text(range).parse().ok();
        field.invalid_if(parsed.is_none(), range, "invalid CIDR format: write it as 10.0.0.0/16");
        parsed
    };
    let whole = parse(&network.cidr_block, &field.child("cidrBlock"));
    let below = field.child("subnet");
    let part = parse(&subnet.cidr_block, &below.child("cidrBlock"));
    if let (Some(whole), Some(part)) = (whole, part) {
        let words = format!("the network's address space must contain the subnet's range {part}");
        let is_outside = !whole.contains(&part.addr());
        field.child("cidrBlock").invalid_if(is_outside, text(&network.cidr_block), words);
    }
    let endpoints = below.child("privateEndpoints");
    check_private_endpoints(subnet.private_endpoints.as_deref(), part.as_slice(), &endpoints);
}

/// Validates the load balancer's profile: limits of Azure, and one kind of outbound addresses.
pub(super) fn check_load_balancer(profile: Option<&LoadBalancerProfile>, field: &Field<'_>) {
    let Some(profile) = profile else { return };
    for (member, value, least, most) in [
        ("managedOutboundIPs", profile.managed_outbound_ips, 1, 100),
        ("allocatedOutboundPorts", profile.allocated_outbound_ports, 0, 64_000),
        ("idleTimeoutInMinutes", profile.idle_timeout_in_minutes, 4, 120),
    ] {
        let is_wrong = value.is_some_and(|value| !(least..=most).contains(&value));
        field.child(member).invalid_if(is_wrong, value, format_args!("it must be from {least} to {most}"));
    }
    let has = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
    let kinds = [
        profile.managed_outbound_ips.is_some(),
        has(&profile.outbound_ip_prefixes),
        has(&profile.outbound_ips),
    ];
    field.forbidden_if(
        kinds.iter().filter(|kind| **kind).count() > 1,
        "set only one of managedOutboundIPs, outboundIPPrefixes and outboundIPs",
    );
}

/// Validates the address of the DNS service by itself.
pub(super) fn check_dns_address(address: Option<&str>, field: &Field<'_>) {
    let Some(address) = address.filter(|address| !address.is_empty()) else { return };
    match address.parse::<IpAddr>() {
        Err(_) => field.invalid(address, "it must be an IP address"),
        Ok(ip) => {
            let last = match ip {
                IpAddr::V4(ip) => ip.octets()[3],
                IpAddr::V6(ip) => ip.octets()[15],
            };
            let words =
                format!("Azure takes only an address whose last octet is {DNS_OCTET}, such as 10.0.0.10");
            field.invalid_if(last != DNS_OCTET, address, words);
        }
    }
}

/// Validates the ranges of the Cluster, and that the DNS service is in that of its services. `object` is the whole
/// control plane, because the ranges are members of the Cluster.
pub(super) fn check_cluster(
    network: &Lookup<ClusterNetwork>,
    dns_service: Option<&str>,
    dns_field: &Field<'_>,
    object: &Field<'_>,
) {
    let field = object.child("Cluster.spec.clusterNetwork");
    let network = match network {
        Lookup::NotNeeded => return,
        Lookup::Found(network) => network,
        Lookup::Failed(reason) => {
            let words =
                "the network of the Cluster that the label cluster.x-k8s.io/cluster-name names is unknown";
            return field.required(format_args!("{words}: {reason}"));
        }
    };
    for (member, ranges) in [("services", &network.services), ("pods", &network.pods)] {
        let words = "a cluster that Azure manages has one range of them at most";
        field.child(member).child("cidrBlocks").invalid_if(ranges.len() > 1, ranges, words);
    }
    let Some(address) = dns_service.filter(|address| !address.is_empty()) else { return };
    let services = field.child("services.cidrBlocks");
    let Some(range) = network.services.first() else {
        return services.required("dnsServiceIP needs a range of services: set it in the Cluster");
    };
    match (range.parse::<IpNet>(), address.parse::<IpAddr>()) {
        (Err(_), _) => services.invalid(range, "invalid CIDR format: write it as 10.0.0.0/16"),
        (Ok(range), Ok(ip)) => {
            let words = format!("it must be in the Cluster's range of services ({range})");
            dns_field.invalid_if(!range.contains(&ip), address, words);
        }
        (Ok(_), Err(_)) => {}
    }
}
