//! Refusals that any resource may get, as Compute words them.

use azure_engine::error::{Refusal, UNREADABLE};
use azure_engine::words::{OutOfRange, Words};

/// Compute's words.
pub(crate) static WORDS: Words = Words {
    superseded: |_, _, _| {
        let text = "Operation execution has been preempted by a more recent operation.";
        Refusal::new(409, "OperationPreempted", text)
    },
    mismatch: |given, current, _| {
        let text =
            format!("Etag provided in if-match header {given} does not match etag {current} of resource.");
        Refusal::new(412, "PreconditionFailed", text)
    },
    going: |blocked| {
        let (noun, name) = (blocked.noun, blocked.id.name());
        let text = format!("'Put on {noun}' is not allowed on '{name}' since it is marked for deletion.");
        Refusal::new(409, "OperationNotAllowed", text)
    },
    busy: |_| {
        let text = "The request failed due to conflict with a concurrent request. To resolve it, please refer to \
                    https://aka.ms/activitylog to get more details on the conflicting requests.";
        Refusal::new(409, "Conflict", text)
    },
    out_of_range: |wrong| {
        let OutOfRange { member, value, least, most, .. } = wrong;
        let text =
            format!("The specified {member} {value} is out of range. It must be between {least} and {most}.");
        Refusal::invalid_parameter(member, text)
    },
    refuses_unknown: false,
    unreadable,
};

/// Of what it cannot read, Compute says no more than the reason.
fn unreadable(mut refusal: Refusal) -> Refusal {
    if refusal.code != UNREADABLE {
        return refusal;
    }
    if let Some(reason) = refusal.details.take().and_then(|details| details.into_iter().next()) {
        refusal.message = reason.message;
    }
    refusal.code = "BadRequest".into();
    refusal
}
