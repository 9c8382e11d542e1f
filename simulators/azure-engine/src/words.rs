//! Refusals that any resource may get, as a provider words them.

use azure_types::ResourceId;

use super::error::Refusal;

/// A write that came while something else goes on with its resource.
pub struct Blocked<'a> {
    /// The resource.
    pub id: &'a ResourceId,
    /// What the type is called.
    pub noun: &'a str,
    /// Name and key of the operation that runs, where one does.
    pub operation: Option<(&'a str, &'a str)>,
    /// Where that operation is asked for.
    pub url: String,
    /// Seconds until it is worth trying again.
    pub wait: u64,
}

/// A number that is not between two.
pub struct OutOfRange<'a> {
    /// The resource.
    pub id: &'a ResourceId,
    /// The member.
    pub member: &'a str,
    /// What was sent.
    pub value: i64,
    /// The least that it may be.
    pub least: i64,
    /// The most that it may be.
    pub most: i64,
}

/// The refusals.
#[derive(Debug)]
pub struct Words {
    /// Why an operation ended that gave way to another one: its name, its key, and the other one.
    pub superseded: fn(&str, &str, &str) -> Refusal,
    /// A condition that does not hold: the etag that was sent, the one there is, the resource.
    pub mismatch: fn(&str, &str, &ResourceId) -> Refusal,
    /// The resource is being deleted.
    pub going: fn(&Blocked<'_>) -> Refusal,
    /// Another operation runs on the resource.
    pub busy: fn(&Blocked<'_>) -> Refusal,
    /// A number is out of its range.
    pub out_of_range: fn(&OutOfRange<'_>) -> Refusal,
    /// Whether members of `properties` that a type does not have are refused.
    pub refuses_unknown: bool,
    /// A document that cannot be read: what the engine says of it, in the provider's words.
    pub unreadable: fn(Refusal) -> Refusal,
}

/// How most providers word them.
pub static USUAL: Words = Words {
    superseded,
    mismatch,
    going,
    busy,
    out_of_range,
    refuses_unknown: true,
    unreadable: |refusal| refusal,
};

fn superseded(name: &str, key: &str, by: &str) -> Refusal {
    Refusal::network(409, "Canceled", "Operation was canceled.").with_detail(
        "CanceledAndSupersededDueToAnotherOperation",
        format!("Operation {name} ({key}) was canceled and superseded by operation {by}."),
    )
}

fn mismatch(given: &str, current: &str, id: &ResourceId) -> Refusal {
    Refusal::network(412, "PreconditionFailed", "Precondition failed.").with_detail(
        "PreconditionFailedEtagMismatch",
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
    Refusal::network(409, "AnotherOperationInProgress", text)
}

fn busy(blocked: &Blocked<'_>) -> Refusal {
    let (name, key) = blocked.operation.unwrap_or_default();
    let wait = blocked.wait;
    Refusal::network(429, "RetryableError", "A retryable error occurred.")
        .with_detail(
            "RetryableErrorDueToAnotherOperation",
            format!(
                "Operation {name} ({key}) is updating resource {}. The call can be retried in {wait} seconds.",
                blocked.id
            ),
        )
        .with_retry_after(u32::try_from(wait).unwrap_or(u32::MAX))
}

fn out_of_range(wrong: &OutOfRange<'_>) -> Refusal {
    let OutOfRange { id, member, value, least, most } = wrong;
    Refusal::network(
        400,
        "InvalidPropertyValue",
        format!("Value {value} of '{member}' of {id} is outside the range {least} to {most}."),
    )
}
