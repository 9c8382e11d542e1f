//! The virtual network, its subnets, and its peerings with other networks.

use azure_types::ResourceId;
use capz_api::network::{Peering, PeeringProperties, Subnet};
use serde_json::json;

use crate::document::{items, text};
use crate::goal::{Goal, OwnershipRule};
use crate::scope::{ClusterScope, reference};
use crate::service;

pub(crate) fn goals(scope: ClusterScope<'_>) -> Vec<Goal> {
    let mut goals = vec![network(scope)];
    let bastion = super::bastion::declared(scope).and_then(|bastion| bastion.subnet.as_ref());
    goals.extend(scope.subnets().iter().chain(bastion).map(|it| subnet(scope, it)));
    goals.extend(peerings(scope));
    goals
}

fn network(scope: ClusterScope<'_>) -> Goal {
    let ranges = scope.vnet().and_then(|vnet| vnet.cidr_blocks.clone()).unwrap_or_default();
    let document = json!({
        "location": scope.location(),
        "extendedLocation": scope.extended_location(),
        "tags": scope.tags(Some("common"), Some(scope.network_name())),
        "properties": { "addressSpace": { "addressPrefixes": ranges } },
    });
    Goal::new(scope.network(), &service::VIRTUAL_NETWORK, document)
}

fn subnet(scope: ClusterScope<'_>, subnet: &Subnet) -> Goal {
    // Azure stores a single range in another member, and answers with that.
    let (range, ranges) = match subnet.cidr_blocks.as_deref().unwrap_or_default() {
        [range] => (Some(range), None),
        ranges => (None, Some(ranges)),
    };
    let group = subnet.security_group.as_ref().and_then(|group| text(&group.name));
    let table = subnet.route_table.as_ref().and_then(|table| text(&table.name));
    let gateway = super::nat_gateway::of(subnet).and_then(|gateway| text(&gateway.name));
    let endpoints = items(&subnet.service_endpoints).map(|endpoints| {
        let endpoints = endpoints.iter();
        endpoints.map(|it| json!({ "service": it.service, "locations": it.locations })).collect::<Vec<_>>()
    });
    let of_network = |kind: &str, name: &str| reference(&scope.in_network_group(kind, name));
    let document = json!({
        "properties": {
            "addressPrefix": range,
            "addressPrefixes": ranges,
            "networkSecurityGroup": group.map(|name| of_network("networkSecurityGroups", name)),
            "routeTable": table.map(|name| of_network("routeTables", name)),
            "natGateway": gateway.map(|name| reference(&scope.in_group("natGateways", name))),
            "serviceEndpoints": endpoints,
        },
    });
    let id = scope.subnet(subnet.name.as_deref().unwrap_or_default());
    Goal::new(id, &service::SUBNETS, document).owned(OwnershipRule::Inside(scope.network()))
}

/// Peerings in both directions.
fn peerings(scope: ClusterScope<'_>) -> Vec<Goal> {
    scope.peerings().iter().flat_map(|peering| both_ways(scope, peering)).collect()
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
    let group = text(&peering.resource_group).unwrap_or_else(|| scope.group_name());
    ResourceId::group(scope.subscription, group).resource(
        "Microsoft.Network",
        "virtualNetworks",
        peering.remote_vnet_name.as_deref().unwrap_or_default(),
    )
}

fn one_way(from: &ResourceId, to: &ResourceId, wishes: Option<&PeeringProperties>) -> Goal {
    let wish = |wish: fn(&PeeringProperties) -> Option<bool>| wishes.and_then(wish);
    let document = json!({
        "properties": {
            "remoteVirtualNetwork": reference(to),
            "allowForwardedTraffic": wish(|it| it.allow_forwarded_traffic),
            "allowGatewayTransit": wish(|it| it.allow_gateway_transit),
            "allowVirtualNetworkAccess": wish(|it| it.allow_virtual_network_access),
            "useRemoteGateways": wish(|it| it.use_remote_gateways),
        },
    });
    let id = from.child("virtualNetworkPeerings", &format!("{}-To-{}", from.name(), to.name()));
    Goal::new(id, &service::PEERINGS, document)
}
