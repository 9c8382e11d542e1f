//! Refusals that any resource may get, as Compute words them.

use crate::compute::tables::codes::OPERATION_NOT_ALLOWED;
use azure_engine::refusal::words::{NotAllowed, OutOfRange, Words};
use azure_engine::refusal::{Code, Refusal};

/// Compute's words.
pub(crate) static WORDS: Words = Words {
    superseded: |_, _, _| {
        let text = "Operation execution has been preempted by a more recent operation.";
        Code::azures(409, "OperationPreempted").says(text)
    },
    mismatch: |given, current, _| {
        let text =
            format!("Etag provided in if-match header {given} does not match etag {current} of resource.");
        Code::azures(412, "PreconditionFailed").says(text)
    },
    going: |blocked| {
        let (noun, name) = (blocked.noun, blocked.id.name());
        let text = format!("'Put on {noun}' is not allowed on '{name}' since it is marked for deletion.");
        OPERATION_NOT_ALLOWED.says(text)
    },
    busy: |_| {
        let text = "The request failed due to conflict with a concurrent request. To resolve it, please refer to \
                    https://aka.ms/activitylog to get more details on the conflicting requests.";
        Code::azures(409, "Conflict").says(text)
    },
    out_of_range: |wrong| {
        let OutOfRange { member, value, least, most, .. } = wrong;
        out_of_range(member, *value, *least, *most)
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
    unreadable: |refusal| refusal.with_reason_alone("BadRequest"),
};

/// A required member is missing.
pub(crate) fn missing(member: &str) -> Refusal {
    Refusal::invalid_parameter(member, format!("Required parameter '{member}' is missing (null)."))
}

/// A member cannot change after creation.
pub(crate) fn fixed(member: &str) -> Refusal {
    Code::azures(409, "PropertyChangeNotAllowed")
        .says(format_args!("Changing property '{member}' is not allowed."))
        .at(member)
}

/// A number is outside its range.
pub(crate) fn out_of_range(member: &str, value: i64, least: i64, most: i64) -> Refusal {
    let range = format!("The value must be between {least} and {most}, inclusive.");
    let text = format!("The value {value} of parameter '{member}' is out of range. {range}");
    Refusal::invalid_parameter(member, text)
}
