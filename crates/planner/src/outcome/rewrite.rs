//! Writes of a whole document without a change of ours: completing what Azure did not finish, reverting what it
//! refused.

use azure_types::{ResourceId, Word};
use ownership::Proof;

use super::change::{Change, Unfinished};
use super::plan::{Action, Document, Purpose, Step};

/// Whether the latest operation on a resource failed, by its provisioning state: writing it again repairs it.
pub(crate) fn is_failed(state: Option<&Word>) -> bool {
    state.is_some_and(|state| state.is("Failed") || state.is("Canceled"))
}

/// The write that repairs a resource whose latest operation failed: the same document again.
pub(crate) fn repair(target: ResourceId, document: Document, version: Option<String>, proof: Proof) -> Step {
    rewrite(target, document, version, Purpose::Repair, Change::Repaired(Unfinished::Operation), proof)
}

/// The write that reverts a refused change: the previous document, under the version that Azure left.
pub(crate) fn restore(target: ResourceId, document: Document, version: Option<String>, proof: Proof) -> Step {
    rewrite(target, document, version, Purpose::Restore, Change::Restored, proof)
}

fn rewrite(
    target: ResourceId,
    document: Document,
    if_match: Option<String>,
    purpose: Purpose,
    why: Change,
    proof: Proof,
) -> Step {
    Step {
        action: Action::Update,
        target,
        if_match,
        document: Some(document),
        changes: vec![why],
        purpose,
        on_behalf_of: Vec::new(),
        ownership: vec![proof],
    }
}
