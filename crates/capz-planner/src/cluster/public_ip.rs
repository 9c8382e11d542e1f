//! Public IPs: of the API server, of outbound traffic, of NAT gateways and the bastion host.

use capz_api::network::{LoadBalancer, NatGateway, PublicIp};
use serde_json::{Value, json};

use crate::document::{items, text};
use crate::goal::Goal;
use crate::scope::ClusterScope;
use crate::service;

pub(super) fn goals(scope: ClusterScope<'_>) -> Vec<Goal> {
    let mut goals: Vec<Goal> = Vec::new();
    let mut add = |goal: Goal| {
        if !goals.iter().any(|known| known.id == goal.id) {
            goals.push(goal);
        }
    };
    let balancers = [
        scope.api_server_balancer(),
        scope.control_plane_outbound_balancer(),
        scope.node_outbound_balancer(),
    ];
    for balancer in balancers.into_iter().flatten() {
        for ip in balancer.frontend_ips.iter().flatten().filter_map(|frontend| frontend.public_ip.as_ref()) {
            add(goal(scope, ip, zones(scope, balancer), true));
        }
    }
    for (_, gateway) in super::nat_gateway::declared(scope) {
        if let Some(ip) = &gateway.ip {
            let name = |gateway: &NatGateway| gateway.ip.as_ref().and_then(|ip| ip.name.clone());
            let users = super::nat_gateway::users(scope, |other| name(other) == name(gateway));
            add(goal(scope, ip, scope.zones, false).owned(users));
        }
    }
    if let Some(ip) = super::bastion::declared(scope).and_then(|bastion| bastion.public_ip.as_ref()) {
        add(goal(scope, ip, scope.zones, false));
    }
    goals
}

/// The zones of a load balancer, by default all zones of the region.
fn zones<'a>(scope: ClusterScope<'a>, balancer: &'a LoadBalancer) -> &'a [String] {
    items(&balancer.availability_zones).unwrap_or(scope.zones)
}

fn goal(scope: ClusterScope<'_>, ip: &PublicIp, zones: &[String], at_the_edge: bool) -> Goal {
    let name = ip.name.as_deref().unwrap_or_default();
    let edge = if at_the_edge { scope.extended_location() } else { None };
    goal_of(scope, name, ip, zones, edge)
}

/// The goal for a public IP with this name.
pub(crate) fn goal_of(
    scope: ClusterScope<'_>,
    name: &str,
    ip: &PublicIp,
    zones: &[String],
    edge: Option<Value>,
) -> Goal {
    let label = |name: &str| name.split('.').next().unwrap_or_default().to_lowercase();
    let ip_tags = items(&ip.ip_tags).map(|tags| {
        tags.iter().map(|tag| json!({ "ipTagType": tag.kind, "tag": tag.tag })).collect::<Vec<_>>()
    });
    let document = json!({
        "location": scope.location(),
        "extendedLocation": edge,
        "sku": { "name": "Standard" },
        "tags": scope.tags(None, Some(name)),
        "zones": (!zones.is_empty()).then_some(zones),
        "properties": {
            "publicIPAddressVersion": "IPv4",
            "publicIPAllocationMethod": "Static",
            "dnsSettings": text(&ip.dns_name).map(|name| json!({ "domainNameLabel": label(name) })),
            "ipTags": ip_tags,
        },
    });
    Goal::new(scope.public_ip(name), &service::PUBLIC_IPS, document)
}
