//! Writes of the table without a change of ours: finishing what Azure did not, taking back what it refused.

use azure_types::{ResourceId, RouteTable};

use crate::change::{Change, Unfinished};
use crate::plan::{Action, Document, Purpose, Step};

/// Whether the latest operation on the table failed.
fn is_failed(table: &RouteTable) -> bool {
    let state = table.properties.as_ref().and_then(|p| p.provisioning_state.as_ref());
    state.is_some_and(|state| state.is("Failed") || state.is("Canceled"))
}

fn rewrite(
    target: &ResourceId,
    document: &RouteTable,
    if_match: Option<String>,
    purpose: Purpose,
    why: Change,
) -> Step {
    Step {
        action: Action::Update,
        target: target.clone(),
        if_match,
        document: Some(Document::RouteTable(Box::new(document.clone()))),
        changes: vec![why],
        purpose,
        on_behalf_of: Vec::new(),
    }
}

/// The write that repairs a table whose latest operation failed: the same document again.
pub(super) fn repair(target: &ResourceId, observed: &RouteTable) -> Option<Step> {
    let why = Change::Repaired(Unfinished::Operation);
    let repair = || rewrite(target, observed, observed.etag.clone(), Purpose::Repair, why);
    is_failed(observed).then(repair)
}

/// The write that takes a refused change back: `before` is the table as it was planned against, `now` as Azure left
/// it. Absent where nothing was changed.
pub fn restore(target: &ResourceId, before: &RouteTable, now: &RouteTable) -> Option<Step> {
    let restore = || rewrite(target, before, now.etag.clone(), Purpose::Restore, Change::Restored);
    (is_failed(now) && now.etag != before.etag).then(restore)
}
