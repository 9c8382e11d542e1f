//! Writes of the group without a change of ours: finishing what Azure did not, taking back what it refused.

use azure_types::{ResourceId, SecurityGroup};

use crate::change::{Change, Unfinished};
use crate::plan::{Action, Document, Purpose, Step};

/// Whether the latest operation on the group failed.
fn is_failed(group: &SecurityGroup) -> bool {
    let state = group.properties.as_ref().and_then(|p| p.provisioning_state.as_ref());
    state.is_some_and(|state| state.is("Failed") || state.is("Canceled"))
}

fn rewrite(
    target: ResourceId,
    document: &SecurityGroup,
    if_match: Option<String>,
    purpose: Purpose,
    why: Change,
) -> Step {
    Step {
        action: Action::Update,
        target,
        if_match,
        document: Some(Document::SecurityGroup(Box::new(document.clone()))),
        changes: vec![why],
        purpose,
        on_behalf_of: Vec::new(),
    }
}

/// The write that repairs a group whose latest operation failed: the same document again.
pub(super) fn repair(observed: &SecurityGroup) -> Option<Step> {
    let target = observed.id.clone().filter(|_| is_failed(observed))?;
    let why = Change::Repaired(Unfinished::Operation);
    Some(rewrite(target, observed, observed.etag.clone(), Purpose::Repair, why))
}

/// The write that takes a refused change back: `before` is the group as it was planned against, `now` as Azure
/// left it. Absent where nothing was changed.
pub fn restore(before: &SecurityGroup, now: &SecurityGroup) -> Option<Step> {
    let target = now.id.clone().filter(|_| is_failed(now) && now.etag != before.etag)?;
    Some(rewrite(target, before, now.etag.clone(), Purpose::Restore, Change::Restored))
}
