//! The resource that is created first in a cluster's group. Azure accepts no condition on the creation of a group: two
//! clusters of one name may both create it at the same moment, and the tags of the later write stay. A resource in the
//! group is created only if it does not exist, so one of the two clusters creates this resource. That cluster owns the
//! group, and the other one creates nothing.

use azure_types::ResourceId;

use crate::goal::{Goal, OwnershipRule};
use crate::references::ids_in;
use crate::service::{self, Service};

/// The resource that all others of the cluster wait for: one that depends on no other. Best is the public IP of a NAT
/// gateway, which takes longest, so that the wait delays nothing. In a user's network no gateway is created: there it
/// is the public IP of the API server, or the load balancer of a private API server.
pub(crate) fn of(group: &ResourceId, goals: &[Goal]) -> Option<ResourceId> {
    let find = |service: &Service, is_for_gateway: bool| {
        let mut all = goals.iter().filter(|goal| goal.wanted && goal.id.is_within(group));
        all.find(|goal| {
            goal.service == service && matches!(goal.ownership, OwnershipRule::TaggedFor(_)) == is_for_gateway
        })
    };
    let network = find(&service::VIRTUAL_NETWORK, false);
    let first = match network {
        Some(network) => find(&service::PUBLIC_IPS, true).unwrap_or(network),
        None => [&service::PUBLIC_IPS, &service::LOAD_BALANCERS, &service::MANAGED_CLUSTER]
            .into_iter()
            .find_map(|service| find(service, false))?,
    };
    Some(first.id.clone())
}

/// Makes all other goals wait for it. Resources that refer to a waiting one, or lie in it, come later anyway, unless
/// that one is a user's.
pub(super) fn wait(group: &ResourceId, goals: &mut [Goal]) {
    let Some(first) = of(group, goals) else { return };
    let is_made = |goal: &Goal| goal.wanted && *goal.service != service::GROUP;
    let has_network =
        goals.iter().any(|goal| *goal.service == service::VIRTUAL_NETWORK && goal.id.is_within(group));
    let needs_another = |goal: &Goal| {
        let ids = ids_in(&goal.document);
        // Resources in a user's group, such as a zone, may exist already.
        let is_later = |other: &Goal| is_made(other) && other.id.is_within(group);
        let others = goals.iter().filter(|other| is_later(other) && other.id != goal.id);
        has_network && { others }
            .any(|other| goal.id.is_within(&other.id) || ids.iter().any(|id| id.is_within(&other.id)))
    };
    let waits: Vec<bool> =
        goals.iter().map(|goal| is_made(goal) && goal.id != first && !needs_another(goal)).collect();
    for (goal, _) in goals.iter_mut().zip(waits).filter(|(_, waits)| *waits) {
        goal.after.push(first.clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_resource_depends_on_no_other() {
        let group = ResourceId::group("s", "g");
        let goal = |group: &ResourceId, kind: &str, name: &str, service: &'static Service| {
            Goal::new(group.resource("Microsoft.Network", kind, name), service, json!({}))
        };
        let network =
            |group: &ResourceId| goal(group, "virtualNetworks", "network", &service::VIRTUAL_NETWORK);
        let for_gateway = |goal: Goal| goal.owned(OwnershipRule::TaggedFor(Vec::new()));
        let address = || goal(&group, "publicIPAddresses", "address", &service::PUBLIC_IPS);
        let gateway = || for_gateway(goal(&group, "publicIPAddresses", "gateway", &service::PUBLIC_IPS));
        let balancer = || goal(&group, "loadBalancers", "balancer", &service::LOAD_BALANCERS);
        let other = || for_gateway(goal(&group, "routeTables", "other", &service::ROUTE_TABLES));
        for (goals, expected) in [
            (vec![other(), address(), network(&group), gateway()], Some("gateway")),
            (vec![other(), address(), network(&group), balancer()], Some("network")),
            (vec![other(), gateway(), balancer(), address()], Some("address")),
            (vec![other(), gateway(), balancer()], Some("balancer")),
            (vec![other(), gateway()], None),
            (vec![balancer(), network(&ResourceId::group("s", "theirs")), gateway()], Some("balancer")),
            (vec![balancer(), network(&group).ended(), gateway()], Some("balancer")),
        ] {
            let found = of(&group, &goals);
            assert_eq!(found.as_ref().map(|id| id.name()), expected, "{goals:?}");
        }
    }
}
