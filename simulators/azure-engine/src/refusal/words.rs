//! Refusals that any resource may get, as a provider words them.

use azure_types::ResourceId;
use serde_json::Value;

use crate::refusal::{Code, Refusal};

const INVALID_PROPERTY_VALUE: Code = Code::ours(400, "InvalidPropertyValue");
const DUPLICATE_RESOURCE_NAME: Code = Code::azures(400, "DuplicateResourceName");
const CANCELED_AND_SUPERSEDED_DUE_TO_ANOTHER_OPERATION: Code =
    Code::azures(409, "CanceledAndSupersededDueToAnotherOperation");
const PRECONDITION_FAILED_ETAG_MISMATCH: Code = Code::azures(412, "PreconditionFailedEtagMismatch");
const RETRYABLE_ERROR_DUE_TO_ANOTHER_OPERATION: Code =
    Code::azures(429, "RetryableErrorDueToAnotherOperation");

/// A write during a running operation on its resource.
pub struct Blocked<'a> {
    /// The resource.
    pub id: &'a ResourceId,
    /// The noun of the type.
    pub noun: &'a str,
    /// Name and key of the running operation, if there is one.
    pub operation: Option<(&'a str, &'a str)>,
    /// The URL of that operation.
    pub url: String,
    /// Seconds until a retry.
    pub wait: u64,
}

/// A number outside its range.
pub struct OutOfRange<'a> {
    /// The resource.
    pub id: &'a ResourceId,
    /// The member.
    pub member: &'a str,
    /// What was sent.
    pub value: i64,
    /// The minimum.
    pub least: i64,
    /// The maximum.
    pub most: i64,
}

/// A member at fault.
pub struct Wrong<'a> {
    /// The resource.
    pub id: &'a ResourceId,
    /// The member: its path below `properties`, or its name in refusals.
    pub member: &'a str,
}

/// A value that is not among the allowed words.
pub struct NotAllowed<'a> {
    /// The resource.
    pub id: &'a ResourceId,
    /// The member.
    pub member: &'a str,
    /// What was sent.
    pub value: &'a Value,
    /// The words.
    pub allowed: &'a [&'static str],
}

/// The refusals.
#[derive(Debug)]
pub struct Words {
    /// The failure of a superseded operation: its name, its key, and the other one.
    pub superseded: fn(&str, &str, &str) -> Refusal,
    /// A failed precondition: the sent etag, the present one, the resource.
    pub mismatch: fn(&str, &str, &ResourceId) -> Refusal,
    /// The resource is being deleted.
    pub going: fn(&Blocked<'_>) -> Refusal,
    /// Another operation runs on the resource.
    pub busy: fn(&Blocked<'_>) -> Refusal,
    /// A number is out of its range.
    pub out_of_range: fn(&OutOfRange<'_>) -> Refusal,
    /// A value is not among the allowed words.
    pub not_allowed: fn(&NotAllowed<'_>) -> Refusal,
    /// A required member is missing.
    pub missing: fn(&Wrong<'_>) -> Refusal,
    /// A member is fixed and cannot be changed.
    pub fixed: fn(&Wrong<'_>) -> Refusal,
    /// A text is invalid, with its description.
    pub unfit: fn(&Wrong<'_>, String) -> Refusal,
    /// Two children have the same name: the id of both.
    pub twice: fn(&ResourceId) -> Refusal,
    /// Whether members of `properties` that a type does not have are refused.
    pub refuses_unknown: bool,
    /// An unreadable document: converts the engine's refusal to the provider's wording.
    pub unreadable: fn(Refusal) -> Refusal,
}

/// The wording of most providers.
pub static USUAL: Words = Words {
    superseded,
    mismatch,
    going,
    busy,
    out_of_range,
    not_allowed,
    missing,
    fixed,
    unfit,
    twice,
    refuses_unknown: true,
    unreadable: |refusal| refusal,
};

fn superseded(name: &str, key: &str, by: &str) -> Refusal {
    Code::azures(409, "Canceled").details("Operation was canceled.").with_detail(
        CANCELED_AND_SUPERSEDED_DUE_TO_ANOTHER_OPERATION.code,
        format!("Operation {name} ({key}) was canceled and superseded by operation {by}."),
    )
}

fn mismatch(given: &str, current: &str, id: &ResourceId) -> Refusal {
    Code::azures(412, "PreconditionFailed").details("Precondition failed.").with_detail(PRECONDITION_FAILED_ETAG_MISMATCH.code,
        format!(
            "Etag provided in if-match header {given} does not match etag {current} of resource {id} in NRP data store."
        ),
    )
}

fn going(blocked: &Blocked<'_>) -> Refusal {
    let mut text = "Another operation on this or dependent resource is in progress.".to_owned();
    if blocked.operation.is_some() {
        text = format!("{text} To retrieve status of the operation use uri: {}.", blocked.url);
    }
    Code::azures(409, "AnotherOperationInProgress").details(text)
}

fn busy(blocked: &Blocked<'_>) -> Refusal {
    let (name, key) = blocked.operation.unwrap_or_default();
    let wait = blocked.wait;
    Code::azures(429, "RetryableError").details("A retryable error occurred.")
        .with_detail(RETRYABLE_ERROR_DUE_TO_ANOTHER_OPERATION.code,
            format!(
                "Operation {name} ({key}) is updating resource {}. The call can be retried in {wait} seconds.",
                blocked.id
            ),
        )
        .with_retry_after(u32::try_from(wait).unwrap_or(u32::MAX))
}

fn out_of_range(wrong: &OutOfRange<'_>) -> Refusal {
    let OutOfRange { id, member, value, least, most } = wrong;
    INVALID_PROPERTY_VALUE
        .details(format_args!("Value {value} of '{member}' of {id} is outside the range {least} to {most}."))
}

fn not_allowed(wrong: &NotAllowed<'_>) -> Refusal {
    let NotAllowed { member, value, allowed, .. } = wrong;
    let allowed = allowed.join(", ");
    Refusal::bad_format(format!(
        "Error converting value {value} to member '{member}'. Allowed values are: {allowed}."
    ))
}

fn missing(wrong: &Wrong<'_>) -> Refusal {
    Refusal::bad_format(format!("Required member '{}' of {} is missing.", wrong.member, wrong.id))
}

fn fixed(wrong: &Wrong<'_>) -> Refusal {
    Code::ours(409, "PropertyChangeNotAllowed")
        .details(format_args!("Changing property '{}' of {} is not allowed.", wrong.member, wrong.id))
}

fn unfit(_: &Wrong<'_>, text: String) -> Refusal {
    INVALID_PROPERTY_VALUE.details(text)
}

fn twice(child: &ResourceId) -> Refusal {
    Refusal::bad_format(format!("Resource {child} has a duplicate: names in a list must be unique."))
        .with_detail(DUPLICATE_RESOURCE_NAME.code, child.name())
}
