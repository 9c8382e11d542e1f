//! The report of every attempt: to the log, and to the observer.

use std::fmt;
use std::time::Duration;

use crate::Class;

/// The purpose of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purpose {
    /// Reading one resource.
    Read,
    /// Reading a page of a list.
    List,
    /// Creating, replacing or patching a resource.
    Write,
    /// Deleting a resource.
    Delete,
    /// An action on a resource (POST).
    Action,
    /// Polling an operation.
    Poll,
    /// Reading the resource after its operation is done.
    FinalRead,
    /// Registering a resource provider with the subscription.
    Register,
}

impl Purpose {
    /// The word for labels and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::List => "list",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Action => "action",
            Self::Poll => "poll",
            Self::FinalRead => "final read",
            Self::Register => "register",
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One attempt at one request.
#[derive(Debug, Clone)]
pub struct CallRecord<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The full resource type, such as `Microsoft.Network/loadBalancers`.
    pub resource_type: &'a str,
    /// The resource's name; for lists that of the scope.
    pub resource_name: &'a str,
    /// The subscription's id.
    pub subscription: &'a str,
    /// The resource group's name, where there is one.
    pub resource_group: Option<&'a str>,
    /// The purpose.
    pub purpose: Purpose,
    /// The class in which it queued.
    pub class: Class,
    /// The HTTP status; absent if there was no answer.
    pub status: Option<u16>,
    /// Time from sending to the complete answer, without waiting for the budget.
    pub duration: Duration,
    /// Time spent waiting for the budget before sending.
    pub waited: Duration,
    /// 1 for the first attempt, 2 for the first retry, ...
    pub attempt: u32,
    /// Azure's error code, or `transport` if there was no answer; absent on success.
    pub reason: Option<&'a str>,
    /// Azure's id of the request.
    pub request_id: Option<&'a str>,
    /// Whether the answer closed a budget.
    pub throttled: bool,
}

impl CallRecord<'_> {
    /// Whether Azure answered the question: with a success, or a read with the answer that nothing is there.
    pub fn is_answered(&self) -> bool {
        self.status.is_some_and(|status| self.reason.is_none() || is_answer(self.purpose, status))
    }

    /// Whether Azure accepted a write, a deletion or an action.
    pub fn is_change(&self) -> bool {
        matches!(self.purpose, Purpose::Write | Purpose::Delete | Purpose::Action)
            && self.status.is_some()
            && self.reason.is_none()
    }
}

/// Observes every attempt at its end. Called on the task that made the request: must not block.
pub trait CallObserver: Send + Sync {
    /// Records one attempt.
    fn on_call(&self, call: &CallRecord<'_>);

    /// Records a call that was not sent, because the budget is closed for longer than calls wait. It has no answer.
    fn on_limited(&self, _call: &CallRecord<'_>) {}
}

impl<F: Fn(&CallRecord<'_>) + Send + Sync> CallObserver for F {
    fn on_call(&self, call: &CallRecord<'_>) {
        self(call);
    }
}

/// Whether an error is a valid answer. A read asks whether a resource exists, and "no" is an answer, also with status
/// 400, as Compute gives it for an instance of a scale set; a list of a resource group that does not exist is empty.
pub(crate) fn is_answer(purpose: Purpose, status: u16) -> bool {
    match purpose {
        Purpose::Read => matches!(status, 400 | 404),
        Purpose::List => status == 404,
        _ => false,
    }
}

/// Whether the caller logs a failed call: it knows the purpose of the call.
fn is_logged_by_caller(purpose: Purpose) -> bool {
    matches!(purpose, Purpose::Write | Purpose::Delete)
}

pub(crate) fn log(call: &CallRecord<'_>) {
    let duration_ms = u64::try_from(call.duration.as_millis()).unwrap_or(u64::MAX);
    let CallRecord { method, resource_type, resource_name, purpose, attempt, .. } = call;
    let (status, request_id) = (call.status.unwrap_or_default(), call.request_id.unwrap_or_default());
    match call.reason.filter(|_| !is_answer(call.purpose, status) && !is_logged_by_caller(call.purpose)) {
        None => tracing::debug!(
            method,
            resource_type,
            name = resource_name,
            purpose = purpose.as_str(),
            status,
            code = call.reason,
            duration_ms,
            request_id,
            "azure call"
        ),
        Some(code) => tracing::info!(
            method,
            resource_type,
            name = resource_name,
            purpose = purpose.as_str(),
            status,
            code,
            duration_ms,
            attempt,
            request_id,
            "azure call failed"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NODE-201.
    #[test]
    fn node_201_a_read_that_is_answered_with_no_is_no_failed_call() {
        for (purpose, status, expected) in [
            (Purpose::Read, 404, true),
            (Purpose::Read, 400, true),
            (Purpose::Read, 403, false),
            (Purpose::Read, 429, false),
            (Purpose::Read, 500, false),
            (Purpose::Read, 0, false),
            (Purpose::Write, 400, false),
            (Purpose::List, 404, true),
            (Purpose::List, 400, false),
            (Purpose::Delete, 404, false),
        ] {
            assert_eq!(is_answer(purpose, status), expected, "{purpose} {status}");
        }
    }
}
