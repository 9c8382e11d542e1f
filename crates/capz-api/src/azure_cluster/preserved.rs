//! Values of an AzureCluster that stay when a file is applied again: members that admission or the controller has set,
//! and that the file in git does not contain. `kubectl apply` writes lists as a whole, so values in a subnet or a
//! frontend would be lost, and with them the cluster's outbound connectivity. Values in the file take precedence.

use super::types::AzureClusterSpec;
use crate::network::{
    COMPLETED_RULES, FrontendIp, LoadBalancer, NatGateway, SecurityRule, Subnet, VirtualNetwork,
};
use crate::text::{keep as keep_text, text};

/// Keeps the values of `old` in the endpoint, the network and its load balancers.
pub(super) fn keep(new: &mut AzureClusterSpec, old: &AzureClusterSpec) {
    if let Some(known) = &old.control_plane_endpoint {
        new.control_plane_endpoint.get_or_insert_default().keep(known);
    }
    let (Some(network), Some(known)) = (new.network_spec.as_mut(), old.network_spec.as_ref()) else { return };
    if let (Some(vnet), Some(known)) = (network.vnet.as_mut(), known.vnet.as_ref()) {
        keep_network(vnet, known);
    }
    for subnet in network.subnets.iter_mut().flatten() {
        let known = known.subnets.iter().flatten().find(|known| known.name == subnet.name);
        keep_route_table(subnet, known);
    }
    for (balancer, known) in [
        (&mut network.api_server_lb, &known.api_server_lb),
        (&mut network.node_outbound_lb, &known.node_outbound_lb),
        (&mut network.control_plane_outbound_lb, &known.control_plane_outbound_lb),
    ] {
        if let (Some(balancer), Some(known)) = (balancer, known)
            && balancer.name == known.name
        {
            keep_balancer(balancer, known);
        }
    }
}

fn keep_network(vnet: &mut VirtualNetwork, known: &VirtualNetwork) {
    if vnet.name == known.name && vnet.resource_group == known.resource_group {
        keep_text(&mut vnet.id, &known.id);
        if vnet.tags.is_none() {
            vnet.tags.clone_from(&known.tags);
        }
    }
}

fn keep_route_table(subnet: &mut Subnet, known: Option<&Subnet>) {
    if let (Some(table), Some(known)) =
        (subnet.route_table.as_mut(), known.and_then(|known| known.route_table.as_ref()))
        && table.name == known.name
    {
        keep_text(&mut table.id, &known.id);
    }
}

fn keep_balancer(balancer: &mut LoadBalancer, known: &LoadBalancer) {
    keep_text(&mut balancer.id, &known.id);
    let frontends = |balancer: &LoadBalancer| balancer.frontend_ips.clone().unwrap_or_default();
    let known = frontends(known);
    for frontend in balancer.frontend_ips.iter_mut().flatten() {
        let same = |known: &&FrontendIp| known.name == frontend.name;
        let address = known.iter().find(same).and_then(|known| known.public_ip.as_ref());
        if let (Some(ip), Some(known)) = (frontend.public_ip.as_mut(), address)
            && ip.name == known.name
        {
            keep_text(&mut ip.dns_name, &known.dns_name);
        }
    }
}

/// Keeps the values of a subnet of the same name: its ID, its outbound connectivity, and the rules that the controller
/// has added.
pub(super) fn keep_subnet(subnet: &mut Subnet, known: &Subnet) {
    keep_text(&mut subnet.id, &known.id);
    if let Some(known) = &known.nat_gateway {
        keep_gateway(subnet.nat_gateway.get_or_insert_with(|| known.clone()), known);
    }
    let (Some(group), Some(known)) = (subnet.security_group.as_mut(), known.security_group.as_ref()) else {
        return;
    };
    if group.name != known.name {
        return;
    }
    keep_text(&mut group.id, &known.id);
    if group.tags.is_none() {
        group.tags.clone_from(&known.tags);
    }
    let completed: Vec<SecurityRule> = known
        .security_rules
        .iter()
        .flatten()
        .filter(|rule| COMPLETED_RULES.contains(&text(&rule.name)))
        .filter(|rule| {
            let covers = |other: &SecurityRule| {
                other.name == rule.name || other.destination_ports == rule.destination_ports
            };
            !group.security_rules.iter().flatten().any(covers)
        })
        .cloned()
        .collect();
    if !completed.is_empty() {
        group.security_rules.get_or_insert_default().extend(completed);
    }
}

fn keep_gateway(gateway: &mut NatGateway, known: &NatGateway) {
    keep_text(&mut gateway.name, &known.name);
    if gateway.name == known.name {
        keep_text(&mut gateway.id, &known.id);
        if gateway.ip.is_none() {
            gateway.ip.clone_from(&known.ip);
        }
    }
}
