//! A cluster, as far as its needs depend on it.

use k8s::{Node, Service};

use crate::Feature;

/// An object that a flag names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What the controller manager runs, from its flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The Lease of the election; `None` without an election.
    pub election: Option<ObjectName>,
    /// The Secret with azure.json, if there is one.
    pub secret: Option<ObjectName>,
    /// The controller service.
    pub services: bool,
    /// The controller cloud-node.
    pub nodes: bool,
    /// The controller cloud-node-lifecycle.
    pub node_lifecycle: bool,
    /// Whether routes are written if azure.json names a table.
    pub routes: bool,
    /// Whether nodes get ranges for their pods.
    pub pod_ranges: bool,
    /// Whether tags say how large the ranges are.
    pub pod_ranges_by_tags: bool,
    /// Whether metrics are served.
    pub metrics: bool,
}

/// A cluster, as far as it is known.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    /// The configuration, with the name that roles in Azure get.
    pub cluster: &'a planner::Cluster,
    /// What runs.
    pub run: &'a Run,
    /// The known Services.
    pub services: &'a [Service],
    /// The known Nodes. Without any, machines of each kind that azure.json allows are assumed, in its group.
    pub nodes: &'a [Node],
    /// Features that do not follow from the above.
    pub more: &'a [Feature],
}
