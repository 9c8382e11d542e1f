//! The cluster's routes in a table.

use std::net::IpAddr;

use azure_types::{Route, RouteTable};
use ipnet::IpNet;

use super::key::{Place, RouteKey, is_within, place};
use super::name;

/// Azure's type of the next hops of nodes' routes.
pub(super) const NEXT_HOP_TYPE: &str = "VirtualAppliance";

/// A route of one of the cluster's nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedRoute {
    /// The node and its range.
    pub key: RouteKey,
    /// The route's name.
    pub name: String,
    /// The address that it leads to, if any.
    pub next_hop: Option<IpAddr>,
    /// Whether it is named after the node alone, as in old releases.
    pub is_legacy: bool,
    /// Whether it leads into a range of the cluster. A route outside is the node's as well, but it is never removed.
    pub is_within: bool,
}

/// The address that a route leads to, if any.
pub(super) fn next_hop_of(route: &Route) -> Option<IpAddr> {
    let properties = route.properties.as_ref()?;
    properties.next_hop_type.as_ref().filter(|kind| kind.is(NEXT_HOP_TYPE))?;
    properties.next_hop_ip_address.as_deref()?.parse().ok()
}

/// The place of a route from its name and prefix, and whether it is named after the node alone.
pub(super) fn place_of(route: &Route) -> Option<(Place, bool)> {
    let range = range_of(route)?;
    let prefix = route.properties.as_ref()?.address_prefix.as_deref()?;
    let (node, is_legacy) = name::node_of(name_of(route), prefix, &range)?;
    Some((place(node, &range), is_legacy))
}

/// The cluster's routes in a table, whether their nodes exist or not: the ones whose name consists of a node's name and
/// their own prefix, and the ones that are named after a known node (`is_node`). Other routes are foreign, even if they
/// lead into a range of the cluster. Routes out of the cluster's ranges are marked ([`OwnedRoute::is_within`]). Empty
/// if there is no table.
pub fn owned(
    cluster_ranges: &[IpNet],
    table: Option<&RouteTable>,
    is_node: impl Fn(&str) -> bool,
) -> Vec<OwnedRoute> {
    let routes = table.and_then(|table| table.properties.as_ref()?.routes.as_deref()).unwrap_or_default();
    let owned = |route: &Route| {
        let ((node, range), is_legacy) = place_of(route)?;
        let is_within = is_within(&range, cluster_ranges);
        (!is_legacy || is_node(&node)).then(|| OwnedRoute {
            key: RouteKey { node, range },
            name: name_of(route).to_owned(),
            next_hop: next_hop_of(route),
            is_legacy,
            is_within,
        })
    };
    routes.iter().filter_map(owned).collect()
}

/// The name of a route; empty if Azure returns none.
pub(super) fn name_of(route: &Route) -> &str {
    route.name.as_deref().unwrap_or_default()
}

/// The range of a route; `None` for a service tag. Host bits are kept: names are made of them.
pub(super) fn range_of(route: &Route) -> Option<IpNet> {
    route.properties.as_ref()?.address_prefix.as_deref()?.parse().ok()
}
