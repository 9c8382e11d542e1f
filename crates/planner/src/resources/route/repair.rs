//! Writes of the table without a change of ours ([`crate::outcome::rewrite`]).

use azure_types::{ResourceId, RouteTable};
use ownership::Proof;

use crate::model::Cluster;
use crate::outcome::{Document, Step, proof, rewrite};

/// The proof that the configuration names the table.
pub(super) fn configured(cluster: &Cluster) -> Proof {
    proof::configured(cluster, "routeTableName")
}

fn is_failed(table: &RouteTable) -> bool {
    rewrite::is_failed(table.properties.as_ref().and_then(|p| p.provisioning_state.as_ref()))
}

fn whole(table: &RouteTable) -> Document {
    Document::RouteTable(Box::new(table.clone()))
}

/// The write that repairs a table whose latest operation failed.
pub(super) fn repair(cluster: &Cluster, target: &ResourceId, observed: &RouteTable) -> Option<Step> {
    let proof = configured(cluster);
    let repair = || rewrite::repair(target.clone(), whole(observed), observed.etag.clone(), proof);
    is_failed(observed).then(repair)
}

/// The write that reverts a refused change: `before` is the table that the change was planned against, `now` is its
/// state in Azure. Absent if nothing was changed.
pub fn restore(
    cluster: &Cluster,
    target: &ResourceId,
    before: &RouteTable,
    now: &RouteTable,
) -> Option<Step> {
    let restore = || rewrite::restore(target.clone(), whole(before), now.etag.clone(), configured(cluster));
    (is_failed(now) && now.etag != before.etag).then(restore)
}
