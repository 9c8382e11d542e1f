//! The private DNS zone with the name of a private API server.

use azure_types::ResourceId;
use serde_json::json;
use std::net::IpAddr;

use crate::document::text;
use crate::goal::{Goal, OwnershipRule};
use crate::scope::{ClusterScope, reference};
use crate::service;
use crate::tags;

/// The name of the API server in its zone.
pub(super) const RECORD: &str = "apiserver";
const TIME_TO_LIVE: i32 = 300;

/// Makes all other goals wait for the record if its zone is in a user's group. Clusters of all names share such a zone:
/// if two clusters are created at the same moment, one creates the record, and the other one creates nothing.
pub(super) fn wait(goals: &mut [Goal]) {
    let groups: Vec<ResourceId> =
        goals.iter().filter(|goal| *goal.service == service::GROUP).map(|goal| goal.id.clone()).collect();
    let is_of_user = |goal: &&Goal| !groups.iter().any(|group| goal.id.is_within(group));
    let records = goals.iter().filter(|goal| goal.wanted && *goal.service == service::DNS_RECORD);
    let Some(record) = { records }.find(is_of_user).map(|record| record.id.clone()) else { return };
    for goal in goals.iter_mut().filter(|goal| goal.wanted) {
        if record.is_within(&goal.id) {
            goal.after.clear();
        } else {
            goal.after.push(record.clone());
        }
    }
}

/// The name of the zone.
pub(super) fn zone_name(scope: ClusterScope<'_>) -> String {
    let name = scope.spec.network_spec.as_ref().and_then(|network| text(&network.private_dns_zone_name));
    name.map_or_else(|| format!("{}.capz.io", scope.cluster), str::to_owned)
}

pub(super) fn goals(scope: ClusterScope<'_>) -> Vec<Goal> {
    let Some(network) = scope.spec.network_spec.as_ref() else { return Vec::new() };
    let Some(balancer) = scope.api_server_balancer().filter(|balancer| balancer.is_internal()) else {
        return Vec::new();
    };
    if network.private_dns_zone.as_deref() == Some("None") {
        return Vec::new();
    }
    let group = text(&network.private_dns_zone_resource_group).unwrap_or_else(|| scope.group_name());
    let group = ResourceId::group(scope.subscription, group);
    let zone = group.resource("Microsoft.Network", "privateDnsZones", &zone_name(scope));
    let tags = scope.tags(None, None);
    let mut goals =
        vec![Goal::new(zone.clone(), &service::DNS_ZONE, json!({ "location": "global", "tags": tags }))];
    let remote = scope.peerings().iter().map(|peering| super::network::remote(scope, peering));
    for network in std::iter::once(scope.network()).chain(remote) {
        let id = zone.child("virtualNetworkLinks", &format!("{}-link", network.name()));
        let document = json!({
            "location": "global",
            "tags": tags,
            "properties": { "virtualNetwork": reference(&network), "registrationEnabled": false },
        });
        goals.push(Goal::new(id, &service::DNS_LINKS, document));
    }
    let address = balancer.frontend_ips.iter().flatten().find_map(|frontend| frontend.private_ip.clone());
    if let Some(address) = address {
        let is_ipv6 = address.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6());
        let own = scope.id.filter(|id| !id.is_empty());
        let document = json!({
            "properties": {
                "ttl": TIME_TO_LIVE,
                "aRecords": (!is_ipv6).then(|| json!([{ "ipv4Address": address }])),
                "aaaaRecords": is_ipv6.then(|| json!([{ "ipv6Address": address }])),
                "metadata": own.map(|own| json!({ tags::ID: own })),
            },
        });
        let id = zone.child(if is_ipv6 { "AAAA" } else { "A" }, RECORD);
        goals.push(Goal::new(id, &service::DNS_RECORD, document).owned(OwnershipRule::Recorded));
    }
    goals
}
