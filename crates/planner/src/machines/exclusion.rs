//! Nodes that are excluded from backend pools: the reasons and the remedies.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use k8s::{Node, names};

use crate::model::Cluster;
use crate::model::words::name_some;

/// Why a node is excluded from backend pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exclusion {
    /// It is being deleted.
    Deleting,
    /// Its label excludes it; `false` keeps it in, as in Kubernetes.
    Label,
    /// The autoscaler is about to remove its machine.
    Autoscaler,
    /// It is not an Azure machine.
    Unmanaged,
    /// Its machine is in a resource group in which nothing is written.
    OtherResourceGroup,
    /// It is a control-plane node, and the configuration excludes those.
    ControlPlane,
    /// It is a control-plane node, and pools hold addresses: never those of control planes, as in the replaced program
    /// (6.1).
    ControlPlaneByAddress,
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (label, taint) = (names::LABEL_EXCLUDE_FROM_LOAD_BALANCERS, names::TAINT_TO_BE_DELETED);
        match self {
            Self::Deleting => f.write_str("they are being deleted"),
            Self::Label => write!(f, "label {label} excludes them: remove it from nodes that should get traffic"),
            Self::Autoscaler => write!(f, "taint {taint} says that the cluster autoscaler removes them"),
            Self::Unmanaged => write!(f, "label {} says that Azure does not run them", names::LABEL_MANAGED),
            Self::OtherResourceGroup => write!(
                f,
                "label {} names another resource group than resourceGroup in the cloud configuration",
                names::LABEL_RESOURCE_GROUP
            ),
            Self::ControlPlane => f.write_str(
                "they are control planes, which excludeMasterFromStandardLB excludes: set it to false in the cloud \
                 configuration, or add a worker",
            ),
            Self::ControlPlaneByAddress => f.write_str(
                "they are control planes, which pools of IP addresses never hold: add a worker, or set \
                 loadBalancerBackendPoolConfigurationType to nodeIPConfiguration and excludeMasterFromStandardLB to \
                 false in the cloud configuration",
            ),
        }
    }
}

/// All reasons that exclude a node from pools; empty if it belongs in them.
pub(crate) fn of(cluster: &Cluster, node: &Node) -> impl Iterator<Item = Exclusion> {
    let config = &cluster.config;
    let by_address = cluster.has_pools_of_addresses();
    let group = node.label(names::LABEL_RESOURCE_GROUP).filter(|group| !group.is_empty());
    let elsewhere =
        !by_address && group.is_some_and(|group| !group.eq_ignore_ascii_case(&config.resource_group));
    let keeps_control_planes_out =
        config.uses_standard_load_balancer() && config.exclude_master_from_standard_lb;
    let control_plane = node.is_control_plane();
    [
        (k8s::is_deleting(&node.metadata), Exclusion::Deleting),
        (node.is_excluded_from_load_balancers(), Exclusion::Label),
        (node.has_taint(names::TAINT_TO_BE_DELETED), Exclusion::Autoscaler),
        (!node.is_managed(), Exclusion::Unmanaged),
        (elsewhere, Exclusion::OtherResourceGroup),
        (control_plane && !by_address && keeps_control_planes_out, Exclusion::ControlPlane),
        (control_plane && by_address, Exclusion::ControlPlaneByAddress),
    ]
    .into_iter()
    .filter_map(|(applies, exclusion)| applies.then_some(exclusion))
}

/// Says why no node is eligible for pools: which nodes are excluded by which reason, and the remedy. `None` if a node
/// is eligible.
pub fn why_no_nodes(cluster: &Cluster, nodes: &[Arc<Node>]) -> Option<String> {
    if nodes.is_empty() {
        return Some("the cluster has no nodes".to_owned());
    }
    let mut out: BTreeMap<Exclusion, Vec<&str>> = BTreeMap::new();
    for node in nodes {
        let mut exclusions = of(cluster, node).peekable();
        exclusions.peek()?;
        for exclusion in exclusions {
            out.entry(exclusion).or_default().push(node.name());
        }
    }
    let causes: Vec<String> = out
        .into_iter()
        .map(|(exclusion, mut nodes)| {
            nodes.sort_unstable();
            format!("nodes {}: {exclusion}", name_some(&nodes))
        })
        .collect();
    Some(causes.join("; "))
}
