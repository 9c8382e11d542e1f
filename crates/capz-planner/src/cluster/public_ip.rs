//! Public IPs: of the API server, of outbound traffic, of NAT gateways and the bastion host.

use capz_api::network::{LoadBalancer, NatGateway, PublicIp};
use serde_json::{Map, Value, json};

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
    match balancer.availability_zones.as_deref() {
        Some(zones) if !zones.is_empty() => zones,
        _ => scope.zones,
    }
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
    let mut properties = Map::from_iter([
        ("publicIPAddressVersion".to_owned(), json!("IPv4")),
        ("publicIPAllocationMethod".to_owned(), json!("Static")),
    ]);
    if let Some(dns_name) = ip.dns_name.as_deref().filter(|name| !name.is_empty()) {
        let label = dns_name.split('.').next().unwrap_or_default();
        properties.insert("dnsSettings".into(), json!({ "domainNameLabel": label.to_lowercase() }));
    }
    let ip_tags: Vec<Value> =
        ip.ip_tags.iter().flatten().map(|tag| json!({ "ipTagType": tag.kind, "tag": tag.tag })).collect();
    if !ip_tags.is_empty() {
        properties.insert("ipTags".into(), json!(ip_tags));
    }
    let mut document = json!({
        "location": scope.location(),
        "sku": { "name": "Standard" },
        "tags": scope.tags(None, Some(name)),
        "properties": properties,
    });
    if !zones.is_empty() {
        document["zones"] = json!(zones);
    }
    if let Some(edge) = edge {
        document["extendedLocation"] = edge;
    }
    Goal::new(scope.public_ip(name), &service::PUBLIC_IPS, document)
}
