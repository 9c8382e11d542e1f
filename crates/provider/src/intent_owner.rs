//! The owners of the intents that the writers of load balancers and of the security group get.

use std::fmt;

use cloud::ClusterState;
use k8s::ObjectKey;
use planner::ServiceRemoval;

/// The owner of an intent for a load balancer or the security group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IntentOwner {
    /// Nodes that start or stop draining.
    Draining,
    /// The endpoints of Services with pools of their own.
    Endpoints,
    /// The periodic comparison with Azure.
    Comparison,
    /// The cluster's nodes.
    Nodes,
    /// A Service.
    Service(ObjectKey),
}

impl fmt::Display for IntentOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Draining => f.write_str("nodes that drain"),
            Self::Endpoints => f.write_str("the endpoints of Services"),
            Self::Comparison => f.write_str("another look"),
            Self::Nodes => f.write_str("the cluster's nodes"),
            Self::Service(key) => key.fmt(f),
        }
    }
}

/// Whether a Service is still the same object, and still wants a load balancer.
pub(crate) fn is_wanted(state: &ClusterState, owner: &ServiceRemoval) -> bool {
    state.service(&owner.key).is_some_and(|service| {
        service.is_to_be_served() && planner::base_name(service.uid()) == owner.base_name
    })
}
