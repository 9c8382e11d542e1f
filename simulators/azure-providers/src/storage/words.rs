//! Refusals that any resource may get, as Storage words them.

use azure_engine::refusal::words::{OutOfRange, USUAL, Words};
use azure_engine::refusal::{Code, Refusal};

/// An invalid value of a member.
pub(super) const BAD_VALUE: Code = Code::azures(400, "InvalidRequestPropertyValue");
/// Parameters that are missing or exclude each other.
pub(super) const BAD_PARAMETERS: Code = Code::azures(400, "InvalidValuesForRequestParameters");

/// Parameters by name, separated by commas.
pub(super) fn bad_parameters(names: &str) -> Refusal {
    BAD_PARAMETERS.says(format_args!("Values for request parameters are invalid: {names}."))
}

/// Storage's words.
pub(super) static WORDS: Words = Words {
    mismatch: |_, _, _| {
        Code::azures(412, "ConditionNotMet")
            .says("The condition specified using HTTP conditional header(s) is not met.")
    },
    going: busy,
    busy,
    out_of_range: |wrong| {
        let OutOfRange { member, value, least, most, .. } = wrong;
        BAD_VALUE.says(format_args!(
            "The value '{value}' is not allowed for property {member}: it must be between {least} and {most}."
        ))
    },
    refuses_unknown: false,
    unreadable: |refusal| refusal.with_reason_alone(BAD_VALUE.code),
    ..USUAL
};

fn busy(blocked: &azure_engine::refusal::words::Blocked<'_>) -> Refusal {
    Code::azures(409, "StorageAccountOperationInProgress").says(format_args!(
        "An operation is currently performing on this storage account that requires exclusive access: {}.",
        blocked.id.name()
    ))
}
