//! Writes of the group without a change of ours ([`crate::outcome::rewrite`]).

use azure_types::SecurityGroup;
use ownership::Proof;

use crate::model::Cluster;
use crate::outcome::{Document, Step, proof, rewrite};

/// The proof that the configuration names the group.
pub(super) fn configured(cluster: &Cluster) -> Proof {
    proof::configured(cluster, "securityGroupName")
}

fn is_failed(group: &SecurityGroup) -> bool {
    rewrite::is_failed(group.properties.as_ref().and_then(|p| p.provisioning_state.as_ref()))
}

fn whole(group: &SecurityGroup) -> Document {
    Document::SecurityGroup(Box::new(group.clone()))
}

/// The write that repairs a group whose latest operation failed.
pub(super) fn repair(cluster: &Cluster, observed: &SecurityGroup) -> Option<Step> {
    let target = observed.id.clone().filter(|_| is_failed(observed))?;
    Some(rewrite::repair(target, whole(observed), observed.etag.clone(), configured(cluster)))
}

/// The group without a change that Azure accepted and later refused, under its current version: `before` is the group
/// that the change was planned against, `now` is its state in Azure. Absent if nothing was changed.
pub fn undone(before: &SecurityGroup, now: &SecurityGroup) -> Option<SecurityGroup> {
    let is_changed = is_failed(now) && now.etag != before.etag;
    is_changed.then(|| SecurityGroup { etag: now.etag.clone(), ..before.clone() })
}

/// The write that reverts such a change.
pub fn restore(cluster: &Cluster, before: &SecurityGroup, now: &SecurityGroup) -> Option<Step> {
    let (target, undone) = now.id.clone().zip(undone(before, now))?;
    Some(rewrite::restore(target, whole(&undone), undone.etag, configured(cluster)))
}
