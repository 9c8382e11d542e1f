//! The virtual network, its subnets, and its peerings with other networks.

use azure_types::ResourceId;
use capz_api::network::{Peering, PeeringProperties, Subnet};
use serde_json::{Map, Value, json};

use crate::goal::{Goal, OwnershipRule};
use crate::scope::{ClusterScope, reference};
use crate::service;

pub(super) fn goals(scope: ClusterScope<'_>) -> Vec<Goal> {
    let mut goals = vec![network(scope)];
    let bastion = super::bastion::declared(scope).and_then(|bastion| bastion.subnet.as_ref());
    goals.extend(scope.subnets().iter().chain(bastion).map(|it| subnet(scope, it)));
    goals.extend(peerings(scope));
    goals
}

fn network(scope: ClusterScope<'_>) -> Goal {
    let vnet = scope.spec.network_spec.as_ref().and_then(|network| network.vnet.as_ref());
    let ranges = vnet.and_then(|vnet| vnet.cidr_blocks.clone()).unwrap_or_default();
    let mut document = json!({
        "location": scope.location(),
        "tags": scope.tags(Some("common"), Some(scope.network_name())),
        "properties": { "addressSpace": { "addressPrefixes": ranges } },
    });
    if let Some(edge) = scope.extended_location() {
        document["extendedLocation"] = edge;
    }
    Goal::new(scope.network(), &service::VIRTUAL_NETWORK, document)
}

fn subnet(scope: ClusterScope<'_>, subnet: &Subnet) -> Goal {
    let ranges = subnet.cidr_blocks.as_deref().unwrap_or_default();
    let mut properties = Map::new();
    // Azure stores a single range in another member, and answers with that.
    match ranges {
        [range] => properties.insert("addressPrefix".into(), json!(range)),
        ranges => properties.insert("addressPrefixes".into(), json!(ranges)),
    };
    let mut refer = |member: &str, id: Option<ResourceId>| {
        if let Some(id) = id {
            properties.insert(member.to_owned(), reference(&id));
        }
    };
    let group = subnet.security_group.as_ref().and_then(|group| named(group.name.as_deref()));
    refer("networkSecurityGroup", group.map(|name| scope.in_network_group("networkSecurityGroups", name)));
    let table = subnet.route_table.as_ref().and_then(|table| named(table.name.as_deref()));
    refer("routeTable", table.map(|name| scope.in_network_group("routeTables", name)));
    let gateway = super::nat_gateway::of(subnet).and_then(|gateway| named(gateway.name.as_deref()));
    refer("natGateway", gateway.map(|name| scope.in_group("natGateways", name)));
    let endpoints: Vec<Value> = subnet
        .service_endpoints
        .iter()
        .flatten()
        .map(|endpoint| json!({ "service": endpoint.service, "locations": endpoint.locations }))
        .collect();
    if !endpoints.is_empty() {
        properties.insert("serviceEndpoints".into(), json!(endpoints));
    }
    let id = scope.subnet(subnet.name.as_deref().unwrap_or_default());
    Goal::new(id, &service::SUBNETS, json!({ "properties": properties }))
        .owned(OwnershipRule::Inside(scope.network()))
}

/// Peerings in both directions.
fn peerings(scope: ClusterScope<'_>) -> Vec<Goal> {
    let vnet = scope.spec.network_spec.as_ref().and_then(|network| network.vnet.as_ref());
    let peerings = vnet.and_then(|vnet| vnet.peerings.as_deref()).unwrap_or_default();
    peerings.iter().flat_map(|peering| both_ways(scope, peering)).collect()
}

fn both_ways(scope: ClusterScope<'_>, peering: &Peering) -> [Goal; 2] {
    let (own, remote) = (scope.network(), remote(scope, peering));
    [
        one_way(&own, &remote, peering.forward_peering_properties.as_ref()),
        one_way(&remote, &own, peering.reverse_peering_properties.as_ref()),
    ]
    .map(|goal| goal.owned(OwnershipRule::Joins(own.clone())))
}

/// The other network of a peering.
pub(super) fn remote(scope: ClusterScope<'_>, peering: &Peering) -> ResourceId {
    let group = named(peering.resource_group.as_deref()).unwrap_or_else(|| scope.group_name());
    ResourceId::group(scope.subscription, group).resource(
        "Microsoft.Network",
        "virtualNetworks",
        peering.remote_vnet_name.as_deref().unwrap_or_default(),
    )
}

fn one_way(from: &ResourceId, to: &ResourceId, wishes: Option<&PeeringProperties>) -> Goal {
    let mut properties = Map::new();
    properties.insert("remoteVirtualNetwork".into(), reference(to));
    if let Some(wishes) = wishes {
        for (member, wish) in [
            ("allowForwardedTraffic", wishes.allow_forwarded_traffic),
            ("allowGatewayTransit", wishes.allow_gateway_transit),
            ("allowVirtualNetworkAccess", wishes.allow_virtual_network_access),
            ("useRemoteGateways", wishes.use_remote_gateways),
        ] {
            if let Some(wish) = wish {
                properties.insert(member.into(), json!(wish));
            }
        }
    }
    let id = from.child("virtualNetworkPeerings", &format!("{}-To-{}", from.name(), to.name()));
    Goal::new(id, &service::PEERINGS, json!({ "properties": properties }))
}

fn named(name: Option<&str>) -> Option<&str> {
    name.filter(|name| !name.is_empty())
}
