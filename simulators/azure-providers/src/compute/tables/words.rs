//! Refusals that any resource may get, as Compute words them.

use azure_engine::error::{Code, Refusal, UNREADABLE};
use azure_engine::words::{NotAllowed, OutOfRange, Words};

const FIXED: Code = Code::azures(409, "PropertyChangeNotAllowed");

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
    not_allowed: |wrong| {
        let NotAllowed { member, value, allowed, .. } = wrong;
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let allowed = allowed.join(",");
        let text = format!(
            "The value '{value}' of parameter '{member}' is not allowed. Allowed values are '{allowed}'."
        );
        Refusal::invalid_parameter(member, text)
    },
    missing: |wrong| missing(wrong.member),
    fixed: |wrong| fixed(wrong.member),
    unfit: |wrong, text| Refusal::invalid_parameter(wrong.member, text),
    twice: |child| {
        let text = format!("More than one entry is called '{}'.", child.name());
        Refusal::invalid_parameter(child.name(), text)
    },
    refuses_unknown: false,
    unreadable,
};

/// A member must be there and is not.
pub(crate) fn missing(member: &str) -> Refusal {
    Refusal::invalid_parameter(member, format!("Required parameter '{member}' is missing (null)."))
}

/// A member stays as it was when the resource was made.
pub(crate) fn fixed(member: &str) -> Refusal {
    FIXED.says(format_args!("Changing property '{member}' is not allowed.")).at(member)
}

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
