//! Writes of the group without a change of ours ([`crate::rewrite`]).

use azure_types::SecurityGroup;

use crate::plan::{Document, Step};
use crate::rewrite;

fn is_failed(group: &SecurityGroup) -> bool {
    rewrite::is_failed(group.properties.as_ref().and_then(|p| p.provisioning_state.as_ref()))
}

fn whole(group: &SecurityGroup) -> Document {
    Document::SecurityGroup(Box::new(group.clone()))
}

/// The write that repairs a group whose latest operation failed.
pub(super) fn repair(observed: &SecurityGroup) -> Option<Step> {
    let target = observed.id.clone().filter(|_| is_failed(observed))?;
    Some(rewrite::repair(target, whole(observed), observed.etag.clone()))
}

/// The write that takes a refused change back: `before` is the group as it was planned against, `now` as Azure
/// left it. Absent where nothing was changed.
pub fn restore(before: &SecurityGroup, now: &SecurityGroup) -> Option<Step> {
    let target = now.id.clone().filter(|_| is_failed(now) && now.etag != before.etag)?;
    Some(rewrite::restore(target, whole(before), now.etag.clone()))
}
