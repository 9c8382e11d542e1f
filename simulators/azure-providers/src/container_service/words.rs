//! Refusals that any resource may get, as AKS words them, and codes that several of its types share.

use azure_engine::refusal::words::{NotAllowed, OutOfRange, USUAL, Words};
use azure_engine::refusal::{Code, Refusal};

/// A member has an invalid value.
pub(super) const INVALID_PARAMETER: Code = Code::azures(400, "InvalidParameter");
/// The operation is not allowed now, or not on this resource.
pub(super) const NOT_ALLOWED: Code = Code::azures(400, "OperationNotAllowed");
/// Another operation runs.
pub(super) const IN_PROGRESS: Code = Code::azures(409, "OperationNotAllowed");
/// A member is fixed at creation.
pub(super) const FIXED: Code = Code::azures(400, "PropertyChangeNotAllowed");
/// A request that is contradictory as a whole.
pub(super) const BAD_REQUEST: Code = Code::azures(400, "BadRequest");

/// The provider's words.
pub(super) static WORDS: Words = Words {
    superseded: |_, _, _| {
        let text = "Cannot proceed with the operation. Either the operation has been preempted by another one, or the \
                    information needed by the operation failed to be saved (or hasn't been saved yet).";
        Code::azures(409, "OperationPreempted").says(text)
    },
    mismatch: |given, current, id| {
        let text = format!("Etag {given} in the header does not match the etag {current} of resource {id}.");
        Code::ours(412, "EtagMismatch").says(text)
    },
    going: |_| in_progress("Deleting"),
    busy: |blocked| {
        let (name, _) = blocked.operation.unwrap_or_default();
        in_progress(if name.starts_with("Put") { "Updating" } else { name })
    },
    out_of_range: |wrong| {
        let OutOfRange { member, value, least, most, .. } = wrong;
        invalid(member, format_args!("Value {value} must be in the range of {least} to {most}."))
    },
    not_allowed: |wrong| {
        let NotAllowed { member, value, allowed, .. } = wrong;
        invalid(member, format_args!("{value} is not one of {}.", allowed.join(", ")))
    },
    missing: |wrong| missing(wrong.member),
    fixed: |wrong| fixed(wrong.member),
    unfit: |wrong, text| invalid(wrong.member, text),
    refuses_unknown: false,
    unreadable: |refusal| refusal.with_reason_alone(BAD_REQUEST.code),
    ..USUAL
};

/// Another operation runs on the cluster, or on one of its pools.
pub(super) fn in_progress(what: &str) -> Refusal {
    IN_PROGRESS.says(format_args!(
        "Operation is not allowed: Another operation ({what}) is in progress, please wait for it to finish before \
         starting a new operation. See https://aka.ms/aks-pending-operation for more details"
    ))
}

/// A member has an invalid value, and why.
pub(super) fn invalid(member: &str, why: impl std::fmt::Display) -> Refusal {
    INVALID_PARAMETER
        .says(format_args!(
            "The value of parameter {member} is invalid. Error details: {why} Please see \
             https://aka.ms/aks-naming-rules for more details."
        ))
        .at(member)
}

/// A required member is missing.
pub(super) fn missing(member: &str) -> Refusal {
    INVALID_PARAMETER.says(format_args!("Required parameter {member} is missing (null).")).at(member)
}

/// A member is fixed at creation.
pub(super) fn fixed(member: &str) -> Refusal {
    FIXED.says(format_args!("Changing property '{member}' is not allowed.")).at(member)
}
