//! Defaults of a cluster's subnets: names, ranges, security groups, route tables, NAT gateways.

use ipnet::IpNet;

use super::preserved::keep_subnet;
use super::types::NetworkSpec;
use crate::network::{Subnet, roles};
use crate::text::{fill, is_set, text};

/// The range of a subnet that contains the control plane.
pub(crate) const CONTROL_PLANE_CIDR: &str = "10.0.0.0/16";

/// The range of the subnet for workers with this number, counted from 1.
pub(crate) fn node_cidr(number: usize) -> String {
    format!("10.{number}.0.0/16")
}

/// The names of a subnet's parts.
struct Names {
    subnet: String,
    security_group: String,
    route_table: Option<String>,
    nat_gateway: Option<String>,
}

/// Sets the defaults of the subnets of the cluster `name`. `known` are its previous subnets.
pub(super) fn set(network: &mut NetworkSpec, known: &[Subnet], name: &str, control_plane_enabled: bool) {
    let subnets = network.subnets.get_or_insert_default();
    if let Some(subnet) = subnets.iter_mut().find(|subnet| is(subnet, roles::CLUSTER)) {
        let names = Names {
            subnet: format!("{name}-subnet"),
            security_group: format!("{name}-nsg"),
            route_table: Some(format!("{name}-routetable")),
            nat_gateway: Some(format!("{name}-natgw")),
        };
        complete(subnet, known, names, CONTROL_PLANE_CIDR);
    }
    let has_cluster = subnets.iter().any(|subnet| is(subnet, roles::CLUSTER));
    if control_plane_enabled {
        add_control_plane(subnets, known, name, has_cluster);
    }
    add_nodes(subnets, known, name, has_cluster);
    if control_plane_enabled {
        share_route_table(subnets);
    }
    // An empty list must not be sent in place of an absent one.
    if subnets.is_empty() {
        network.subnets = None;
    }
}

fn add_control_plane(subnets: &mut Vec<Subnet>, known: &[Subnet], name: &str, has_cluster: bool) {
    let index_of_own = subnets.iter().position(|subnet| is(subnet, roles::CONTROL_PLANE));
    if index_of_own.is_none() && has_cluster {
        return;
    }
    let names = Names {
        subnet: format!("{name}-controlplane-subnet"),
        security_group: format!("{name}-controlplane-nsg"),
        route_table: None,
        nat_gateway: None,
    };
    match index_of_own.and_then(|index| subnets.get_mut(index)) {
        Some(subnet) => complete(subnet, known, names, CONTROL_PLANE_CIDR),
        None => {
            let mut subnet = of_role(roles::CONTROL_PLANE);
            complete(&mut subnet, known, names, CONTROL_PLANE_CIDR);
            subnets.push(subnet);
        }
    }
}

fn add_nodes(subnets: &mut Vec<Subnet>, known: &[Subnet], name: &str, has_cluster: bool) {
    let names = |subnet: String, nat_gateway: String| Names {
        subnet,
        security_group: format!("{name}-node-nsg"),
        route_table: Some(format!("{name}-node-routetable")),
        nat_gateway: Some(nat_gateway),
    };
    let mut number = 0;
    for subnet in subnets.iter_mut().filter(|subnet| is(subnet, roles::NODE)) {
        number += 1;
        let names = names(format!("{name}-node-subnet-{number}"), format!("{name}-node-natgw-{number}"));
        complete(subnet, known, names, &node_cidr(number));
    }
    if number == 0 && !has_cluster {
        let mut subnet = of_role(roles::NODE);
        complete(
            &mut subnet,
            known,
            names(format!("{name}-node-subnet"), format!("{name}-node-natgw")),
            &node_cidr(1),
        );
        subnets.push(subnet);
    }
}

/// The control plane uses the route table of the workers.
fn share_route_table(subnets: &mut [Subnet]) {
    let table = subnets
        .iter()
        .filter(|subnet| is(subnet, roles::NODE) || is(subnet, roles::CLUSTER))
        .find_map(|subnet| subnet.route_table.as_ref()?.name.clone())
        .filter(|name| !name.is_empty());
    let Some(table) = table else { return };
    for subnet in subnets.iter_mut().filter(|subnet| is(subnet, roles::CONTROL_PLANE)) {
        fill(&mut subnet.route_table.get_or_insert_default().name, table.clone());
    }
}

/// Sets the defaults of a subnet. Previous values for this name stay: a subnet gets its outbound connectivity when it
/// is created, and no other one later unless the file asks for it.
fn complete(subnet: &mut Subnet, known: &[Subnet], names: Names, cidr: &str) {
    fill(&mut subnet.name, names.subnet);
    let known = known.iter().find(|known| known.name == subnet.name);
    let asked_for = subnet.nat_gateway.is_some();
    if subnet.cidr_blocks.as_ref().is_none_or(Vec::is_empty) {
        subnet.cidr_blocks = known.and_then(|known| known.cidr_blocks.clone());
    }
    if subnet.cidr_blocks.is_none() {
        fill_ranges(&mut subnet.cidr_blocks, cidr);
    }
    fill(&mut subnet.security_group.get_or_insert_default().name, names.security_group);
    if let Some(name) = names.route_table {
        fill(&mut subnet.route_table.get_or_insert_default().name, name);
    }
    if let Some(known) = known {
        keep_subnet(subnet, known);
    }
    if let Some(name) = names.nat_gateway
        && (known.is_none() || asked_for)
    {
        add_nat_gateway(subnet, name);
    }
}

/// An existing subnet keeps its outbound connectivity; workers with IPv6 use a load balancer.
fn add_nat_gateway(subnet: &mut Subnet, name: String) {
    let ipv6 = is_ipv6(subnet.cidr_blocks.as_ref());
    if is_set(&subnet.id) || (ipv6 && !is(subnet, roles::CLUSTER)) {
        return;
    }
    let gateway = subnet.nat_gateway.get_or_insert_default();
    fill(&mut gateway.name, name);
    if !ipv6 {
        let address = format!("pip-{}", text(&gateway.name));
        fill(&mut gateway.ip.get_or_insert_default().name, address);
    }
}

/// Whether one of a subnet's ranges is an IPv6 range.
pub(super) fn is_ipv6(ranges: Option<&Vec<String>>) -> bool {
    ranges.into_iter().flatten().any(|range| matches!(range.parse(), Ok(IpNet::V6(_))))
}

pub(super) fn is(subnet: &Subnet, role: &str) -> bool {
    subnet.role.as_deref() == Some(role)
}

fn of_role(role: &str) -> Subnet {
    Subnet { role: Some(role.to_owned()), ..Subnet::default() }
}

/// Sets ranges that are not declared.
pub(super) fn fill_ranges(ranges: &mut Option<Vec<String>>, range: &str) {
    if ranges.as_ref().is_none_or(Vec::is_empty) {
        *ranges = Some(vec![range.to_owned()]);
    }
}
