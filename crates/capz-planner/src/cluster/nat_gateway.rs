//! NAT gateways of subnets for nodes.

use capz_api::network::{NatGateway, Subnet, roles};
use serde_json::json;

use crate::document::{items, text};
use crate::goal::{Goal, OwnershipRule};
use crate::scope::{ClusterScope, reference};
use crate::service;

/// The NAT gateway of a subnet: only for subnets of nodes.
pub(super) fn of(subnet: &Subnet) -> Option<&NatGateway> {
    let has_nodes = matches!(subnet.role.as_deref(), Some(roles::NODE | roles::CLUSTER));
    subnet.nat_gateway.as_ref().filter(|gateway| has_nodes && text(&gateway.name).is_some())
}

/// The subnets that use this NAT gateway. It is created only if one of them is the cluster's or not created yet: the
/// owner of a foreign subnet decides how its machines reach the internet.
pub(super) fn users(scope: ClusterScope<'_>, is_it: impl Fn(&NatGateway) -> bool) -> OwnershipRule {
    let users = declared(scope).filter(|(_, gateway)| is_it(gateway));
    OwnershipRule::TaggedFor(
        users.filter_map(|(subnet, _)| Some(scope.subnet(subnet.name.as_deref()?))).collect(),
    )
}

/// Subnets and their NAT gateways.
pub(super) fn declared(scope: ClusterScope<'_>) -> impl Iterator<Item = (&Subnet, &NatGateway)> {
    scope.subnets().iter().filter_map(|subnet| Some((subnet, of(subnet)?)))
}

pub(super) fn goals(scope: ClusterScope<'_>) -> Vec<Goal> {
    let mut goals: Vec<Goal> = Vec::new();
    for (_, gateway) in declared(scope) {
        let name = gateway.name.as_deref().unwrap_or_default();
        let id = scope.in_group("natGateways", name);
        // Several subnets may share one gateway.
        if goals.iter().any(|goal| goal.id == id) {
            continue;
        }
        let ip = gateway.ip.as_ref().and_then(|ip| ip.name.as_deref()).unwrap_or_default();
        let document = json!({
            "location": scope.location(),
            "sku": { "name": "Standard" },
            "tags": scope.tags(None, Some(name)),
            "zones": items(&gateway.zones),
            "properties": { "publicIpAddresses": [reference(&scope.public_ip(ip))] },
        });
        let users = users(scope, |other| other.name == gateway.name);
        goals.push(Goal::new(id, &service::NAT_GATEWAYS, document).owned(users));
    }
    goals
}
