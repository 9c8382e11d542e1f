//! Writes of the group without a change of ours ([`crate::outcome::rewrite`]).

use azure_types::SecurityGroup;
use ownership::Proof;

use crate::model::Cluster;
use crate::outcome::{Change, Step, WholeDocument as _, proof};

/// The proof that the configuration names the group.
pub(super) fn configured(cluster: &Cluster) -> Proof {
    proof::configured(cluster, "securityGroupName")
}

/// The write that repairs a group whose latest operation failed.
pub(super) fn repair(cluster: &Cluster, observed: &SecurityGroup) -> Option<Step> {
    observed.repair(observed.id.clone()?, configured(cluster))
}

/// The group without a change that Azure accepted and later refused, under its current version: `before` is the group
/// that the change was planned against, `now` is its state in Azure. Absent if nothing was changed.
pub fn undone(before: &SecurityGroup, now: &SecurityGroup) -> Option<SecurityGroup> {
    before.undone(now)
}

/// The write that reverts such a change.
pub fn restore(cluster: &Cluster, before: &SecurityGroup, now: &SecurityGroup) -> Option<Step> {
    let undone = before.undone(now)?;
    Some(undone.rewrite(now.id.clone()?, now, Change::Restored, configured(cluster)))
}
