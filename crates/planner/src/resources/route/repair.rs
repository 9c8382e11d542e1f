//! Writes of the table without a change of ours ([`crate::outcome::rewrite`]).

use azure_types::{ResourceId, RouteTable};
use ownership::Proof;

use crate::model::Cluster;
use crate::outcome::{Step, WholeDocument as _, proof};

/// The proof that the configuration names the table.
pub(super) fn configured(cluster: &Cluster) -> Proof {
    proof::configured(cluster, "routeTableName")
}

/// The write that reverts a refused change: `before` is the table that the change was planned against, `now` is its
/// state in Azure. Absent if nothing was changed.
pub fn restore(
    cluster: &Cluster,
    target: &ResourceId,
    before: &RouteTable,
    now: &RouteTable,
) -> Option<Step> {
    before.restore(target.clone(), now, configured(cluster))
}
