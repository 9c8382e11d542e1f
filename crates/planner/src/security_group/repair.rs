//! Writes of the group without a change of ours ([`crate::rewrite`]).

use azure_types::SecurityGroup;
use ownership::Proof;

use crate::cluster::Cluster;
use crate::plan::{Document, Step};
use crate::proof;
use crate::rewrite;

/// The configuration names the group.
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

/// The write that takes a refused change back: `before` is the group as it was planned against, `now` as Azure
/// left it. Absent where nothing was changed.
pub fn restore(cluster: &Cluster, before: &SecurityGroup, now: &SecurityGroup) -> Option<Step> {
    let target = now.id.clone().filter(|_| is_failed(now) && now.etag != before.etag)?;
    Some(rewrite::restore(target, whole(before), now.etag.clone(), configured(cluster)))
}
